"""The sentences of a paper as checks on the results, each a number that is claimed to be above 0.

`claims.toml` says two sides and a relation. A side is a cell, or what one cell gains over another.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from pydantic import Field

from pslrec.reporting import BySeed, SeedVerdict, TextTable, grouped, verdict_over_seeds
from pslrec.reproduction._cells import DISTINCT
from pslrec.reproduction._paper import Strict, read_strict
from pslrec.reproduction._published import Row, fits
from pslrec.reproduction._results import CUTOFFS, Results

NAME = "claims"
FILE = f"{NAME}.toml"
PLACE = ("dataset", "backbone", "mode", "protocol")
OTHER_READING = "other_reading_pct"
COLUMNS = (
    "claim",
    *PLACE,
    "verdict",
    "value_pct",
    "low_pct",
    "high_pct",
    "seeds",
    "published_pct",
    OTHER_READING,
)
UNDECIDED = "needs seeds"
RULE = (
    "Every number is in percentage points and is claimed to be above 0. A claim holds if the 95 % "
    "confidence interval over seeds is above 0, fails if it is below, and is inside the noise "
    "otherwise (t-distribution; seeds paired, or, as in `3 and 1`, the deviation of the side that "
    "has three taken for both). Each is judged by itself: with so many, one or two may hold or "
    "fail by chance."
)


class Claim(Strict):
    """A sentence and what it says about cells, which are given by columns of the results.

    Args:
        text: the sentence.
        metric: of both sides, such as `ndcg@20`; other lengths are taken from `cutoffs.csv`.
        first: a cell; its seeds are compared with those of `second`.
        second: a cell; without one the claim is about 0, or `threshold`.
        first_over: turns the first side into the gain of `first` over this cell.
        second_over: the same for the second side.
        second_metric: of the second side, if it is another.
        relation: whether the first side is claimed to be `above` or `below` the second.
        threshold: by how much, as a share.
        unit: the side whose mean is 100 %, where both sides are cells.
        paired: only seeds that both sides have count.
    """

    text: str
    metric: str = "ndcg@20"
    first: dict[str, Any]
    second: dict[str, Any] | None = None
    first_over: dict[str, Any] | None = None
    second_over: dict[str, Any] | None = None
    second_metric: str = ""
    relation: Literal["above", "below"] = "above"
    threshold: float = 0.0
    unit: Literal["first", "second"] = "second"
    paired: bool = False

    def verdict(self, rows: Sequence[Row], source: str = "ours") -> SeedVerdict | None:
        """What rows of one place say about it; `None` where a cell is missing.

        Args:
            rows: of results.
            source: `ours`, or `published` for what the printed values say.
        """
        first = _side(rows, f"{source}_{self.metric}", self.first, self.first_over)
        second = None
        if self.second is not None:
            metric = self.second_metric or self.metric
            second = _side(rows, f"{source}_{metric}", self.second, self.second_over)
            if not second:
                return None
        if self.paired and second is not None:
            # How one side scatters says nothing about the other.
            common = sorted(first.keys() & second.keys())
            first = {seed: first[seed] for seed in common}
            second = {seed: second[seed] for seed in common}
        if not first:
            return None
        return self._directed(first, second)

    def _directed(self, first: BySeed, second: BySeed | None) -> SeedVerdict:
        unit = 1.0
        if second is not None and self.first_over is None:
            unit = fmean(second.values())
            if self.unit == "first":
                unit = fmean(first.values())
        sign = 1.0
        if self.relation == "below":
            sign = -1.0
        above = {seed: sign * value / unit - self.threshold for seed, value in first.items()}
        below = None
        if second is not None:
            below = {seed: sign * value / unit for seed, value in second.items()}
        return verdict_over_seeds(above, below)


class ClaimsFile(Strict):
    """What `claims.toml` holds.

    Args:
        defaults: allowed values of columns that a cell does not name.
        other_reading: a setting that takes the place of another, for a last column.
        other_reading_says: what that column means.
        note: a sentence for the page.
        claims: in the order to show them.
    """

    defaults: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    other_reading: dict[str, str] = Field(default_factory=dict)
    other_reading_says: str = ""
    note: str = ""
    claims: tuple[Claim, ...] = ()


def read_claims(folder: Path) -> ClaimsFile | None:
    """Read `claims.toml`; `None` where a paper has none.

    Args:
        folder: of the paper.
    """
    path = folder / FILE
    if not path.exists():
        return None
    return read_strict(path, ClaimsFile, purpose="hold claims")


def check(claims: ClaimsFile, results: Results) -> list[Row]:
    """Every claim in every place that has the runs for it, as rows of `claims.csv`.

    Args:
        claims: what is claimed.
        results: the directory of CSVs.
    """
    runs = results.rows_of_runs()
    evidence = []
    for row in (*runs, *map(_with_length, results.rows(CUTOFFS))):
        # Runs that draw their negatives in another way than the paper say nothing about it.
        if not row["negatives"].endswith(DISTINCT):
            evidence.append(row)
    others = []
    for setting, replacement in claims.other_reading.items():
        others += [row | {"setting": setting} for row in runs if row["setting"] == replacement]
    elsewhere = grouped(others, _place)
    found = []
    for place, rows in grouped(evidence, _place).items():
        for claim in claims.claims:
            complete = _with_defaults(claim, claims.defaults)
            ours = complete.verdict(rows)
            if ours is not None:
                low, high = ours.interval or (None, None)
                values = (
                    claim.text,
                    *place,
                    ours.verdict,
                    _percentage(ours.value),
                    _percentage(low),
                    _percentage(high),
                    ours.seeds,
                    _value(complete.verdict(rows, "published")),
                    _value(complete.verdict(elsewhere.get(place, []))),
                )
                found.append(dict(zip(COLUMNS, values, strict=True)))
    return found


def _place(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in PLACE)


def _with_length(row: Row) -> Row:
    """A row of `cutoffs.csv` with the columns that rows of runs have."""
    values = {f"ours_{metric}{row['k']}": row[metric] for metric in ("recall", "ndcg")}
    return row | values


def _with_defaults(claim: Claim, defaults: Mapping[str, tuple[Any, ...]]) -> Claim:
    update = {}
    for name in ("first", "second", "first_over", "second_over"):
        cell = getattr(claim, name)
        if cell is not None:
            update[name] = {**defaults, **cell}
    return claim.model_copy(update=update)


def _side(
    rows: Sequence[Row], metric: str, cell: Mapping[str, Any], over: Mapping[str, Any] | None
) -> BySeed:
    found = _by_seed(rows, metric, cell)
    if over is None:
        return found
    base = _by_seed(rows, metric, over)
    return {seed: value / base[seed] - 1 for seed, value in found.items() if base.get(seed)}


def _by_seed(rows: Sequence[Row], metric: str, cell: Mapping[str, Any]) -> BySeed:
    column = metric.replace("@", "")
    found: BySeed = {}
    for row in rows:
        if row.get(column) and fits(row, cell):
            seed = int(row["seed"])
            if column.startswith("published"):
                # What was printed has no seed: all rows of a cell repeat it.
                seed = 0
            # The metrics of the paper come first; `cutoffs.csv` repeats them.
            found.setdefault(seed, float(row[column]))
    return found


def _value(found: SeedVerdict | None) -> str:
    return _percentage(found.value if found is not None else None)


def _percentage(share: float | None) -> str:
    if share is None:
        return ""
    return f"{100 * share:.2f}"


def tables(rows: Sequence[Row], note: str = "") -> list[TextTable]:
    """The checks with a verdict, and below them those that need more seeds for one.

    Args:
        rows: of `check`.
        note: a sentence of the paper's own.
    """
    # Few papers can be read in two ways; others need no such column.
    has_readings = any(row[OTHER_READING] for row in rows)
    undecided = [row for row in rows if row["verdict"] == UNDECIDED]
    decided = [row for row in rows if row["verdict"] != UNDECIDED]
    says = "No claim has enough seeds yet."
    if decided:
        counts = Counter(row["verdict"] for row in decided)
        says = (
            f"Of {len(decided)}, {counts['holds']} hold, {counts['fails']} fail, "
            f"{counts['inside noise']} are inside the noise. {RULE} {note}"
        )
    found = [_table("The paper's claims", decided, says.rstrip(), has_readings)]
    if undecided:
        title = "Claims that need three seeds for a verdict"
        note = "Numbers as above, of too few runs."
        found.append(_table(title, undecided, note, has_readings))
    return found


def _table(title: str, rows: Sequence[Row], note: str, has_readings: bool) -> TextTable:
    header = ["claim", "where", "verdict", "value", "interval", "seeds", "published"]
    if has_readings:
        header.append("other reading")
    lines = []
    for row in rows:
        interval = ""
        if row["low_pct"]:
            interval = f"{row['low_pct']} to {row['high_pct']}"
        where = ", ".join(row[name] for name in PLACE)
        cells = [row["claim"], where, f"**{row['verdict']}**", row["value_pct"], interval]
        cells += [row["seeds"], row["published_pct"], row[OTHER_READING]]
        lines.append(cells[: len(header)])
    return TextTable(title, header, lines, [note], labels=3)
