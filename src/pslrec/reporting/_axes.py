"""Axes: which values get a tick, how they are written, and where they lie in a picture."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """What an axis is for.

    Args:
        label: quantity and unit.
        is_whole: ticks at whole numbers only.
        from_zero: always show 0.
        categories: names of the positions 0, 1, ... instead of numbers.
        limits: shown at least, even without data there.
        ceiling: what lies above is cut off.
    """

    label: str
    is_whole: bool = False
    from_zero: bool = False
    categories: Sequence[str] | None = None
    limits: tuple[float, float] | None = None
    ceiling: float | None = None


@dataclass(frozen=True)
class Scale:
    """Maps values to positions in a picture, linearly.

    Args:
        low: value at `start`.
        high: value at `end`.
        start: position in the picture.
        end: position in the picture.
        ticks: values with a tick, and their labels.
    """

    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[tuple[float, str]]

    def __call__(self, value: float) -> float:
        """Where a value lies."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def nice_ticks(low: float, high: float, *, count: int = 5, is_whole: bool = False) -> list[float]:
    """Round values from below `low` to above `high`, about `count` of them.

    >>> nice_ticks(0.02, 0.93)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> nice_ticks(1, 3, is_whole=True)
    [1.0, 2.0, 3.0]
    """
    # Values that are all the same get room around them.
    if high - low <= 1e-9 * max(abs(low), abs(high)) or high - low < 1e-12:
        margin = 1.0 if is_whole else abs(low) * 0.1
        low, high = (low - margin, high + margin) if abs(low) > 1e-12 else (0.0, 1.0)
    raw = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(step * power for step in STEPS if step * power >= raw * (1 - 1e-9))
    if is_whole:
        step = float(max(1, math.ceil(step - 1e-9)))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    # Rounding away what binary fractions leave, such as 0.30000000000000004.
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(place * step, digits) + 0.0 for place in range(first, last + 1)]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Ticks as text, all with as many decimals as the finest of them needs.

    >>> tick_labels([0.0, 0.05, 0.1]), tick_labels([0.0, 50_000.0])
    (['0.00', '0.05', '0.10'], ['0', '50,000'])
    """
    if ticks and max(abs(tick) for tick in ticks) >= 1e6:
        return [f"{tick:.3g}" for tick in ticks]
    for digits in range(9):
        if all(
            math.isclose(tick, round(tick, digits), rel_tol=1e-9, abs_tol=1e-12) for tick in ticks
        ):
            return [f"{tick:,.{digits}f}" for tick in ticks]
    return [f"{tick:.3g}" for tick in ticks]


def scale_for(
    values: Iterable[float],
    axis: Axis,
    positions: tuple[float, float],
    *,
    count: int = 5,
    is_tight: bool = False,
) -> Scale:
    """A scale that shows all of the values, which must be finite.

    Args:
        values: at least one, unless the axis has categories or limits.
        axis: what it is for.
        positions: where it begins and ends in the picture.
        count: about how many ticks.
        is_tight: end at the outermost values instead of the next ticks.
    """
    start, end = positions
    if axis.categories is not None:
        n = len(axis.categories)
        return Scale(
            -0.5,
            n - 0.5,
            start,
            end,
            [(float(place), name) for place, name in enumerate(axis.categories)],
        )
    below = [value for value in values if axis.ceiling is None or value <= axis.ceiling]
    shown = [
        *below,
        *(axis.limits or ()),
        *([0.0] if axis.from_zero else []),
        *([] if axis.ceiling is None else [axis.ceiling]),
    ]
    ticks = nice_ticks(min(shown), max(shown), count=count, is_whole=axis.is_whole)
    low, high = ticks[0], ticks[-1]
    if is_tight and min(shown) < max(shown):
        low, high = min(shown), max(shown)
    labelled = [
        (tick, text)
        for tick, text in zip(ticks, tick_labels(ticks), strict=True)
        if low <= tick <= high
    ]
    return Scale(low, high, start, end, labelled)
