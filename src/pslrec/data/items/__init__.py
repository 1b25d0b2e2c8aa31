"""Item tables: titles and categories of items, and conditions on them."""

from pslrec.data.items._columns import ItemColumn
from pslrec.data.items._conditions import Condition
from pslrec.data.items._reading import TableFile
from pslrec.data.items._table import ItemTable

__all__ = ["Condition", "ItemColumn", "ItemTable", "TableFile"]
