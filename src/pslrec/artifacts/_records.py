"""What a run directory says about its run in words and numbers, checked before anything relies on it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pslrec.evaluation import Evaluated
from pslrec.files import (
    LARGEST_LOG,
    FileError,
    check_regular,
    explained,
    local_path,
    read_json,
    read_text,
)

FORMAT = "1"
_METRIC_NAME = re.compile(r"[^@]+(@[1-9][0-9]{0,9})?")


class ArtifactError(FileError):
    """A run directory cannot be read, written or understood."""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_metrics(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(
        _METRIC_NAME.fullmatch(name) and _is_number(number) for name, number in value.items()
    )


def _are_evaluated(value: object) -> bool:
    """Whether these are users and pairs of each part, see `pslrec.evaluation.Evaluated`."""
    names = {field.name for field in fields(Evaluated)}
    if not isinstance(value, Mapping):
        return False
    for counts in value.values():
        if not isinstance(counts, Mapping) or set(counts) != names:
            return False
        if not all(_is_count(count) for count in counts.values()):
            return False
    return True


# Only what other code relies on; a newer version may add to it.
_METRICS_HOLD: dict[str, Callable[[object], bool]] = {
    "test": _are_metrics,
    "validation": _are_metrics,
    "evaluated": _are_evaluated,
    "protocol": lambda value: isinstance(value, str),
    "best_epoch": _is_count,
    "trained_epochs": _is_count,
    "seconds_per_epoch": _is_number,
    "selected_on_test": lambda value: isinstance(value, bool),
    "is_finished": lambda value: isinstance(value, bool),
    "failed": lambda value: isinstance(value, str),
}


def check_format(path: Path) -> None:
    """Raise unless this version of pslrec can read the run, and its metrics if it has been evaluated."""
    local_path(path, error=ArtifactError)
    check_version(path)
    if (path / "metrics.json").exists():
        metrics = read_metrics(path)
        if "best_epoch" not in metrics:
            raise ArtifactError(
                f"{path / 'metrics.json'} must hold `best_epoch`; evaluate the run again with --resume"
            )


def read_metrics(path: Path, name: str = "metrics.json") -> dict[str, Any]:
    """How a run was evaluated, after checking that it reads as such.

    Args:
        path: directory of the run.
        name: of the file.
    """
    file = path / name
    metrics = read_json(file, error=ArtifactError)
    for key, value in metrics.items():
        if key in _METRICS_HOLD and not _METRICS_HOLD[key](value):
            raise ArtifactError(
                f"{file}: `{key}` is not what pslrec writes there, got {str(value)[:40]!r}"
            )
    return metrics


def read_log(path: Path) -> list[str]:
    """The lines of a log; none if it is not there. A sudden end may have cut one short.

    Args:
        path: of the file.
    """
    if not path.exists():
        return []
    return read_text(path, limit=LARGEST_LOG, damaged="replace", error=ArtifactError).splitlines()


def check_version(path: Path) -> None:
    """Raise unless this version of pslrec can read the run, which may be unfinished.

    Args:
        path: directory of the run.
    """
    file = path / "format"
    if not file.exists():
        raise ArtifactError(f"{path} holds no run: there is no file `format` in it")
    _check_files(path)
    found = read_text(file, damaged="replace", error=ArtifactError).strip()
    if found != FORMAT:
        raise ArtifactError(
            f"{path} was written in format {found[:20]!r}, this version reads format {FORMAT}; train it again"
        )


def _check_files(path: Path) -> None:
    """A pipe or a device in the directory of a run would be waited for, or read, without end."""
    with explained(path, "read", error=ArtifactError):
        entries = sorted(path.iterdir())
    for entry in entries:
        # Another process may be writing here, so an entry may be gone by now.
        if entry.exists() and not entry.is_dir():
            check_regular(entry, error=ArtifactError)
