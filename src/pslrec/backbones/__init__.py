"""From row numbers to user and item representations, one backbone per file; `BACKBONES` knows them by name."""

from pslrec.backbones._base import (
    BACKBONES,
    NOT_SETTINGS,
    Backbone,
    NewUsers,
    Representations,
    register_backbone,
)
from pslrec.backbones._graph import Graph
from pslrec.backbones._initialization import initial_tables
from pslrec.backbones._tables import check_tables
from pslrec.backbones.lightgcn import LightGCN
from pslrec.backbones.mf import MatrixFactorization
from pslrec.backbones.xsimgcl import XSimGCL
from pslrec.registry import import_parts

# A file put here is a backbone by itself; the imports above are for those who use one alone.
import_parts(__name__, __path__)

__all__ = [
    "BACKBONES",
    "NOT_SETTINGS",
    "Backbone",
    "Graph",
    "LightGCN",
    "MatrixFactorization",
    "NewUsers",
    "Representations",
    "XSimGCL",
    "check_tables",
    "initial_tables",
    "register_backbone",
]
