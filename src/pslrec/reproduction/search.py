"""Settings that were never printed: those of the inside form, found on validation data."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

from pslrec.reproduction.cells import Cell
from pslrec.reproduction.grid import Choice, Grid, varied
from pslrec.reproduction.ledgers import SEARCH

Group = tuple[str, ...]


def inside_trials(grid: Grid, outside: list[Cell], choice: Choice) -> dict[Group, list[Cell]]:
    """What to try for every cell of the outside form, by what the settings are sought for.

    Args:
        grid: holds the values to try.
        outside: cells of the outside form, whose other settings the trials take over.
        choice: the first of its seeds is that of the search.
    """
    trials: dict[Group, list[Cell]] = {}
    for cell in outside:
        if cell.form != "outside" or cell.seed != choice.seeds[0]:
            continue
        for temperature, learning_rate in itertools.product(
            grid.file.search.temperature, grid.file.search.learning_rate
        ):
            settings = dict(cell.settings) | {
                "loss.form": "inside",
                "loss.temperature": temperature,
                "training.learning_rate": learning_rate,
            }
            trial = replace(cell, table=SEARCH, form="inside", settings=settings, settings_from="search")
            trials.setdefault(group_of(cell), []).append(trial)
    return trials


def inside_cells(grid: Grid, best: Cell, choice: Choice) -> Iterator[Cell]:
    """The cells of the inside form with the settings that were found, one per seed."""
    published = grid.published.form_value("inside", best.dataset, best.backbone, best.loss)
    narrowed = replace(choice, modes=(best.mode,), protocols=(str(best.settings["evaluation.protocol"]),))
    plain = replace(best, table="forms", published=published, setting=best.setting.partition(",")[0])
    yield from varied(plain, narrowed)


def group_of(cell: Cell) -> Group:
    """What the settings are sought for."""
    columns = cell.columns()
    return tuple(columns[name] for name in ("dataset", "backbone", "loss", "mode", "protocol"))
