"""Reports: one self-contained HTML file about a run, a comparison of runs, or a reproduction."""

from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import Area, Series, histogram, line_chart
from pslrec.reporting._document import Chart
from pslrec.reporting._improvement import gain_over
from pslrec.reporting._reproduction import reproduction_report
from pslrec.reporting._results import LOSS_ORDER, PROPOSED, TITLES
from pslrec.reporting._runs import run_report
from pslrec.reporting._surrogates import activations, weights
from pslrec.reporting._svg import element

__all__ = [
    "LOSS_ORDER",
    "PROPOSED",
    "TITLES",
    "Area",
    "Axis",
    "Chart",
    "Series",
    "activations",
    "element",
    "gain_over",
    "histogram",
    "line_chart",
    "reproduction_report",
    "run_report",
    "weights",
]
