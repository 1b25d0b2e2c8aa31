"""Scorers that no loss trains, for honest comparison, one file each.

`BASELINES` knows them by name.
"""

from pslrec.baselines._base import BASELINES, Baseline, SearchSpace
from pslrec.baselines._common_users import CommonUsers
from pslrec.baselines._walks import walk_matrix
from pslrec.baselines.ease import EASE
from pslrec.baselines.edlae import EDLAE
from pslrec.baselines.gf_cf import GFCF
from pslrec.baselines.ials import ImplicitALS
from pslrec.baselines.item_knn import ItemKNN
from pslrec.baselines.popularity import Popularity
from pslrec.baselines.rp3beta import RP3Beta
from pslrec.baselines.slim import SLIM
from pslrec.baselines.turbo_cf import TurboCF
from pslrec.registry import import_parts

# A new file in this package registers itself.
import_parts(__name__, __path__)

__all__ = [
    "BASELINES",
    "EASE",
    "EDLAE",
    "GFCF",
    "SLIM",
    "Baseline",
    "CommonUsers",
    "ImplicitALS",
    "ItemKNN",
    "Popularity",
    "RP3Beta",
    "SearchSpace",
    "TurboCF",
    "walk_matrix",
]
