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
VERDICTS: dict[str, Mark] = {
    "holds": "better",
    "fails": "worse",
    "inside noise": "",
    "needs seeds": "muted",
}
CAPTION = (
    "Each number, in percentage points, is claimed to be above 0: a claim holds if the interval over seeds lies above 0, "
    "fails if below, and is inside the noise otherwise"
)
COLUMNS = ("claim", "verdict", "value", "95 % interval", "seeds", "published", "where")


def claims_blocks(rows: Sequence[Row]) -> list[Block]:
    """Verdicts in short, then every claim with its number, those without a verdict folded; none of other rows.

    Args:
        rows: of `claims.csv`.
    """
    if not rows or any(name not in rows[0] for name in NEEDED):
        return []
    counts = Counter(row["verdict"] for row in rows)
    tiles = [
        Tile(verdict.capitalize(), str(counts[verdict])) for verdict in VERDICTS if counts[verdict]
    ]
    judged, unjudged = (
        [row for row in rows if (row["verdict"] == "needs seeds") is wanted]
        for wanted in (False, True)
    )
    blocks: list[Block] = [Tiles(tiles)]
    if judged:
        blocks.append(Table(CAPTION, COLUMNS, [_cells(row) for row in judged]))
    if unjudged:
        table = Table(
            "Numbers of too few seeds to say anything", COLUMNS, [_cells(row) for row in unjudged]
        )
        blocks.append(Fold(f"{len(unjudged)} more that need three seeds for a verdict", [table]))
    return blocks


def _cells(row: Row) -> list[Cell]:
    where = f"{row['backbone']} on {row['dataset']}, {row['mode']}, {row['protocol']}"
    low, high = (number_in(row[name]) for name in ("low_pct", "high_pct"))
    interval = MISSING if low is None or high is None else f"{low:+.2f} to {high:+.2f}"
    return [
        words(row["claim"]),
        words(row["verdict"], VERDICTS.get(row["verdict"], "")),
        number(number_in(row["value_pct"]), "+.2f"),
        words(interval),
        words(row["seeds"]),
        number(number_in(row.get("published_pct")), "+.2f"),
        words(where),
    ]
