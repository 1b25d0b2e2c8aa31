"""Axes: which values get a tick, how ticks are written, and where values lie in a picture."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Multiples of powers of ten that people count in.
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
# The same for logarithmic axes, where they are about equally far apart.
LOG_STEPS = (1, 2, 5)
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
        floor: the same for what lies below.
        is_log: equal ratios take equal room; values that are not positive are not shown.

    >>> Axis("seconds", is_log=True).can_show(0.0)
    False
    """

    label: str
    is_whole: bool = False
    from_zero: bool = False
    categories: Sequence[str] | None = None
    limits: tuple[float, float] | None = None
    ceiling: float | None = None
    floor: float | None = None
    is_log: bool = False

    def __post_init__(self) -> None:
        """Refuse a logarithmic axis that would have to show 0."""
        if not self.is_log:
            return
        if self.from_zero or self.categories is not None:
            raise ValueError(
                "`is_log` cannot be combined with `from_zero` or `categories`: "
                "a logarithmic axis has no 0"
            )
        for bound in (*(self.limits or ()), self.ceiling, self.floor):
            if bound is not None and bound <= 0:
                raise ValueError(f"a bound of a logarithmic axis must be positive, got {bound}")

    def can_show(self, value: float) -> bool:
        """Whether the value has a place on the axis."""
        return math.isfinite(value) and (value > 0 or not self.is_log)


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic map from values to positions in a picture.

    Args:
        low: the value at `start`.
        high: the value at `end`.
        start: a position in the picture.
        end: another one; it may be the smaller of the two, since y grows downwards in SVG.
        ticks: values with a tick, and their labels.
        is_log: the map is linear in the logarithm of the values.
    """

    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[tuple[float, str]]
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """The position of a value; not a number if it has no place on a logarithmic scale."""
        if not self.is_log:
            share = (value - self.low) / (self.high - self.low)
        elif value > 0:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = math.nan
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


def log_ticks(low: float, high: float, *, count: int = 5) -> list[float]:
    """Ticks of a logarithmic axis from at most `low` to at least `high`.

    Steps of 1, 2 and 5 on less than three decades while they are few, else powers of ten. Where
    not even two such steps lie between the ends, round values as on a linear axis.

    Args:
        low: the smallest value to enclose, positive.
        high: the largest.
        count: about how many ticks.

    >>> log_ticks(0.7, 43)
    [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
    >>> log_ticks(1e-9, 0.3)
    [1e-10, 1e-08, 1e-06, 0.0001, 0.01, 1.0]
    >>> log_ticks(3.1, 4.4)
    [3.0, 3.5, 4.0, 4.5]
    """
    # The slack spares a further decade where a value is a power of ten already, but for rounding.
    first = math.floor(math.log10(low) + 1e-9)
    last = math.ceil(math.log10(high) - 1e-9)
    stepped = []
    for exponent in range(first, last + 1):
        for factor in LOG_STEPS:
            stepped.append(_decimal(factor, exponent))
    begin = max(place for place, tick in enumerate(stepped) if tick <= low * (1 + 1e-9))
    end = min(place for place, tick in enumerate(stepped) if tick >= high * (1 - 1e-9))

    # Three steps are a decade.
    if end - begin >= min(9, 2 * count):
        # Every second, third, ... power of ten, counted from 1, so that axes agree.
        stride = math.ceil((last - first) / (count + 1))
        lowest = math.floor(first / stride)
        highest = math.ceil(last / stride)
        return [_decimal(1, place * stride) for place in range(lowest, highest + 1)]
    if end - begin >= 3:
        return stepped[begin : end + 1]
    # Here `high` is at most five times `low`, so with five ticks or more none of them is 0.
    # They are found for numbers between 1 and 50, as the linear axis takes tiny ones for 0.
    power = 10.0**first
    between = nice_ticks(low / power, high / power, count=max(count, 5))
    return [float(f"{tick:.12g}e{first}") for tick in between]


def log_tick_labels(ticks: Sequence[float]) -> list[str]:
    """Ticks of a logarithmic axis as text, each with the decimals that it needs itself.

    >>> log_tick_labels([0.5, 1.0, 2000.0]), log_tick_labels([1e-6, 2e-6, 1e-5])
    (['0.5', '1', '2,000'], ['10⁻⁶', '2·10⁻⁶', '10⁻⁵'])
    """
    # Longer numbers would not fit beside the axis.
    if min(ticks) >= 1e-4 and max(ticks) < 1e6:
        return [f"{tick:,.6f}".rstrip("0").rstrip(".") for tick in ticks]
    labels = []
    for tick in ticks:
        factor, exponent = f"{tick:.3e}".split("e")
        factor = factor.rstrip("0").rstrip(".")
        label = f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"
        if factor != "1":
            label = f"{factor}·{label}"
        labels.append(label)
    return labels


def _decimal(factor: int, exponent: int) -> float:
    # Read from text: 10.0**-5 is not the float that is nearest to 0.00001 everywhere.
    return float(f"{factor}e{exponent}")


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Ticks as text, all with as many decimals as the finest of them needs.

    >>> tick_labels([0.0, 0.05, 0.1]), tick_labels([0.0, 50_000.0])
    (['0.00', '0.05', '0.10'], ['0', '50,000'])
    """
    largest = max(map(abs, ticks), default=0.0)
    if largest < 1e6:
        for digits in range(9):
            if all(_is_exact(tick, digits) for tick in ticks):
                return [f"{tick:,.{digits}f}" for tick in ticks]
    # Written out, a number of seven digits would not fit beside the axis.
    labels: list[str] = []
    for digits in range(3, 17):
        labels = [f"{tick:.{digits}g}" for tick in ticks]
        if [float(label) for label in labels] == list(ticks):
            break
    return labels


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
    """A scale that shows all of the values, which the axis must be able to show.

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

    shown = _to_show(values, axis)
    smallest = min(shown)
    largest = max(shown)
    if axis.is_log:
        ticks = log_ticks(smallest, largest, count=count)
        labels = log_tick_labels(ticks)
    else:
        ticks = nice_ticks(smallest, largest, count=count, is_whole=axis.is_whole)
        # Labels are made of all ticks, so that their decimals do not depend on what is in view.
        labels = tick_labels(ticks)
    low = ticks[0]
    high = ticks[-1]
    if is_tight and smallest < largest:
        low = smallest
        high = largest

    in_view = []
    for tick, label in zip(ticks, labels, strict=True):
        if low <= tick <= high:
            in_view.append((tick, label))
    return Scale(
        low=low,
        high=high,
        start=start,
        end=end,
        ticks=in_view,
        is_log=axis.is_log,
    )


def _to_show(values: Iterable[float], axis: Axis) -> list[float]:
    floor = -math.inf if axis.floor is None else axis.floor
    ceiling = math.inf if axis.ceiling is None else axis.ceiling
    shown = [value for value in values if floor <= value <= ceiling]
    shown.extend(axis.limits or ())
    if axis.from_zero:
        shown.append(0.0)
    # A bound is always in view, whatever the values.
    shown.extend(bound for bound in (floor, ceiling) if math.isfinite(bound))
    return shown
