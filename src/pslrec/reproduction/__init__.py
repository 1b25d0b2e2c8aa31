"""Papers as folders of data: their cells are run, and compared with what was printed."""

from pslrec.reporting import TextTable
from pslrec.reproduction._cells import Cell, identity_of
from pslrec.reproduction._grid import Choice, Grid
from pslrec.reproduction._overview import presentation_of
from pslrec.reproduction._paper import find_paper, included_papers
from pslrec.reproduction._reproducing import Places, Reproduction
from pslrec.reproduction._results import Results
from pslrec.reproduction._running import State, Task, current_commit

__all__ = [
    "Cell",
    "Choice",
    "Grid",
    "Places",
    "Reproduction",
    "Results",
    "State",
    "Task",
    "TextTable",
    "current_commit",
    "find_paper",
    "identity_of",
    "included_papers",
    "presentation_of",
]
