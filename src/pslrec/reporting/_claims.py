"""The claims of a paper in a report: how many hold, and by how much."""

from collections import Counter
from collections.abc import Sequence

from pslrec.reporting._document import (
    MISSING,
    Block,
    Cell,
    Fold,
    Mark,
    Table,
    Text,
    Tile,
    Tiles,
    number,
    words,
)
from pslrec.reporting._grouping import grouped
from pslrec.reporting._results import Row, number_in

# A file without these columns is some other table that happens to be called claims.
NEEDED = (
    "claim",
    "dataset",
    "backbone",
    "mode",
    "protocol",
    "verdict",
    "value_pct",
    "low_pct",
    "high_pct",
    "seeds",
)
UNDECIDED = "needs seeds"
VERDICTS: dict[str, Mark] = {
    "holds": "better",
    "fails": "worse",
    "inside noise": "",
    UNDECIDED: "muted",
}
OTHER_READING = "other_reading_pct"
CAPTION = (
    "Every number is in percentage points and is claimed to be above 0: a claim holds if the "
    "95 % confidence interval over seeds lies above 0, fails if it lies below, and is inside the "
    "noise otherwise"
)


def claims_blocks(rows: Sequence[Row], other_reading: str = "") -> list[Block]:
    """Count the verdicts, then show every claim with its number, those without a verdict folded.

    Args:
        rows: the rows of `claims.csv`; nothing comes out if they lack the columns of that file.
        other_reading: what the column of this name means.
    """
    if not rows or not set(NEEDED) <= rows[0].keys():
        return []
    # Few papers can be read in two ways; others need no such column.
    has_readings = any(row.get(OTHER_READING) for row in rows)
    columns = ["claim", "verdict", "value", "95 % interval", "seeds", "published"]
    if has_readings:
        columns.append("other reading")
    columns.append("where")
    groups = grouped(rows, lambda row: row["verdict"] == UNDECIDED)
    decided = [_cells(row, has_readings=has_readings) for row in groups.get(False, [])]
    undecided = [_cells(row, has_readings=has_readings) for row in groups.get(True, [])]
    counts = Counter(row["verdict"] for row in rows)
    tiles = []
    # In the order of `VERDICTS`, whatever comes first in the file.
    for verdict in VERDICTS:
        if counts[verdict]:
            tiles.append(Tile(verdict.capitalize(), str(counts[verdict])))
    blocks: list[Block] = [Tiles(tiles)]
    if decided:
        blocks.append(Table(CAPTION, columns, decided))
    if has_readings and other_reading:
        blocks.append(Text(other_reading, "note"))
    if undecided:
        table = Table("Numbers from too few seeds for a verdict", columns, undecided)
        summary = f"{len(undecided)} more that need three seeds for a verdict"
        blocks.append(Fold(summary, [table]))
    return blocks


def _cells(row: Row, *, has_readings: bool) -> list[Cell]:
    low = number_in(row["low_pct"])
    high = number_in(row["high_pct"])
    interval = MISSING
    if low is not None and high is not None:
        interval = f"{low:+.2f} to {high:+.2f}"
    cells = [
        words(row["claim"]),
        words(row["verdict"], VERDICTS.get(row["verdict"], "")),
        number(number_in(row["value_pct"]), "+.2f"),
        words(interval),
        words(row["seeds"]),
        number(number_in(row.get("published_pct")), "+.2f"),
    ]
    if has_readings:
        cells.append(number(number_in(row.get(OTHER_READING)), "+.2f"))
    where = f"{row['backbone']} on {row['dataset']}, {row['mode']}, {row['protocol']}"
    cells.append(words(where))
    return cells
