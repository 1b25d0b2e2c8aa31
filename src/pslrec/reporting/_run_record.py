"""What a run directory says about its run, read without training data and without its model."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pslrec.artifacts import ArtifactError, check_format, read_log, read_metrics
from pslrec.files import read_json, read_toml


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
        names = (
            "source",
            "split",
            "train_fraction",
            "split_seed",
            "minimum_rating",
            "k_core",
            "repair",
        )
        return (
            *(str(self.settings.get(f"data.{name}")) for name in names),
            str(self.metrics.get("protocol")),
        )

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
    settings = _flat(read_toml(path / "config.toml", error=ArtifactError))
    environment = _json_of(path / "environment.json")
    metrics = read_metrics(path) if (path / "metrics.json").exists() else {}
    return RunRecord(path, label, settings, environment, _epochs(path), metrics)


def labels_of(paths: Sequence[Path]) -> list[str]:
    """The shortest endings of the paths that tell them apart.

    >>> labels_of([Path("a/one"), Path("a/two"), Path("b/two")])
    ['one', 'a/two', 'b/two']
    """
    parts = [path.absolute().parts for path in paths]
    labels = []
    for own in parts:
        others = [other for other in parts if other != own]
        length = next(
            n for n in range(1, len(own) + 1) if all(own[-n:] != other[-n:] for other in others)
        )
        labels.append("/".join(own[-length:]))
    return labels


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in tree.items():
        found |= (
            _flat(value, f"{prefix}{name}.")
            if isinstance(value, Mapping)
            else {f"{prefix}{name}": value}
        )
    return found


def _json_of(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    return read_json(path, error=ArtifactError)


def _epochs(path: Path) -> list[Epoch]:
    found = {}
    for line in read_log(path / "log.jsonl"):
        try:
            record = json.loads(line)
            validation = record.get("validation")
            epoch = Epoch(
                int(record["epoch"]),
                _number(record.get("loss")),
                _number(record.get("seconds")),
                None if validation is None else _number(validation),
            )
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            continue  # a line cut short by a sudden end
        found[epoch.number] = epoch
    return [found[number] for number in sorted(found)]


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
