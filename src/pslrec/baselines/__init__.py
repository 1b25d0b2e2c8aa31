"""Scorers that no loss trains, for honest comparison, one file each; `BASELINES` knows them by name."""

from pslrec.baselines.base import BASELINES, Baseline
from pslrec.baselines.popularity import Popularity

__all__ = ["BASELINES", "Baseline", "Popularity"]
