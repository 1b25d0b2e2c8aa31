"""Several seeds of one cell as one number: mean, deviation, and whether a printed one is near."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from pslrec.reporting import is_inside_noise
from pslrec.reproduction._cells import DISTINCT, identity_of
from pslrec.reproduction._published import Row


@dataclass(frozen=True)
class Sample:
    """The values of one metric, by seed.

    Args:
        by_seed: at least one.
    """

    by_seed: dict[int, float]

    @property
    def mean(self) -> float:
        """Over seeds."""
        return fmean(self.by_seed.values())

    def shown(self, printed: float | None = None) -> str:
        """Mean, deviation, the difference to a printed value, and whether that lies in the noise.

        A printed value is one run; it is inside where a further seed of ours would lie.

        Args:
            printed: to be compared with.

        >>> Sample({1: 0.1, 2: 0.11, 3: 0.12}).shown(0.121)
        '0.1100 ± 0.0100, -9.1 %, inside'
        """
        text = f"{self.mean:.4f}"
        if len(self.by_seed) > 1:
            text += f" ± {stdev(self.by_seed.values()):.4f}"
        if printed is None:
            return text
        text += f", {percent(self.mean / printed - 1)}"
        is_inside = is_inside_noise(self.by_seed.values(), printed)
        if is_inside is not None:
            text += ", inside" if is_inside else ", outside"
        return text


@dataclass(frozen=True)
class Summary:
    """One cell over its seeds.

    Args:
        columns: of its first row.
        ours: by metric.
        published: printed values by metric, where there are any.
        is_selected_on_test: whether the epoch was chosen on the test part.
    """

    columns: Row
    ours: Mapping[str, Sample]
    published: Mapping[str, float]
    is_selected_on_test: bool

    def __getitem__(self, name: str) -> str:
        return self.columns[name]

    @property
    def n_seeds(self) -> int:
        """How many runs it has."""
        return len(next(iter(self.ours.values())).by_seed)

    @property
    def variant(self) -> tuple[str, str]:
        """How it was made: negatives (`sampled`, `distinct`, `catalog`) and protocol."""
        kind = self["mode"]
        if self["negatives"].endswith(DISTINCT):
            kind = "distinct"
        return kind, self["protocol"]


def percent(share: float) -> str:
    """With sign and one decimal.

    >>> percent(0.0234)
    '+2.3 %'
    """
    # Adding 0 takes the sign off a negative zero.
    return f"{round(100 * share, 1) + 0.0:+.1f} %"


def summarize(rows: Iterable[Row], metrics: Sequence[str]) -> list[Summary]:
    """Put the seeds of each cell together, in the order in which cells first come.

    Args:
        rows: of runs.
        metrics: as columns name them.
    """
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        without_seed = row | {"seed": ""}
        groups.setdefault((row["table"], *identity_of(without_seed)), []).append(row)
    return [_summary(group, metrics) for group in groups.values()]


def _summary(rows: list[Row], metrics: Sequence[str]) -> Summary:
    first = rows[0]
    ours = {}
    published = {}
    for metric in metrics:
        ours[metric] = Sample({int(row["seed"]): float(row[f"ours_{metric}"]) for row in rows})
        if first[f"published_{metric}"]:
            published[metric] = float(first[f"published_{metric}"])
    is_selected_on_test = any(row["selected_on_test"] == "True" for row in rows)
    return Summary(first, ours, published, is_selected_on_test)
