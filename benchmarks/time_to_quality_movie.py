"""Quality by seconds on Amazon-Movie."""

from benchmarks._quality import QualityBySeconds
from benchmarks._quality_tables import Shown

BENCHMARK = QualityBySeconds(
    name="time_to_quality_movie",
    data="movie",
    shown=Shown(
        data="Amazon-Movie",
        marks=(5, 10, 20, 40, 80, 160, 320),
        headline_marks=(10, 40, 160),
        goal=0.09,
        lowest=0.05,
    ),
    ours=(("auto", 64), ("auto", 256), ("fast", 64)),
    searched=("ialspp", "ease"),
)
DESCRIPTION = BENCHMARK.description
run = BENCHMARK.run
search = BENCHMARK.search
plots = BENCHMARK.plots
markdown = BENCHMARK.markdown
headline = BENCHMARK.headline
