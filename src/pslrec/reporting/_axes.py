"""Axes: which values get a tick, how ticks are written, and where values lie in a picture."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Multiples of powers of ten that people count in.
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """What one axis of a chart shows.

    Args:
        label: quantity and unit.
        is_whole: put ticks at whole numbers only.
        from_zero: always show 0.
        categories: names of the positions 0, 1, ... of an axis without numbers.
        limits: a range to show even where there is no data.
        ceiling: cut off what lies above, so that one steep line does not flatten the others.
    """

    label: str
    is_whole: bool = False
    from_zero: bool = False
    categories: Sequence[str] | None = None
    limits: tuple[float, float] | None = None
    ceiling: float | None = None


@dataclass(frozen=True)
class Scale:
    """A linear map from values to positions in a picture.

    Args:
        low: the value at `start`.
        high: the value at `end`.
        start: a position in the picture.
        end: another one; it may be the smaller of the two, since y grows downwards in SVG.
        ticks: values with a tick, and their labels.
    """

    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[tuple[float, str]]

    def __call__(self, value: float) -> float:
        """The position of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def nice_ticks(low: float, high: float, *, count: int = 5, is_whole: bool = False) -> list[float]:
    """Round values from below `low` to above `high`.

    Args:
        low: the smallest value to enclose.
        high: the largest.
        count: about how many ticks.
        is_whole: whole numbers only.

    >>> nice_ticks(0.02, 0.93)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> nice_ticks(1, 3, is_whole=True)
    [1.0, 2.0, 3.0]
    """
    span = high - low
    # A scale divides by its span, so values that are all the same get room around them.
    if span <= 1e-9 * max(abs(low), abs(high)) or span < 1e-12:
        if abs(low) <= 1e-12:
            low = 0.0
            high = 1.0
        else:
            margin = abs(low) * 0.1
            if is_whole:
                margin = 1.0
            low -= margin
            high += margin

    smallest_step = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(smallest_step))
    # The last multiple is 10, so that there always is one. The slack accepts a step that rounding
    # has put just below.
    for multiple in STEPS:
        step = multiple * power
        if step >= smallest_step * (1 - 1e-9):
            break
    if is_whole:
        step = float(max(1, math.ceil(step - 1e-9)))

    # The slack spares a further tick where a value is a tick already, but for rounding.
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    # With a single tick, the scale would have no span.
    last = max(last, first + 1)
    # Rounding removes what binary fractions leave, such as 0.30000000000000004, and adding 0 turns
    # -0.0 into 0.0.
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(place * step, digits) + 0.0 for place in range(first, last + 1)]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Ticks as text, all with as many decimals as the finest of them needs.

    >>> tick_labels([0.0, 0.05, 0.1]), tick_labels([0.0, 50_000.0])
    (['0.00', '0.05', '0.10'], ['0', '50,000'])
    """
    pattern = ".3g"
    largest = max(map(abs, ticks), default=0.0)
    # Written out, a number of seven digits would not fit beside the axis.
    if largest < 1e6:
        for digits in range(9):
            if all(_is_exact(tick, digits) for tick in ticks):
                pattern = f",.{digits}f"
                break
    return [format(tick, pattern) for tick in ticks]


def _is_exact(value: float, digits: int) -> bool:
    return math.isclose(value, round(value, digits), rel_tol=1e-9, abs_tol=1e-12)


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
        axis: may add to the range of the values, or cut it off.
        positions: where the axis begins and ends in the picture.
        count: about how many ticks.
        is_tight: end at the outermost values instead of the next ticks.
    """
    start, end = positions
    if axis.categories is not None:
        # Half a place of room on either side keeps the outermost categories off the edges.
        named = [(float(place), name) for place, name in enumerate(axis.categories)]
        return Scale(
            low=-0.5,
            high=len(named) - 0.5,
            start=start,
            end=end,
            ticks=named,
        )

    shown = list(values)
    if axis.ceiling is not None:
        shown = [value for value in shown if value <= axis.ceiling]
    if axis.limits is not None:
        shown.extend(axis.limits)
    if axis.from_zero:
        shown.append(0.0)
    if axis.ceiling is not None:
        shown.append(axis.ceiling)

    smallest = min(shown)
    largest = max(shown)
    ticks = nice_ticks(smallest, largest, count=count, is_whole=axis.is_whole)
    low = ticks[0]
    high = ticks[-1]
    if is_tight and smallest < largest:
        low = smallest
        high = largest

    # Labels are made of all ticks, so that their decimals do not depend on what is in view.
    in_view = []
    for tick, label in zip(ticks, tick_labels(ticks), strict=True):
        if low <= tick <= high:
            in_view.append((tick, label))
    return Scale(
        low=low,
        high=high,
        start=start,
        end=end,
        ticks=in_view,
    )
