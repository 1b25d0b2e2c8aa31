"""Quality by seconds on Gowalla, in the split of the paper."""

from benchmarks._quality import QualityBySeconds
from benchmarks._quality_tables import Shown

BENCHMARK = QualityBySeconds(
    name="time_to_quality_gowalla",
    data="gowalla",
    shown=Shown(
        data="Gowalla",
        marks=(5, 10, 20, 40, 80, 160, 320),
        headline_marks=(10, 40, 160),
        goal=0.15,
        lowest=0.1,
    ),
    ours=(("auto", 64), ("fast", 64)),
    # The matrix of EASE would have 1.7 billion entries.
    searched=("ialspp",),
)
DESCRIPTION = BENCHMARK.description
run = BENCHMARK.run
search = BENCHMARK.search
plots = BENCHMARK.plots
markdown = BENCHMARK.markdown
headline = BENCHMARK.headline
