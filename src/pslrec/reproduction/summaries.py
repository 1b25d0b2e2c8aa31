"""Several seeds of one cell as one number: mean, deviation, and whether a printed number lies inside the noise."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from pslrec.reporting import is_inside_noise
from pslrec.reproduction.cells import IDENTITY, identity_of
from pslrec.reproduction.results import Row

Place = Literal["inside", "outside", "unknown"]
METRICS = ("recall20", "ndcg20")


@dataclass(frozen=True)
class Sample:
    """The values of one metric, by seed.

    Args:
        by_seed: at least one.
    """

    by_seed: dict[int, float]

    @property
    def n(self) -> int:
        """How many seeds."""
        return len(self.by_seed)

    @property
    def mean(self) -> float:
        """Over seeds."""
        return fmean(self.by_seed.values())

    @property
    def deviation(self) -> float | None:
        """From seed to seed; `None` for one seed."""
        return stdev(self.by_seed.values()) if self.n > 1 else None

    def place_of(self, printed: float) -> Place:
        """Whether a printed value, which is one run, lies where a further seed of ours would: in the prediction interval.

        >>> Sample({1: 0.10, 2: 0.11, 3: 0.12}).place_of(0.13), Sample({1: 0.10}).place_of(0.13)
        ('inside', 'unknown')
        """
        is_inside = is_inside_noise(self.by_seed.values(), printed)
        if is_inside is None:
            return "unknown"
        return "inside" if is_inside else "outside"


@dataclass(frozen=True)
class Summary:
    """One cell over its seeds.

    Args:
        columns: of its rows, without the seed.
        recall20: ours.
        ndcg20: ours.
        published: printed values by `recall20` and `ndcg20`, where there are any.
        is_selected_on_test: whether the epoch was chosen on the test part.
    """

    columns: Row
    recall20: Sample
    ndcg20: Sample
    published: dict[str, float]
    is_selected_on_test: bool

    def __getitem__(self, name: str) -> str:
        return self.columns[name]

    def ours(self, metric: str) -> Sample:
        """By name of the metric."""
        return self.recall20 if metric == "recall20" else self.ndcg20

    @property
    def variant(self) -> tuple[str, str]:
        """How it was made: negatives (`sampled`, `distinct`, `catalog`) and protocol."""
        kind = "distinct" if self["negatives"].endswith("distinct") else self["mode"]
        return kind, self["protocol"]


def summarize(rows: Iterable[Row]) -> list[Summary]:
    """Put the seeds of each cell together, in the order in which cells first come."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        without_seed = row | {"seed": ""}
        groups.setdefault((row["table"], *identity_of(without_seed)), []).append(row)
    return [_summary(group) for group in groups.values()]


def _summary(rows: list[Row]) -> Summary:
    samples = {
        metric: Sample({int(row["seed"]): float(row[f"ours_{metric}"]) for row in rows})
        for metric in METRICS
    }
    first = rows[0]
    names = [name for name in ("table", *IDENTITY, "published_in") if name != "seed"]
    return Summary(
        columns={name: first[name] for name in names},
        recall20=samples["recall20"],
        ndcg20=samples["ndcg20"],
        published={
            metric: float(first[f"published_{metric}"])
            for metric in METRICS
            if first[f"published_{metric}"]
        },
        is_selected_on_test=any(row["selected_on_test"] == "True" for row in rows),
    )
