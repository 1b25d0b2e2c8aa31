"""A run as a report shows it: what its directory says, and a label of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pslrec import artifacts


@dataclass(frozen=True)
class RunRecord(artifacts.RunRecord):
    """A run in a report.

    Args:
        label: a short name, different from those of the other runs of the report.
    """

    label: str

    @property
    def data_key(self) -> tuple[str, ...]:
        """Equal for runs that are evaluated on the same pairs by the same rules."""
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


def read_run(path: Path, label: str) -> RunRecord:
    """Read a run; parts that it does not have yet are empty.

    Args:
        path: its directory.
        label: its name in the report.
    """
    found = artifacts.read_record(path)
    metrics = dict(found.metrics)
    evaluated = metrics.get("evaluated", {}).get("test")
    if evaluated is not None and not evaluated["of_pairs"]:
        # Nothing was held out: zeros of nothing would read as a bad model.
        metrics["test"] = {}
    return RunRecord(
        path=found.path,
        settings=found.settings,
        environment=found.environment,
        epochs=found.epochs,
        metrics=metrics,
        label=label,
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
        length = next(
            n for n in range(1, len(own) + 1) if all(own[-n:] != other[-n:] for other in others)
        )
        labels.append("/".join(own[-length:]))
    return labels
