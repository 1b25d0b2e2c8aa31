"""Exceptions a caller may want to catch.

Their text is one sentence: what is wrong, where, and what to do.
"""

from collections.abc import Mapping

_LONGEST_SHOWN = 80


class PslrecError(Exception):
    """Base of every error that pslrec raises on purpose.

    The command line prints it in one line and exits with code 2.
    """


class DataError(PslrecError, ValueError):
    """Interactions cannot be read, or make no sense as they are."""


class ColumnsError(DataError):
    """The user and item columns of a table cannot be told from its header.

    Args:
        problem: what is wrong with the columns; shows the header.
        guess: the columns as they probably are, by role, such as `{"user": "who"}`.
        hint: what else may be wrong, and what to do about it; put before the guess.
    """

    # The command line has another way to name columns, so it composes its message from the parts.
    def __init__(self, problem: str, guess: Mapping[str, str], hint: str = "") -> None:
        self.problem = problem
        self.guess = dict(guess)
        self.hint = hint
        said = ", ".join(f'"{role}": "{name}"' for role, name in guess.items())
        super().__init__(self.advising(f"`columns={{{said}}}`"))

    def advising(self, advice: str) -> str:
        """The whole message.

        Args:
            advice: how to name the guessed columns.
        """
        if self.guess:
            return f"{self.problem}; {self.hint}name the columns, perhaps {advice}"
        return f"{self.problem}; {self.hint}give a table with a user and an item column"


class EncodingError(DataError):
    """A text file is not UTF-8.

    Args:
        problem: which file, and where in it.
        guess: name of the encoding that it probably has.
        option: of the command line, which names the encoding.
    """

    def __init__(self, problem: str, guess: str, option: str = "--encoding") -> None:
        self.problem = problem
        self.guess = guess
        super().__init__(
            f'{problem}; name the encoding with `encoding="{guess}"` '
            f"(on the command line `{option} {guess}`), or convert the file to UTF-8"
        )


class DownloadError(PslrecError):
    """A published data set cannot be fetched, or is not what it should be."""


class ConfigError(PslrecError, ValueError):
    """A setting is unknown or has a value that is not allowed."""


class UnknownNameError(PslrecError, KeyError):
    """A name that is in no registry."""

    # KeyError would show the message in quotes.
    def __str__(self) -> str:
        return str(self.args[0])


class MissingExtraError(PslrecError, ImportError):
    """An optional dependency is not installed.

    Args:
        package: what is missing.
        extra: of pslrec, which installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs `{package}`, which is not installed: run `pip install 'pslrec[{extra}]'`"
        )


def shortened(value: object) -> str:
    r"""A value from outside, fit to be quoted in one line of a message.

    >>> shortened("two\nlines")
    'two�lines'
    """
    if isinstance(value, int) and abs(value) >= 10**_LONGEST_SHOWN:
        # Python refuses to write out numbers of thousands of digits.
        return "a very large number"
    shown = ""
    for character in str(value)[:_LONGEST_SHOWN]:
        # A control character could rewrite the terminal of whoever reads the log.
        shown += character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
    if len(str(value)) > _LONGEST_SHOWN:
        shown += "..."
    return shown
