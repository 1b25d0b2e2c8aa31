"""What a run directory says about its run, read without training data and without its model."""

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pslrec.artifacts import ArtifactError, check_format
from pslrec.artifacts.files import read_text


@dataclass(frozen=True)
class Epoch:
    """A line of a run's log.

    Args:
        number: counted from 1.
        loss: mean over its batches; may be no finite number.
        seconds: of training.
        validation: the value by which epochs are chosen, where it was looked at.
    """

    number: int
    loss: float
    seconds: float
    validation: float | None


@dataclass(frozen=True)
class RunRecord:
    """A run as its directory tells it.

    Args:
        path: the directory.
        label: a short name, different from those of the other runs of a report.
        settings: its configuration by dotted name, such as `loss.name`.
        environment: what it was made with.
        epochs: its log.
        metrics: what `metrics.json` holds; empty for a run that is not finished.
    """

    path: Path
    label: str
    settings: Mapping[str, Any]
    environment: Mapping[str, Any]
    epochs: Sequence[Epoch]
    metrics: Mapping[str, Any]

    @property
    def is_finished(self) -> bool:
        """Whether it was judged."""
        return bool(self.metrics)

    @property
    def data_key(self) -> tuple[str, ...]:
        """Equal for runs that are judged on the same pairs by the same rules."""
        names = ("source", "split", "train_fraction", "split_seed", "minimum_rating", "k_core", "repair")
        return (*(str(self.settings.get(f"data.{name}")) for name in names), str(self.metrics.get("protocol")))

    def metric(self, name: str, split: str = "test") -> float | None:
        """One of its metrics, if it has it."""
        value = self.metrics.get(split, {}).get(name)
        return float(value) if isinstance(value, int | float) else None


def read_run(path: Path, label: str) -> RunRecord:
    """Read a run; parts that it does not have yet are empty.

    Args:
        path: its directory.
        label: its name in the report.
    """
    check_format(path)
    try:
        settings = _flat(tomllib.loads(read_text(path / "config.toml")))
    except tomllib.TOMLDecodeError as error:
        raise ArtifactError(f"{path / 'config.toml'} is not TOML: {error}") from error
    return RunRecord(
        path, label, settings, _json_of(path / "environment.json"), _epochs(path), _json_of(path / "metrics.json")
    )


def labels_of(paths: Sequence[Path]) -> list[str]:
    """The shortest endings of the paths that tell them apart.

    >>> labels_of([Path("a/one"), Path("a/two"), Path("b/two")])
    ['one', 'a/two', 'b/two']
    """
    parts = [path.absolute().parts for path in paths]
    labels = []
    for own in parts:
        others = [other for other in parts if other != own]
        length = next(n for n in range(1, len(own) + 1) if all(own[-n:] != other[-n:] for other in others))
        labels.append("/".join(own[-length:]))
    return labels


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in tree.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found


def _json_of(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(read_text(path))
    except ValueError as error:
        raise ArtifactError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ArtifactError(f"{path} must hold an object with names, got {type(found).__name__}")
    return found


def _epochs(path: Path) -> list[Epoch]:
    log = path / "log.jsonl"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    found = {}
    for line in lines:
        try:
            record = json.loads(line)
            validation = record.get("validation")
            epoch = Epoch(
                int(record["epoch"]),
                _number(record.get("loss")),
                _number(record.get("seconds")),
                None if validation is None else _number(validation),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            continue  # a line cut short by a sudden end
        found[epoch.number] = epoch
    return [found[number] for number in sorted(found)]


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
