"""From row numbers to user and item representations, one backbone per file.

`BACKBONES` knows them by name. A backbone of your own derives from `Backbone`, under
`@register_backbone("name")`; docs/how-to/own-backbone.md goes through it.
"""

from pslrec.backbones._base import (
    BACKBONES,
    NOT_SETTINGS,
    Backbone,
    ItemPart,
    NewUsers,
    Representations,
    register_backbone,
)
from pslrec.backbones._graph import Graph
from pslrec.backbones._initialization import initial_tables
from pslrec.backbones._tables import check_tables
from pslrec.backbones.history import History
from pslrec.backbones.lightgcn import LightGCN
from pslrec.backbones.mf import MatrixFactorization
from pslrec.backbones.xsimgcl import XSimGCL
from pslrec.registry import import_parts

# A new file in this package registers itself; the imports above are for people who use one
# backbone alone.
import_parts(__name__, __path__)

__all__ = [
    "BACKBONES",
    "NOT_SETTINGS",
    "Backbone",
    "Graph",
    "History",
    "ItemPart",
    "LightGCN",
    "MatrixFactorization",
    "NewUsers",
    "Representations",
    "XSimGCL",
    "check_tables",
    "initial_tables",
    "register_backbone",
]
