"""The item table of a run: titles and categories, which travel with the model."""

from pathlib import Path

from pslrec.artifacts._format import ArtifactError
from pslrec.data import Vocabulary
from pslrec.data.items import ItemTable

ITEM_TABLE_FILE = "item-table.parquet"


def read_item_table(path: Path, items: Vocabulary) -> ItemTable | None:
    """Read the item table of a run; `None` if it was given none.

    Args:
        path: the run directory.
        items: ids of the model's items.
    """
    file = path / ITEM_TABLE_FILE
    if not file.exists():
        return None
    return ItemTable.saved_in(file, items, error=ArtifactError)


def write_item_table(path: Path, table: ItemTable | None) -> None:
    """Put an item table into a run directory in the place of the one that is there.

    Args:
        path: the run directory.
        table: `None` leaves the run without one.
    """
    file = path / ITEM_TABLE_FILE
    if table is None:
        file.unlink(missing_ok=True)
    else:
        table.save(file, error=ArtifactError)
