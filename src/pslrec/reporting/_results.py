"""Results of a reproduction as they lie in CSV files: a row per run, put together by seed."""

import csv
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy import stats

from pslrec.artifacts import ArtifactError

Row = Mapping[str, str]
METRICS = ("recall20", "ndcg20")
TITLES = {"recall20": "Recall@20", "ndcg20": "NDCG@20"}
NEEDED = ("dataset", "backbone", "loss", "seed", "ours_recall20", "ours_ndcg20")
# What tells one cell of a table from another; everything but the seed and what came out.
NAMED = ("dataset", "backbone", "loss", "form", "setting", "noise", "mode", "protocol")
# As the paper prints them, its own after those it is compared with; others come last.
_PRINTED = (
    "BPR",
    "LLPAUC",
    "SL",
    "AdvInfoNCE",
    "BSL",
    "PSL-tanh",
    "PSL-atan",
    "PSL-relu",
    "PSL-softplus",
    "SL@20",
)
# Those the paper proposes; PSL-softplus is its counterexample.
PROPOSED = ("PSL-tanh", "PSL-atan", "PSL-relu")
LOSS_ORDER = {name: place for place, name in enumerate(_PRINTED)}
HYPER = ("temperature", "learning_rate", "weight_decay", "dimension", "negatives")


@dataclass(frozen=True)
class Result:
    """Runs of one cell that differ in the seed only.

    Args:
        key: its columns.
        ours: our values by metric and seed.
        published: by metric, where there is one.
    """

    key: Mapping[str, str]
    ours: Mapping[str, Mapping[str, float]]
    published: Mapping[str, float]

    def mean(self, metric: str) -> float | None:
        """Mean of ours over seeds."""
        return statistics.fmean(self.ours[metric].values()) if self.ours[metric] else None

    def deviation(self, metric: str) -> float | None:
        """Standard deviation over seeds, if there are several."""
        return statistics.stdev(self.ours[metric].values()) if len(self.ours[metric]) > 1 else None

    def difference(self, metric: str) -> float | None:
        """Relative difference of ours to the published value."""
        ours, published = self.mean(metric), self.published.get(metric)
        return None if ours is None or not published else ours / published - 1

    def is_inside_noise(self, metric: str) -> bool | None:
        """Whether one more run of ours could give the published value; `None` below three seeds.

        The bound is the 95 % prediction interval for a single run: t s √(1 + 1/n), with t of n - 1 degrees of freedom.
        """
        values, published = list(self.ours[metric].values()), self.published.get(metric)
        if len(values) < 3 or published is None:
            return None
        reach = (
            float(stats.t.ppf(0.975, len(values) - 1))
            * statistics.stdev(values)
            * math.sqrt(1 + 1 / len(values))
        )
        return abs(statistics.fmean(values) - published) <= reach


def results_of(rows: Sequence[Row]) -> list[Result]:
    """The cells of a table, seeds put together, in the order of the rows.

    Args:
        rows: a row per run.
    """
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) or "" for name in (*NAMED, *HYPER)), []).append(row)
    found = []
    for key, members in groups.items():
        ours = {m: _by_seed(members, f"ours_{m}") for m in METRICS}
        published = {
            m: v for m in METRICS if (v := number_in(members[0].get(f"published_{m}"))) is not None
        }
        found.append(Result(dict(zip((*NAMED, *HYPER), key, strict=True)), ours, published))
    return found


def _by_seed(rows: Sequence[Row], column: str) -> dict[str, float]:
    return {row["seed"]: value for row in rows if (value := number_in(row.get(column))) is not None}


def read_results(file: Path) -> list[dict[str, str]]:
    """The rows of a table of results.

    Args:
        file: CSV with a line of names.
    """
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            return [
                {str(k): v or "" for k, v in row.items() if k is not None}
                for row in csv.DictReader(lines)
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ArtifactError(f"{file} can not be read as CSV: {error}") from error


def number_in(text: str | None) -> float | None:
    """The finite number that a text stands for, if it does.

    >>> number_in("0.5"), number_in(""), number_in("nan")
    (0.5, None, None)
    """
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None
