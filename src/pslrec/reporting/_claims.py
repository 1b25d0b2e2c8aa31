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
    Tile,
    Tiles,
    number,
    words,
)
from pslrec.reporting._results import Row, number_in

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
CAPTION = (
    "Each number, in percentage points, is claimed to be above 0: a claim holds if the interval over seeds lies above 0, "
    "fails if below, and is inside the noise otherwise"
)
COLUMNS = ("claim", "verdict", "value", "95 % interval", "seeds", "published", "where")


def claims_blocks(rows: Sequence[Row]) -> list[Block]:
    """Count the verdicts, then show every claim with its number, those without a verdict folded.

    Args:
        rows: the rows of `claims.csv`; nothing comes out if they lack the columns of that file.
    """
    if not rows or not set(NEEDED) <= rows[0].keys():
        return []
    decided = []
    undecided = []
    for row in rows:
        if row["verdict"] == UNDECIDED:
            undecided.append(_cells(row))
        else:
            decided.append(_cells(row))

    counts = Counter(row["verdict"] for row in rows)
    # In the order of `VERDICTS`, whatever comes first in the file.
    present = [verdict for verdict in VERDICTS if counts[verdict]]
    tiles = [Tile(verdict.capitalize(), str(counts[verdict])) for verdict in present]
    blocks: list[Block] = [Tiles(tiles)]
    if decided:
        blocks.append(Table(CAPTION, COLUMNS, decided))
    if undecided:
        table = Table("Numbers of too few seeds to say anything", COLUMNS, undecided)
        summary = f"{len(undecided)} more that need three seeds for a verdict"
        blocks.append(Fold(summary, [table]))
    return blocks


def _cells(row: Row) -> list[Cell]:
    low = number_in(row["low_pct"])
    high = number_in(row["high_pct"])
    interval = MISSING
    if low is not None and high is not None:
        interval = f"{low:+.2f} to {high:+.2f}"
    where = f"{row['backbone']} on {row['dataset']}, {row['mode']}, {row['protocol']}"
    return [
        words(row["claim"]),
        words(row["verdict"], VERDICTS.get(row["verdict"], "")),
        number(number_in(row["value_pct"]), "+.2f"),
        words(interval),
        words(row["seeds"]),
        number(number_in(row.get("published_pct")), "+.2f"),
        words(where),
    ]
