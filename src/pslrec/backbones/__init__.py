"""From row numbers to user and item representations, one backbone per file; `BACKBONES` knows them by name."""

from pslrec.backbones.base import BACKBONES, Backbone, NewUsers, Representations
from pslrec.backbones.initialization import initial_tables
from pslrec.backbones.lightgcn import LightGCN
from pslrec.backbones.mf import MatrixFactorization
from pslrec.backbones.xsimgcl import XSimGCL

__all__ = [
    "BACKBONES",
    "Backbone",
    "LightGCN",
    "MatrixFactorization",
    "NewUsers",
    "Representations",
    "XSimGCL",
    "initial_tables",
]
