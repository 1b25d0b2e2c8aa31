"""Scorers that no loss trains, for honest comparison, one file each.

`BASELINES` knows them by name.
"""

from pslrec.baselines._base import BASELINES, Baseline
from pslrec.baselines.ease import EASE
from pslrec.baselines.ials import ImplicitALS
from pslrec.baselines.item_knn import ItemKNN
from pslrec.baselines.popularity import Popularity
from pslrec.registry import import_parts

# A new file in this package registers itself.
import_parts(__name__, __path__)

__all__ = ["BASELINES", "EASE", "Baseline", "ImplicitALS", "ItemKNN", "Popularity"]
