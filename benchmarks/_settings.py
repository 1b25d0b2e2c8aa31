"""The settings of each rival in quality by seconds, searched on validation data and kept in a file.

`python -m benchmarks time_to_quality --search` makes the file of Amazon-Electronic. Cells that it holds are
not tried again; without the file everything is.
"""

import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks._grid import Cell, Ladder, Patience, Settings, best_of, edges, key_of, search
from benchmarks._rivals import MOST_EPOCHS, PATIENCE, RIVALS, Train, why_missing
from benchmarks.machine import describe_machine
from pslrec.data import Dataset
from pslrec.files import make_directory, write_text

# More users than this are sampled after every epoch of a search, or evaluating would take most of it.
MOST_USERS = 13_500

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Family:
    """Rivals of one kind, which differ in their dimension alone.

    Args:
        title: as it stands in tables.
        dimension: what the rival calls its dimension; empty if it has none.
        dimensions: from the smallest up, as each search starts from the choice of the one before.
        ladders: of the settings that are searched.
        start: the grid of the first search; it grows by itself.
        fixed: settings that are not searched.
    """

    title: str
    dimension: str
    dimensions: tuple[int, ...]
    ladders: tuple[Ladder, ...]
    start: dict[str, tuple[float, ...]]
    fixed: dict[str, Any] = field(default_factory=dict)

    def name(self, dimension: int) -> str:
        """The name of a rival in tables."""
        return f"{self.title}, d = {dimension}" if dimension else self.title

    def settings(self, dimension: int, searched: Settings) -> dict[str, Any]:
        """All settings of a rival."""
        size = {self.dimension: dimension} if dimension else {}
        return {**size, **self.fixed, **searched}

    def half_steps(self) -> list[Ladder]:
        """The ladders of the last round of a search."""
        return [ladder.finer() for ladder in self.ladders]

    def start_cells(self) -> list[Settings]:
        """The cells of the first grid."""
        cells = itertools.product(*self.start.values())
        return [dict(zip(self.start, values, strict=True)) for values in cells]


FAMILIES: dict[str, Family] = {
    "als": Family(
        title="implicit ALS",
        dimension="factors",
        dimensions=(64, 128, 256),
        ladders=(Ladder("alpha", factor=2), Ladder("regularization", factor=2)),
        start={"alpha": (20.0, 40.0, 80.0), "regularization": (75.0, 150.0, 300.0)},
    ),
    "ialspp": Family(
        title="irspack iALS++",
        dimension="n_components",
        dimensions=(64, 128, 256, 512),
        ladders=(Ladder("alpha0", factor=2), Ladder("reg", factor=2), Ladder("nu", step=0.25)),
        start={"alpha0": (0.015, 0.03, 0.06), "reg": (0.15, 0.3, 0.6), "nu": (0.5,)},
        # Without a common scale the best `reg` of one `nu` would be far off for the next.
        fixed={"nu_star": 0.5},
    ),
    "ease": Family(
        title="EASE",
        dimension="",
        dimensions=(0,),
        ladders=(Ladder("regularization", factor=2),),
        start={"regularization": (100.0, 200.0, 400.0)},
    ),
}


def load_settings(path: Path) -> dict[str, Any]:
    """What was chosen, by name of the rival; empty before the first search."""
    if not path.exists():
        return {}
    return dict(json.loads(path.read_text())["contestants"])


def search_settings(
    dataset: Dataset,
    *,
    tell: Tell,
    threads: int = 1,
    kinds: Iterable[str],
    path: Path,
) -> dict[str, Any]:
    """Search the settings of rivals of some kinds on validation data, and keep them after every cell."""
    for kind in kinds:
        missing = why_missing(kind)
        if missing:
            tell(missing)
            continue
        start = FAMILIES[kind].start_cells()
        for dimension in FAMILIES[kind].dimensions:

            def evaluate(searched: Settings, kind: str = kind, dimension: int = dimension) -> Cell:
                settings = FAMILIES[kind].settings(dimension, searched)
                return try_settings(RIVALS[kind], dataset, settings, searched, threads)

            chosen = _search_one(kind, dimension, start, evaluate, tell, path)
            # More dimensions need more time for each cell, and want about the same settings.
            start = [chosen.settings]
    return load_settings(path)


def _search_one(
    kind: str,
    dimension: int,
    start: list[Settings],
    evaluate: Callable[[Settings], Cell],
    tell: Tell,
    path: Path,
) -> Cell:
    family = FAMILIES[kind]
    name = family.name(dimension)
    kept = load_settings(path).get(name, {"tried": []})
    cells = [Cell(**values) for values in kept["tried"]]

    def evaluate_once(searched: Settings) -> Cell:
        for cell in cells:
            if key_of(cell.settings) == key_of(searched):
                return cell
        cells.append(evaluate(searched))
        _keep(path, name, _entry(kind, dimension, cells))
        tell(f"{name}: {searched} has {cells[-1].validation:.5f} after {cells[-1].epochs} epochs")
        return cells[-1]

    if len(start) > 1:
        # A grid of whole steps finds the place. It is walked anew, past the kept cells of half steps.
        search(start, family.ladders, evaluate_once)
        start = []
    search(start, family.half_steps(), evaluate_once, known=list(cells))
    return best_of(cells)


def try_settings(
    train: Train,
    dataset: Dataset,
    settings: dict[str, Any],
    searched: Settings,
    threads: int,
) -> Cell:
    """Train until validation NDCG@20 stops rising."""
    from pslrec.evaluation import evaluate

    patience = Patience(PATIENCE, MOST_EPOCHS)

    def after_epoch(scorer: Callable[[], Any]) -> bool:
        options = {"k": (20,), "protocol": "paper", "metrics": ("ndcg",), "n_users": MOST_USERS}
        evaluation = evaluate(scorer(), dataset, split="validation", **options)
        return patience.goes_on(evaluation.metrics["ndcg@20"])

    train(dataset.train, settings, threads, after_epoch)
    is_settled = patience.is_settled or patience.seen < MOST_EPOCHS
    return Cell(searched, patience.best, patience.best_epoch, is_settled)


def _entry(kind: str, dimension: int, cells: list[Cell]) -> dict[str, Any]:
    family = FAMILIES[kind]
    chosen = best_of(cells)
    return {
        "kind": kind,
        "dimension": dimension,
        "settings": family.settings(dimension, chosen.settings),
        "epochs": chosen.epochs,
        "is_settled": chosen.is_settled,
        "validation": chosen.validation,
        "edges": edges(cells, family.half_steps()),
        "tried": [asdict(cell) for cell in cells],
    }


def _keep(path: Path, name: str, entry: dict[str, Any]) -> None:
    contestants = load_settings(path)
    contestants[name] = entry
    content = {
        "chosen_by": "NDCG@20 on the validation part, paper protocol",
        "patience": PATIENCE,
        "searched": date.today().isoformat(),
        "versions": describe_machine()["versions"],
        "contestants": contestants,
    }
    make_directory(path.parent)
    write_text(path, json.dumps(content, indent=1) + "\n")
