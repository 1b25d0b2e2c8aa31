"""Checks of single settings, shared by losses, backbones and everything else that takes options."""

from pslrec.errors import ConfigError

# Beyond these, dividing or multiplying by a setting leaves the range of single precision.
SMALLEST = 1e-12
LARGEST = 1e12
# The kernels count with 32 bits.
LARGEST_COUNT = 2**31 - 1


def positive_number(name: str, value: float) -> float:
    """The value, if it is a number above 0 that single precision can divide and multiply by.

    Args:
        name: of the setting, for the message.
        value: what was given.

    >>> positive_number("temperature", -0.1)
    Traceback (most recent call last):
    pslrec.errors.ConfigError: `temperature` must be positive, got -0.1
    """
    # Written so that NaN, which compares as false with everything, is refused as well.
    if not 0.0 < value < float("inf"):
        raise ConfigError(f"`{name}` must be positive, got {value}")
    if not SMALLEST <= value <= LARGEST:
        raise ConfigError(f"`{name}` must be from {SMALLEST:g} to {LARGEST:g}, got {value}")
    return value


def number_from_zero(name: str, value: float) -> float:
    """The value, if it is 0 or a positive number that single precision can multiply by.

    Args:
        name: of the setting, for the message.
        value: what was given.
    """
    if not 0.0 <= value < float("inf"):
        raise ConfigError(f"`{name}` must be a finite number of at least 0, got {value}")
    if value > LARGEST:
        raise ConfigError(f"`{name}` must be from 0 to {LARGEST:g}, got {value}")
    return value


def share(name: str, value: float) -> float:
    """The value, if it is above 0 and at most 1.

    Args:
        name: of the setting, for the message.
        value: what was given.
    """
    if not 0.0 < value <= 1.0:
        raise ConfigError(f"`{name}` must be above 0 and at most 1, got {value}")
    return value


def part(name: str, value: float) -> float:
    """The value, if it is at least 0 and below 1.

    Args:
        name: of the setting, for the message.
        value: what was given.
    """
    if not 0.0 <= value < 1.0:
        raise ConfigError(f"`{name}` must be at least 0 and below 1, got {value}")
    return value


def whole_number(name: str, value: int, *, minimum: int = 1, maximum: int = LARGEST_COUNT) -> int:
    """The value, if it is a whole number in the range.

    Args:
        name: of the setting, for the message.
        value: what was given; 5.0 counts as 5.
        minimum: smallest value allowed.
        maximum: largest value allowed.

    >>> whole_number("layers", 0)
    Traceback (most recent call last):
    pslrec.errors.ConfigError: `layers` must be a whole number of at least 1, got 0
    """
    try:
        # Python counts True as 1.
        is_whole = value == int(value) and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        # Neither a text nor NaN nor infinity has an integer.
        is_whole = False
    if not is_whole or value < minimum:
        raise ConfigError(f"`{name}` must be a whole number of at least {minimum}, got {value!r}")
    if value > maximum:
        raise ConfigError(f"`{name}` must be a whole number of at most {maximum}, got {value!r}")
    return int(value)


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """The value, if it is among those allowed.

    Args:
        name: of the setting, for the message.
        value: what was given.
        allowed: all values that the setting takes.
    """
    if value not in allowed:
        raise ConfigError(f"`{name}` must be one of {', '.join(allowed)}, got {value!r}")
    return value
