"""The sentences of a paper as checks on the results, each a number that is claimed to be above 0.

`claims.toml` says two sides and a relation. A side is a cell, or what one cell gains over another.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pslrec.errors import ConfigError
from pslrec.files import read_toml
from pslrec.reporting import BySeed, TextTable, verdict_over_seeds
from pslrec.reproduction._cells import DISTINCT
from pslrec.reproduction._published import Row, fits
from pslrec.reproduction._results import CUTOFFS, Results

NAME = "claims"
FILE = f"{NAME}.toml"
PLACE = ("dataset", "backbone", "mode", "protocol")
OTHER_READING = "other_reading_pct"
NUMBERS = ("value_pct", "low_pct", "high_pct")
COLUMNS = ("claim", *PLACE, "verdict", *NUMBERS, "seeds", "published_pct", OTHER_READING)
UNDECIDED = "needs seeds"
RULE = (
    "Every number is in percentage points and is claimed to be above 0. A claim holds if the 95 % "
    "confidence interval over seeds is above 0, fails if it is below, and is inside the noise "
    "otherwise (t-distribution; seeds paired, or, as in `3 and 1`, the deviation of the side that "
    "has three taken for both). Each is judged by itself: with so many, one or two may hold or "
    "fail by chance."
)
# Values by seed, of ours or as printed, by place and metric.
Values = list[tuple[Row, str, float]]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Claim(_Strict):
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

    def sides(self, values: Values) -> tuple[BySeed, BySeed | None] | None:
        """What to compare; `None` where a cell is missing."""
        first = _side(values, self.metric, self.first, self.first_over)
        second = None
        if self.second is not None:
            metric = self.second_metric or self.metric
            second = _side(values, metric, self.second, self.second_over)
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

    def _directed(self, first: BySeed, second: BySeed | None) -> tuple[BySeed, BySeed | None]:
        unit = 1.0
        if second is not None and self.first_over is None:
            unit = fmean(second.values())
            if self.unit == "first":
                unit = fmean(first.values())
        sign = 1.0
        if self.relation == "below":
            sign = -1.0
        above = {}
        for seed, value in first.items():
            above[seed] = sign * value / unit - self.threshold
        if second is None:
            return above, None
        return above, {seed: sign * value / unit for seed, value in second.items()}


class ClaimsFile(_Strict):
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
    try:
        return ClaimsFile.model_validate(read_toml(path, error=ConfigError))
    except ValidationError as error:
        raise ConfigError(f"{path} does not hold claims: {error}") from error


def check(claims: ClaimsFile, results: Results) -> list[Row]:
    """Every claim in every place that has the runs for it, as rows of `claims.csv`.

    Args:
        claims: what is claimed.
        results: the directory of CSVs.
    """
    plain = _plain_rows(results.rows_of_runs())
    lengths = _plain_rows(results.rows(CUTOFFS))
    others = []
    for row in results.rows_of_runs():
        for setting, replacement in claims.other_reading.items():
            if row["setting"] == replacement:
                others.append(row | {"setting": setting})
    found = []
    for place in dict.fromkeys(map(_place, [*plain, *lengths])):
        here = [row for row in plain if _place(row) == place]
        ours = _values(here, results.metrics, "ours")
        printed = _values(here, results.metrics, "published")
        elsewhere = [row for row in others if _place(row) == place]
        other = _values(elsewhere, results.metrics, "ours")
        for row in lengths:
            if _place(row) == place:
                for metric in ("recall", "ndcg"):
                    ours.append((row, f"{metric}{row['k']}", float(row[metric])))
        for claim in claims.claims:
            complete = _with_defaults(claim, claims.defaults)
            sides = complete.sides(ours)
            if sides is not None:
                row = _row(claim.text, place, verdict_over_seeds(*sides))
                row["published_pct"] = _percentage(complete, printed)
                row[OTHER_READING] = _percentage(complete, other)
                found.append(row)
    return found


def _place(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in PLACE)


def _plain_rows(rows: Iterable[Row]) -> list[Row]:
    """Runs that draw their negatives in another way than the paper are no evidence."""
    return [row for row in rows if not row["negatives"].endswith(DISTINCT)]


def _values(rows: Iterable[Row], metrics: Sequence[str], source: str) -> Values:
    found = []
    for row in rows:
        for metric in metrics:
            text = row[f"{source}_{metric}"]
            if text:
                # What was printed has no seed: all rows of a cell repeat it.
                seed = row["seed"] if source == "ours" else "0"
                found.append((row | {"seed": seed}, metric, float(text)))
    return found


def _with_defaults(claim: Claim, defaults: Mapping[str, tuple[Any, ...]]) -> Claim:
    update = {}
    for name in ("first", "second", "first_over", "second_over"):
        cell = getattr(claim, name)
        if cell is not None:
            update[name] = {**defaults, **cell}
    return claim.model_copy(update=update)


def _side(
    values: Values, metric: str, cell: Mapping[str, Any], over: Mapping[str, Any] | None
) -> BySeed:
    found = _by_seed(values, metric, cell)
    if over is None:
        return found
    base = _by_seed(values, metric, over)
    gains = {}
    for seed, value in found.items():
        if base.get(seed):
            gains[seed] = value / base[seed] - 1
    return gains


def _by_seed(values: Values, metric: str, cell: Mapping[str, Any]) -> BySeed:
    column = metric.replace("@", "")
    found: BySeed = {}
    for row, name, value in values:
        if name == column and fits(row, cell):
            # The metrics of the paper come first; `cutoffs.csv` repeats them.
            found.setdefault(int(row["seed"]), value)
    return found


def _row(text: str, place: tuple[str, ...], found: Any) -> Row:
    low, high = found.interval or (None, None)
    row = {"claim": text, **dict(zip(PLACE, place, strict=True))}
    row |= {"verdict": found.verdict, "seeds": found.seeds}
    for name, number in zip(NUMBERS, (found.value, low, high), strict=True):
        row[name] = _shown(number)
    return row


def _percentage(claim: Claim, values: Values) -> str:
    sides = claim.sides(values)
    if sides is None:
        return ""
    return _shown(verdict_over_seeds(*sides).value)


def _shown(share: float | None) -> str:
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
