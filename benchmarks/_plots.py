"""Pictures of results: an SVG in `docs/images` and, where vl-convert is installed, a PNG beside it.

A benchmark that has pictures defines `plots(record)`, which returns SVG documents by name. They are
made from the kept record, so the pictures of the pages can be drawn again without measuring.
"""

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks._publish import REPOSITORY
from pslrec.files import make_directory
from pslrec.reporting import Series, write_svg

IMAGES = REPOSITORY / "docs" / "images"
# As wide as the text of the documentation, which would shrink a wider picture and its letters.
WIDE = (640.0, 380.0)


def draw(benchmark: ModuleType, record: dict[str, Any], *, directory: Path = IMAGES) -> list[Path]:
    """Write the pictures of a benchmark and return their files.

    Args:
        benchmark: its module.
        record: what was kept of it.
        directory: where the pictures go.
    """
    if not hasattr(benchmark, "plots"):
        return []
    make_directory(directory)
    written = []
    for name, drawing in benchmark.plots(record).items():
        written.extend(write_svg(drawing, directory / name))
    return written


def series_by(key: str, points: Sequence[dict[str, Any]], *, x: str, y: str) -> list[Series]:
    """One series for each value of a key, in the order in which the values appear.

    Args:
        key: what points of the same series have in common; its value is the label.
        points: one dictionary per point.
        x: key of the horizontal position.
        y: key of the vertical position.

    >>> points = [{"loss": "sl", "epoch": 1, "value": 0.5}, {"loss": "sl", "epoch": 2, "value": 0.4}]
    >>> [one.points for one in series_by("loss", points, x="epoch", y="value")]
    [[(1, 0.5), (2, 0.4)]]
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        found.setdefault(point[key], []).append((point[x], point[y]))
    return [Series(label, places) for label, places in found.items()]
