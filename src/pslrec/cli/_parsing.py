"""Lists, numbers and times as they are typed."""

import re

UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def listed(text: str) -> list[str]:
    """The parts between commas.

    >>> listed("sl, psl-relu,")
    ['sl', 'psl-relu']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def numbers(text: str, option: str) -> list[float]:
    """The numbers between commas; none if the text is empty.

    Args:
        text: what was typed.
        option: its name without dashes, for the error message.
    """
    from pslrec.errors import ConfigError

    try:
        return [float(part) for part in listed(text)]
    except ValueError:
        raise ConfigError(f"`--{option}` must be numbers such as 0.1,0.5, got `{text}`") from None


def whole_numbers(text: str, option: str) -> list[int]:
    """The integers between commas; arguments as those of `numbers`."""
    from pslrec.errors import ConfigError

    try:
        return [int(part) for part in listed(text)]
    except ValueError:
        raise ConfigError(
            f"`--{option}` must be whole numbers such as 2024,2025, got `{text}`"
        ) from None


def seconds_of(text: str | None) -> float | None:
    """Seconds in a time such as 90s, 15min, 2h or 1.5d; `None` if there is no text.

    >>> seconds_of("2h"), seconds_of("90min"), seconds_of("1h30m")
    (7200.0, 5400.0, 5400.0)
    """
    from pslrec.errors import ConfigError

    if text is None:
        return None
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)\s*(min|[smhd])", text)
    understood = "".join(number + unit for number, unit in parts)
    # Compared with the whole text, as the pattern would find the 2h in `about 2h` as well.
    if not parts or understood != text.replace(" ", ""):
        raise ConfigError(f"`--budget` must be a time such as 90min or 2h, got `{text}`")
    return sum(float(number) * UNITS[unit] for number, unit in parts)
