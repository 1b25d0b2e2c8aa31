"""The results of a reproduction, read from CSV files: a row per run, grouped into cells by seed."""

import csv
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pslrec.artifacts import ArtifactError
from pslrec.reporting._grouping import grouped
from pslrec.reporting._seed_noise import is_inside_noise

Row = Mapping[str, str]
NEEDED = ("dataset", "backbone", "loss", "seed")
OURS = "ours_"
ABBREVIATIONS = ("ndcg", "dcg", "map", "mrr", "auc")
# What tells one cell of a table from another: everything but the seed and what came out.
NAMED = ("dataset", "backbone", "loss", "form", "setting", "noise", "mode", "protocol")
# Settings that a table is usually too narrow to show, but that make runs different cells.
HYPER = ("temperature", "learning_rate", "weight_decay", "dimension", "negatives")
# What makes two rows rows of the same run; the table they stand in is not part of it.
RUN_COLUMNS = (*NAMED, "seed", *HYPER)


@dataclass(frozen=True)
class Gain:
    """The gain that a paper is about.

    Args:
        of: losses, of which the best counts.
        over: the loss they are compared with.
        name: what all those losses are called.
    """

    of: Sequence[str]
    over: str
    name: str = ""

    @property
    def title(self) -> str:
        """What is compared with what.

        >>> Gain(["A", "B"], "SL").title
        'the best of A, B over SL'
        """
        name = self.name or self.of[0]
        if not self.name and len(self.of) > 1:
            name = f"the best of {', '.join(self.of)}"
        return f"{name} over {self.over}"


@dataclass(frozen=True)
class Presentation:
    """How a paper wants its results shown; without one, as they stand in the files.

    Args:
        title: heading of the page.
        tables: titles by name, in the order to show them.
        losses: in the order of the tables.
        gain: what the tables are about.
        tolerance: a value within this share of the published one counts as close.
        other_reading: what the column of this name in the claims means.
        protocol: of the published values; runs by another one are not measured against them.
    """

    title: str = "Reproduction"
    tables: Mapping[str, str] = field(default_factory=dict)
    losses: Sequence[str] = ()
    gain: Gain | None = None
    tolerance: float = 0.02
    other_reading: str = ""
    protocol: str = ""


@dataclass(frozen=True)
class Result:
    """The runs of one cell, which differ in the seed only.

    Args:
        key: the columns of its first run, as they stand in the file.
        ours: our values by metric and seed.
        published: the published value by metric, where there is one.
        is_selected_on_test: whether the epoch of a run was chosen on the test part.
    """

    key: Row
    ours: Mapping[str, Mapping[str, float]]
    published: Mapping[str, float]
    is_selected_on_test: bool = False

    def __getitem__(self, name: str) -> str:
        return self.key.get(name) or ""

    def named(self, names: Iterable[str]) -> tuple[str, ...]:
        """The values of some of its columns; those that a file lacks are empty."""
        return columns_of(self.key, names)

    def by_seed(self, metric: str, *, is_published: bool = False) -> Mapping[str, float]:
        """Our values, or the published one, which has no seed: all cells name it alike."""
        if not is_published:
            return self.ours[metric]
        if metric not in self.published:
            return {}
        return {"": self.published[metric]}

    @property
    def is_usual(self) -> bool:
        """Whether it was made as in the paper.

        After a comma, a setting says what is unusual about it, such as a reading of the paper that
        does not fit it: such a cell is no attempt to come close.
        """
        return "," not in self["setting"]

    @property
    def n_runs(self) -> int:
        """How many seeds there are."""
        return max(map(len, self.ours.values()))

    def mean(self, metric: str) -> float | None:
        """Our mean over seeds; `None` where no run has the metric."""
        values = self.ours[metric].values()
        if not values:
            return None
        return statistics.fmean(values)

    def deviation(self, metric: str) -> float | None:
        """Our standard deviation over seeds; `None` for a single seed."""
        values = self.ours[metric].values()
        if len(values) < 2:
            return None
        return statistics.stdev(values)

    def difference(self, metric: str) -> float | None:
        """Our mean relative to the published value, minus 1."""
        ours = self.mean(metric)
        published = self.published.get(metric)
        if ours is None or not published:
            return None
        return ours / published - 1

    def is_inside_noise(self, metric: str) -> bool | None:
        """Whether one more run of ours could give the published value; `None` if unknown."""
        published = self.published.get(metric)
        if published is None:
            return None
        return is_inside_noise(self.ours[metric].values(), published)


def position(name: str, order: Iterable[str]) -> int:
    """Where a name stands; names that are not listed come last.

    >>> position("SL", ["BPR", "SL"]), position("new", ["BPR", "SL"])
    (1, 2)
    """
    listed = list(order)
    if name in listed:
        return listed.index(name)
    return len(listed)


def metrics_of(rows: Sequence[Row]) -> list[str]:
    """The metrics that a table has, in the order of its columns.

    >>> metrics_of([{"loss": "SL", "ours_recall20": "0.1", "published_recall20": "0.1"}])
    ['recall20']
    """
    found = []
    for row in rows[:1]:
        for name in row:
            if name.startswith(OURS):
                found.append(name.removeprefix(OURS))
    return found


def metric_title(metric: str) -> str:
    """A metric as people write it.

    >>> metric_title("recall20"), metric_title("ndcg@20"), metric_title("tail_share@5")
    ('Recall@20', 'NDCG@20', 'Tail share@5')
    """
    name = metric.rstrip("0123456789")
    length = metric.removeprefix(name)
    name = name.removesuffix("@")
    title = name.replace("_", " ").capitalize()
    if name in ABBREVIATIONS:
        title = name.upper()
    return "@".join(filter(None, (title, length)))


def differing_columns(
    results: Sequence[Result], names: Iterable[str], *, ignore_empty: bool = False
) -> list[str]:
    """Find the columns that do not have the same value in all cells.

    Args:
        results: the cells.
        names: the columns to look at.
        ignore_empty: cells without a value do not count as different from the others.
    """
    found = []
    for name in names:
        values = {result[name] for result in results}
        if ignore_empty:
            values.discard("")
        if len(values) > 1:
            found.append(name)
    return found


def results_of(rows: Sequence[Row]) -> list[Result]:
    """Group the runs of a table into cells, in the order in which the cells first occur.

    Args:
        rows: a row per run; columns that a file lacks count as empty.
    """
    names = (*NAMED, *HYPER)
    groups = grouped(rows, lambda row: tuple(map(canonical, columns_of(row, names))))
    results = []
    for members in groups.values():
        ours = {}
        published = {}
        for metric in metrics_of(rows):
            ours[metric] = _by_seed(members, f"ours_{metric}")
            # The published value belongs to the cell, so every run of it repeats the same one.
            printed = number_in(members[0].get(f"published_{metric}"))
            if printed is not None:
                published[metric] = printed
        on_test = any(map(is_selected_on_test, members))
        results.append(Result(members[0], ours, published, on_test))
    return results


def is_selected_on_test(row: Row) -> bool:
    """Whether the epoch of a run was chosen on the test part."""
    # As Python writes it in our own files, or as others do.
    return row.get("selected_on_test", "").lower() == "true"


def columns_of(row: Row, names: Iterable[str]) -> tuple[str, ...]:
    """Some columns of a row; those that it lacks are empty.

    >>> columns_of({"loss": "SL"}, ("loss", "form"))
    ('SL', '')
    """
    return tuple(row.get(name) or "" for name in names)


def _by_seed(rows: Sequence[Row], column: str) -> dict[str, float]:
    found = {}
    for row in rows:
        value = number_in(row.get(column))
        if value is not None:
            found[row["seed"]] = value
    return found


def holds_results(directory: Path) -> bool:
    """Whether a CSV file in a directory is a table of results, by its header.

    Other files, such as somebody's log, are not taken for a reproduction.

    Args:
        directory: may hold anything, or be absent.
    """
    for file in sorted(directory.glob("*.csv")):
        try:
            with file.open(encoding="utf-8", errors="replace") as lines:
                header = next(csv.reader(lines), [])
        except (OSError, csv.Error):
            continue
        if set(NEEDED) <= set(header):
            return True
    return False


def read_results(file: Path) -> list[dict[str, str]]:
    """Read the rows of a table of results.

    Args:
        file: CSV whose first line names the columns.
    """
    rows = []
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            for record in csv.DictReader(lines):
                # A line that is too long has its surplus under the name None; in one that is too
                # short, the last values are None.
                record.pop(None, None)
                rows.append({name: text or "" for name, text in record.items()})
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ArtifactError(f"{file} cannot be read as CSV: {error}") from error
    return rows


def canonical(text: str) -> str:
    """A text that is equal for equal numbers, however they are written.

    >>> canonical("1e-5") == canonical("0.00001"), canonical("SL")
    (True, 'SL')
    """
    value = number_in(text)
    if value is None:
        return text
    return repr(value)


def number_in(text: str | None) -> float | None:
    """The finite number that a text stands for; `None` for any other text.

    >>> number_in("0.5"), number_in(""), number_in("nan")
    (0.5, None, None)
    """
    try:
        value = float(text or "")
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return value
