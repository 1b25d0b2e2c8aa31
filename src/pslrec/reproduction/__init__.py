"""Papers as folders of data: their cells are run, and compared with what was printed."""

from pslrec.reproduction._grid import Choice, Grid
from pslrec.reproduction._paper import find_paper, included_papers
from pslrec.reproduction._reproducing import Places, Reproduction, presentation_of
from pslrec.reproduction._running import State, Task
from pslrec.reproduction._tabular import TextTable

__all__ = [
    "Choice",
    "Grid",
    "Places",
    "Reproduction",
    "State",
    "Task",
    "TextTable",
    "find_paper",
    "included_papers",
    "presentation_of",
]
