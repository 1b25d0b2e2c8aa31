"""`metrics.json`: how a run was evaluated, checked before anything relies on it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pslrec.artifacts._format import ArtifactError, check_version
from pslrec.evaluation import Evaluated
from pslrec.files import read_json

METRICS_FILE = "metrics.json"
# Such as `auc` or `ndcg@20`. Readers turn the length into a number, so it must not be endless.
_METRIC_NAME = re.compile(r"[^@]+(@[1-9][0-9]{0,9})?")

# What reports show of each measure of a check of the splits.
_SHOWN_OF_MEASURE = ("held_out", "random", "difference", "effect", "adjusted_p")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> bool:
    # In Python, true is a number; in a file of metrics it is a mistake.
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_metrics(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    has_names = all(_METRIC_NAME.fullmatch(name) for name in value)
    return has_names and all(_is_number(number) for number in value.values())


def _are_evaluated(value: object) -> bool:
    """Whether these are counts of users and pairs by split, see `pslrec.evaluation.Evaluated`."""
    names = {field.name for field in fields(Evaluated)}
    if not isinstance(value, Mapping):
        return False
    for counts in value.values():
        if not isinstance(counts, Mapping) or set(counts) != names:
            return False
        if not all(_is_count(count) for count in counts.values()):
            return False
    return True


def _are_checks(value: object) -> bool:
    """Whether these are checks of the splits by name, see `pslrec.data.exchangeability_record`."""
    if not isinstance(value, Mapping):
        return False
    for check in value.values():
        if not isinstance(check, Mapping):
            return False
        if not _is_text(check.get("verdict")) or not _is_text(check.get("sentence")):
            return False
        measures = check.get("measures", {})
        if not isinstance(measures, Mapping):
            return False
        if not all(_is_measure(measure) for measure in measures.values()):
            return False
    return True


def _is_measure(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(_is_number(value.get(name)) for name in _SHOWN_OF_MEASURE)


# Only what other code relies on: a newer version may write more, and old readers let that pass.
_CHECKS: dict[str, Callable[[object], bool]] = {
    "test": _are_metrics,
    "validation": _are_metrics,
    "evaluated": _are_evaluated,
    "exchangeability": _are_checks,
    "protocol": _is_text,
    "best_epoch": _is_count,
    "trained_epochs": _is_count,
    "seconds_per_epoch": _is_number,
    "selected_on_test": _is_flag,
    "is_finished": _is_flag,
    "failed": _is_text,
}


def read_metrics(path: Path, name: str = METRICS_FILE) -> dict[str, Any]:
    """Read how a run was evaluated.

    Args:
        path: directory of the run.
        name: which of its files; a search writes a second one of the same kind.
    """
    file = path / name
    metrics = read_json(file, error=ArtifactError)
    for key, value in metrics.items():
        is_valid = _CHECKS.get(key)
        if is_valid is not None and not is_valid(value):
            raise ArtifactError(
                f"{file}: `{key}` is not what pslrec writes there, got {str(value)[:40]!r}"
            )
    return metrics


def check_format(path: Path) -> None:
    """Raise unless this version can read the run, and its metrics where it has been evaluated.

    Args:
        path: directory of the run, finished or not.
    """
    check_version(path)
    if not (path / METRICS_FILE).exists():
        return
    # Whatever shows metrics says which epoch they are of.
    if "best_epoch" not in read_metrics(path):
        raise ArtifactError(
            f"{path / METRICS_FILE} must hold `best_epoch`; evaluate the run again with --resume"
        )
