"""A search over a grid that grows while its best cell lies at an edge, and patience for training."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

Settings = dict[str, float]
# Cells after which a search gives up; what it then chose may lie at an edge, and `edges` says so.
MOST_CELLS = 80


@dataclass(frozen=True)
class Ladder:
    """The values that a setting may take: equal steps, or equal ratios, without an end of its own.

    Args:
        name: of the setting.
        factor: ratio of a value to the one below it.
        step: difference from the value below it, instead of a ratio.
        lowest: values below this have no meaning.
    """

    name: str
    factor: float = 1.0
    step: float = 0.0
    lowest: float = 0.0

    def beside(self, value: float) -> list[float]:
        """The next lower and the next higher value, where they have a meaning."""
        lower = _rounded(value / self.factor - self.step)
        higher = _rounded(value * self.factor + self.step)
        if lower < self.lowest:
            return [higher]
        return [lower, higher]

    def finer(self) -> "Ladder":
        """Two steps of ratios for one; equal steps stay as they are."""
        return replace(self, factor=math.sqrt(self.factor))


@dataclass(frozen=True)
class Cell:
    """A setting that was tried.

    Args:
        settings: by name.
        validation: the best value it had on validation.
        epochs: after which it had it.
        is_settled: whether training ended because that value was no longer exceeded.
    """

    settings: Settings
    validation: float
    epochs: int
    is_settled: bool


class Patience:
    """Ends training once validation has not risen for some epochs, or at a limit.

    Args:
        epochs: without a rise, after which training ends.
        limit: of all epochs.
    """

    def __init__(self, epochs: int, limit: int) -> None:
        self._epochs = epochs
        self._limit = limit
        self.seen = 0
        self.best = float("-inf")
        self.best_epoch = 0

    @property
    def is_settled(self) -> bool:
        """Whether the last epochs brought no rise."""
        return self.seen - self.best_epoch >= self._epochs

    def goes_on(self, value: float) -> bool:
        """Take the value of the next epoch; tells whether another one should follow."""
        self.seen += 1
        if value > self.best:
            self.best = value
            self.best_epoch = self.seen
        return not self.is_settled and self.seen < self._limit


def search(
    start: Iterable[Settings],
    ladders: Sequence[Ladder],
    evaluate: Callable[[Settings], Cell],
    known: Iterable[Cell] = (),
) -> list[Cell]:
    """Try the start, then what lies beside the best cell so far, until all of that was tried.

    Args:
        start: settings that are tried in any case.
        ladders: of the settings that are searched; the first two are those that pull at each other.
        evaluate: trains with a setting; sees validation data only.
        known: cells of an earlier search, which are not tried again.

    Returns:
        Every cell that was tried.
    """
    cells = {key_of(cell.settings): cell for cell in known}
    for settings in start:
        if key_of(settings) not in cells:
            cells[key_of(settings)] = evaluate(settings)
    while len(cells) < MOST_CELLS:
        untried = _untried(best_of(cells.values()), ladders, cells.values())
        if not untried:
            break
        # One at a time: if it is better, the search goes on from there.
        settings = untried[0]
        cells[key_of(settings)] = evaluate(settings)
    return list(cells.values())


def best_of(cells: Iterable[Cell]) -> Cell:
    """The cell with the highest validation value; of equal ones the first."""
    return max(cells, key=lambda cell: cell.validation)


def edges(cells: Iterable[Cell], ladders: Sequence[Ladder]) -> list[str]:
    """The settings in which the best cell was not compared with what lies beside it."""
    tried = list(cells)
    chosen = best_of(tried)
    missing = _untried(chosen, ladders, tried)
    names = [ladder.name for ladder in ladders]
    return [name for name in names if any(cell[name] != chosen.settings[name] for cell in missing)]


def _untried(chosen: Cell, ladders: Sequence[Ladder], cells: Iterable[Cell]) -> list[Settings]:
    tried = {key_of(cell.settings) for cell in cells}
    around = beside(chosen.settings, ladders)
    return [settings for settings in around if key_of(settings) not in tried]


def beside(settings: Settings, ladders: Sequence[Ladder]) -> list[Settings]:
    """The cells one step away in one setting, and those one step away in both of the first two.

    Where one setting makes up for another the best cells lie on a ridge, from which every single step
    leads down.
    """
    steps = [
        {ladder.name: value} for ladder in ladders for value in ladder.beside(settings[ladder.name])
    ]
    if len(ladders) > 1:
        first, second = ladders[:2]
        values = first.beside(settings[first.name])
        others = second.beside(settings[second.name])
        pairs = itertools.product(values, others)
        steps += [{first.name: value, second.name: other} for value, other in pairs]
    return [{**settings, **step} for step in steps]


def key_of(settings: Settings) -> tuple[tuple[str, str], ...]:
    """What tells two cells apart: going up and down a ladder rounds, and must meet the same cells again."""
    return tuple((name, f"{value:.3g}") for name, value in sorted(settings.items()))


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
