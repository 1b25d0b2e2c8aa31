"""Reports: one self-contained HTML file about a run, several of them, a study, or a reproduction."""

from pslrec.reporting._agreement import Agreement, agreement_chart, agreement_of
from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import Area, Series, histogram, line_chart
from pslrec.reporting._comparison_study import (
    contestant_table,
    pair_table,
    rank_chart,
    settings_in_words,
)
from pslrec.reporting._document import Chart, plus_minus
from pslrec.reporting._grouping import grouped
from pslrec.reporting._improvement import best_gain
from pslrec.reporting._reproduction import reproduction_report
from pslrec.reporting._results import (
    RUN_COLUMNS,
    Gain,
    Presentation,
    Result,
    canonical,
    holds_results,
    metric_title,
    position,
    read_results,
    results_of,
)
from pslrec.reporting._runs import run_report
from pslrec.reporting._seed_noise import (
    ENOUGH_SEEDS,
    BySeed,
    SeedVerdict,
    is_inside_noise,
    verdict_over_seeds,
)
from pslrec.reporting._standalone import standalone_svg, write_chart, write_svg
from pslrec.reporting._stress_study import SAYS as STRESS_SAYS
from pslrec.reporting._stress_study import stress_chart, stress_tables
from pslrec.reporting._studies import is_study, study_report
from pslrec.reporting._study_charts import quality_chart
from pslrec.reporting._surrogates import activations, weights
from pslrec.reporting._text_table import Sheet, TextTable, latex_text

__all__ = [
    "ENOUGH_SEEDS",
    "RUN_COLUMNS",
    "STRESS_SAYS",
    "Agreement",
    "Area",
    "Axis",
    "BySeed",
    "Chart",
    "Gain",
    "Presentation",
    "Result",
    "SeedVerdict",
    "Series",
    "Sheet",
    "TextTable",
    "activations",
    "agreement_chart",
    "agreement_of",
    "best_gain",
    "canonical",
    "contestant_table",
    "grouped",
    "histogram",
    "holds_results",
    "is_inside_noise",
    "is_study",
    "latex_text",
    "line_chart",
    "metric_title",
    "pair_table",
    "plus_minus",
    "position",
    "quality_chart",
    "rank_chart",
    "read_results",
    "reproduction_report",
    "results_of",
    "run_report",
    "settings_in_words",
    "standalone_svg",
    "stress_chart",
    "stress_tables",
    "study_report",
    "verdict_over_seeds",
    "weights",
    "write_chart",
    "write_svg",
]
