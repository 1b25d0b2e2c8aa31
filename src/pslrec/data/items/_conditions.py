r"""Conditions on the columns of an item table, such as `genre == "Comedy" and year >= 1990`.

A condition is read by the small grammar below and by nothing else: no part of it is ever executed.

    condition  = all {"or" all}
    all        = one {"and" one}
    one        = "not" one | "(" condition ")" | comparison
    comparison = column ("==" | "!=" | "<" | "<=" | ">" | ">=") value
               | column ["not"] "in" "[" value {"," value} "]"
               | column ["not"] "contains" text
               | column "is" ["not"] "missing"
    value      = number | text | "true" | "false"

Text stands in single or double quotes, in which a backslash precedes a quote. A column whose name
is not a plain word stands in backquotes.
"""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np

from pslrec.data.items._comparisons import (
    Columns,
    Comparison,
    Missing,
    OneOf,
    Test,
    joined,
    negated,
)
from pslrec.errors import ConfigError, shortened

LONGEST = 2000
DEEPEST = 40
_TOKENS = re.compile(
    r"""
    \s*(?:
      (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w))
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<quoted>`[^`]+`)
    | (?P<word>[^\W\d]\w*)
    | (?P<sign>==|!=|<>|<=|>=|[=<>()\[\],])
    | (?P<end>\Z)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_SHORT_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDS = ("and", "or", "not", "in", "contains", "is", "missing", "true", "false")
_EXAMPLE = '`genre == "Comedy" and year >= 1990`'


class _Token(NamedTuple):
    kind: str
    text: str
    place: int
    # A word or a sign as the grammar spells it; empty for everything else.
    key: str


@dataclass(frozen=True, eq=False)
class Condition:
    """A condition that has been read.

    Args:
        text: as it was given.
        _test: takes columns and returns for each item whether it meets the condition.

    >>> import polars as pl
    >>> from pslrec.data.items import ItemColumn
    >>> columns = {
    ...     "genre": ItemColumn.from_series(pl.Series(["Comedy", "Drama", None])),
    ...     "year": ItemColumn.from_series(pl.Series([1985, 1995, 2001])),
    ... }
    >>> Condition.parse('not genre == "Comedy" and year >= 1990').mask(columns)
    array([False,  True,  True])
    """

    text: str
    _test: Test

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Read a condition; `ConfigError` says where it cannot be read.

        Args:
            text: see the grammar above.
        """
        return cls(text, _Parser(text).condition())

    def mask(self, columns: Columns) -> np.ndarray:
        """For each item whether it meets the condition.

        An item without a value meets no comparison with it, not even `!=`.

        Args:
            columns: of the item table, by name.
        """
        return self._test(columns)


class _Parser:
    """Reads a condition from left to right, one method per line of the grammar."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ConfigError(f"`where` must be text such as {_EXAMPLE}, got {text!r}")
        if len(text) > LONGEST:
            raise ConfigError(
                f"`where` may hold at most {LONGEST:,} characters, got {len(text):,}; "
                "name many items by a list instead"
            )
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def condition(self) -> Test:
        found = self._any()
        if self._token.kind != "end":
            self._refuse("`and`, `or` or the end")
        return found

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._token
        self._next += 1
        return token

    def _takes(self, *texts: str) -> bool:
        """Whether these words or signs come next; if so, they are passed."""
        place = self._next
        for text in texts:
            # The end has no key, so nothing is looked for beyond it.
            if self._tokens[place].key != text:
                return False
            place += 1
        self._next = place
        return True

    def _refuse(self, expected: str) -> NoReturn:
        token = self._token
        got = f"`{shortened(token.text)}`"
        if token.kind == "end":
            got = "the end"
        raise ConfigError(
            f"`where` needs {expected} at character {token.place + 1}, got {got}; "
            f"an example is {_EXAMPLE}"
        )

    def _any(self) -> Test:
        parts = [self._all()]
        while self._takes("or"):
            parts.append(self._all())
        return joined(parts, np.logical_or)

    def _all(self) -> Test:
        parts = [self._one()]
        while self._takes("and"):
            parts.append(self._one())
        return joined(parts, np.logical_and)

    def _one(self) -> Test:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ConfigError(f"`where` may be nested at most {DEEPEST} deep; write it flatter")
        if self._takes("not"):
            found = negated(self._one())
        elif self._takes("("):
            found = self._any()
            if not self._takes(")"):
                self._refuse("`)`")
        else:
            found = self._comparison()
        self._depth -= 1
        return found

    def _comparison(self) -> Test:
        name = self._column()
        token = self._token
        if token.kind == "sign" and token.text in _COMPARISONS:
            self._take()
            return Comparison(name, _COMPARISONS[token.text], self._value())
        if self._takes("is", "missing"):
            return Missing(name)
        if self._takes("is", "not", "missing"):
            return negated(Missing(name))
        is_negated = self._takes("not")
        if self._takes("in"):
            found: Test = OneOf(name, self._values())
        elif self._takes("contains"):
            if self._token.kind != "text":
                self._refuse("text in quotes")
            found = Comparison(name, operator.contains, self._value())
        else:
            self._refuse("a comparison such as `==`, `>=`, `in`, `contains` or `is missing`")
        if is_negated:
            # As for `!=`, an item without a value does not meet it.
            return joined([negated(found), negated(Missing(name))], np.logical_and)
        return found

    def _column(self) -> str:
        token = self._token
        if token.kind == "quoted":
            return self._take().text[1:-1]
        if token.kind != "word" or token.text.lower() in _WORDS:
            self._refuse("the name of a column")
        return self._take().text

    def _values(self) -> tuple[Any, ...]:
        closing = "]"
        if self._takes("("):
            closing = ")"
        elif not self._takes("["):
            self._refuse("a list such as `[1, 2]`")
        values = [self._value()]
        while self._takes(","):
            values.append(self._value())
        if not self._takes(closing):
            self._refuse(f"`,` or `{closing}`")
        return tuple(values)

    def _value(self) -> Any:
        token = self._token
        if token.kind == "text":
            return _ESCAPED.sub(r"\1", self._take().text[1:-1])
        if token.kind == "number":
            return self._number()
        if self._takes("true"):
            return True
        if self._takes("false"):
            return False
        return self._refuse("a number, text in quotes, true or false")

    def _number(self) -> int | float:
        text = self._token.text
        # Whole numbers beyond 64 bits are compared as floats.
        if _SHORT_WHOLE_NUMBER.fullmatch(text):
            self._take()
            return int(text)
        number = float(text)
        if not np.isfinite(number):
            self._refuse("a number that a float can hold")
        self._take()
        return number


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    place = 0
    while not tokens or tokens[-1].kind != "end":
        found = _TOKENS.match(text, place)
        if found is None or found.lastgroup is None:
            _refuse_characters(text, place)
        kind = found.lastgroup
        read = found[kind]
        key = ""
        if kind in ("word", "sign"):
            key = read.lower()
        tokens.append(_Token(kind, read, found.start(kind), key))
        place = found.end()
    return tokens


def _refuse_characters(text: str, place: int) -> NoReturn:
    while text[place].isspace():
        place += 1
    shown = shortened(text[place : place + 10])
    hint = ""
    if text[place] in "\"'`":
        hint = "; a quotation mark is not closed"
    raise ConfigError(f"`where` cannot be read at character {place + 1}: `{shown}`{hint}")
