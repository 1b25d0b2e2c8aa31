"""Quality by seconds on Amazon-Electronic."""

from benchmarks._quality import QualityBySeconds
from benchmarks._quality_tables import Shown

BENCHMARK = QualityBySeconds(
    name="time_to_quality",
    data="electronic",
    shown=Shown(
        data="Amazon-Electronic",
        marks=(1, 2, 5, 10, 20, 30, 60),
        headline_marks=(2, 5, 20, 60),
        goal=0.0525,
        lowest=0.04,
    ),
    ours=(("auto", 64), ("auto", 256), ("auto", 512), ("fast", 64)),
)
DESCRIPTION = BENCHMARK.description
run = BENCHMARK.run
search = BENCHMARK.search
plots = BENCHMARK.plots
markdown = BENCHMARK.markdown
headline = BENCHMARK.headline
