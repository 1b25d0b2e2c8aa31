"""Settings that were never printed: those of the inside form, found on validation data."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pslrec.reproduction.cells import SOUGHT, Cell
from pslrec.reproduction.grid import Choice, Grid, Round, varied
from pslrec.reproduction.ledgers import SEARCH

Group = tuple[str, ...]
Train = Callable[[Sequence[Cell], int], Sequence[float | None]]


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
            trial = replace(
                cell, table=SEARCH, form="inside", settings=settings, settings_from=SOUGHT
            )
            trials.setdefault(group_of(cell), []).append(trial)
    return trials


def best_trial(trials: Sequence[Cell], rounds: Sequence[Round], train: Train) -> Cell | None:
    """The trial with the highest value on validation; `None` where one is not trained as far as it should be, or all diverged.

    After each round the best of each learning rate go on: a high one is ahead early, whatever it comes to.

    Args:
        trials: what to try.
        rounds: when to leave some; those beyond a trial's epochs are not made.
        train: trains trials up to an epoch, and gives the value of each: -inf if it diverged, `None` if it was not trained.
    """
    last = max(trial.epochs for trial in trials)
    whole = Round(epochs=last, keep=len(trials))
    alive = list(trials)
    for each in (*(one for one in rounds if one.epochs < last), whole):
        values = dict(zip(alive, train(alive, each.epochs), strict=True))
        known = {trial: value for trial, value in values.items() if value is not None}
        if len(known) < len(values):
            return None
        well = [trial for trial, value in known.items() if value > float("-inf")]
        alive = _best_of_each_rate(sorted(well, key=lambda trial: -known[trial]), each.keep)
    return alive[0] if alive else None


def _best_of_each_rate(ranked: Sequence[Cell], keep: int) -> list[Cell]:
    kept: dict[float, int] = defaultdict(int)
    found = []
    for trial in ranked:
        rate = trial.settings["training.learning_rate"]
        kept[rate] += 1
        if kept[rate] <= keep:
            found.append(trial)
    return found


def inside_cells(grid: Grid, best: Cell, choice: Choice) -> Iterator[Cell]:
    """The cells of the inside form with the settings that were found, one per seed."""
    published = grid.published.form_value("inside", best.dataset, best.backbone, best.loss)
    narrowed = replace(
        choice, modes=(best.mode,), protocols=(str(best.settings["evaluation.protocol"]),)
    )
    plain = replace(
        best, table="forms", published=published, setting=best.setting.partition(",")[0]
    )
    yield from varied(plain, narrowed)


def group_of(cell: Cell) -> Group:
    """What the settings are sought for."""
    columns = cell.columns()
    return tuple(columns[name] for name in ("dataset", "backbone", "loss", "mode", "protocol"))
