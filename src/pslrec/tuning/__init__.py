"""Search for settings: a grid of runs, chosen on validation, the test part opened for the chosen one alone."""

from pslrec.tuning.grid import Cell, Grid, default_grid, grid_cells
from pslrec.tuning.outcomes import CellOutcome, TuningResult
from pslrec.tuning.schedule import halving_rounds
from pslrec.tuning.study import CellFinished, CellStarted, tune

__all__ = [
    "Cell",
    "CellFinished",
    "CellOutcome",
    "CellStarted",
    "Grid",
    "TuningResult",
    "default_grid",
    "grid_cells",
    "halving_rounds",
    "tune",
]
