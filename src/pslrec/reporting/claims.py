"""The claims of a paper in a report: how many hold, and by how much."""

from collections import Counter
from collections.abc import Sequence

from pslrec.reporting.document import MISSING, Block, Cell, Mark, Table, Text, Tile, Tiles, number, words
from pslrec.reporting.results import Row, number_in

NEEDED = ("claim", "dataset", "backbone", "mode", "protocol", "verdict", "value_pct", "low_pct", "high_pct", "seeds")
VERDICTS: dict[str, Mark] = {"holds": "better", "fails": "worse", "inside noise": "", "needs seeds": "muted"}


def claims_blocks(rows: Sequence[Row]) -> list[Block]:
    """Verdicts in short, then every claim with its number; nothing if the rows are none of claims.

    Args:
        rows: of `claims.csv`.
    """
    if not rows or any(name not in rows[0] for name in NEEDED):
        return []
    counts = Counter(row["verdict"] for row in rows)
    tiles = [Tile(verdict.capitalize(), str(counts[verdict])) for verdict in VERDICTS if counts[verdict]]
    caption = (
        "Each number, in percentage points, is claimed to be above 0: a claim holds if the interval over seeds lies above 0, "
        "fails if below, and is inside the noise otherwise"
    )
    columns = ["claim", "where", "verdict", "value", "95 % interval", "seeds", "published"]
    return [Tiles(tiles), Table(caption, columns, [_cells(row) for row in rows]), Text(_missing(counts), "note")]


def _cells(row: Row) -> list[Cell]:
    where = f"{row['backbone']} on {row['dataset']}, {row['mode']}, {row['protocol']}"
    low, high = (number_in(row[name]) for name in ("low_pct", "high_pct"))
    interval = MISSING if low is None or high is None else f"{low:+.2f} to {high:+.2f}"
    return [
        words(row["claim"]),
        words(where),
        words(row["verdict"], VERDICTS.get(row["verdict"], "")),
        number(number_in(row["value_pct"]), "+.2f"),
        words(interval),
        words(row["seeds"]),
        number(number_in(row.get("published_pct")), "+.2f"),
    ]


def _missing(counts: Counter[str]) -> str:
    n_open = counts["needs seeds"]
    return f"{n_open} of them need three seeds for a verdict." if n_open else "All of them have three seeds or more."
