"""Tests of single columns of an item table, of which conditions are made."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from pslrec.data.items._columns import ItemColumn
from pslrec.errors import ConfigError, shortened

Columns = Mapping[str, ItemColumn]
Test = Callable[[Columns], np.ndarray]

_KIND_OF_TYPE: dict[type, str] = {str: "text", bool: "truth", int: "number", float: "number"}
_VALUE_OF_KIND = {
    "text": 'text in quotes, such as "Comedy"',
    "number": "a number",
    "truth": "true or false",
}


@dataclass(frozen=True)
class Comparison:
    """Whether a column compares so with a value.

    Args:
        name: of the column.
        holds: takes what an item has and the value.
        value: text, a number, true or false.
    """

    name: str
    holds: Callable[[Any, Any], Any]
    value: Any

    def __call__(self, columns: Columns) -> np.ndarray:
        column = _column_of(columns, self.name)
        needs_text = self.holds is operator.contains
        if needs_text and column.kind != "text":
            raise ConfigError(
                f"`where` asks whether `{self.name}` contains a text, but it holds "
                f"{_plural(column)}; compare it by `==`, `<` or `>`"
            )
        _check_kind(self.name, column, self.value)
        return column.compare(self.holds, self.value)


@dataclass(frozen=True)
class OneOf:
    """Whether a column has one of several values.

    Args:
        name: of the column.
        values: at least one, each text, a number, true or false.
    """

    name: str
    values: tuple[Any, ...]

    def __call__(self, columns: Columns) -> np.ndarray:
        column = _column_of(columns, self.name)
        for value in self.values:
            _check_kind(self.name, column, value)
        return column.is_one_of(self.values)


@dataclass(frozen=True)
class Missing:
    """Whether an item has no value in a column.

    Args:
        name: of the column.
    """

    name: str

    def __call__(self, columns: Columns) -> np.ndarray:
        return _column_of(columns, self.name).is_missing


def _check_kind(name: str, column: ItemColumn, value: Any) -> None:
    if _KIND_OF_TYPE[type(value)] != column.kind:
        raise ConfigError(
            f"`where` compares `{name}`, which holds {_plural(column)}, with "
            f"{shortened(repr(value))}; write {_VALUE_OF_KIND[column.kind]}"
        )


def joined(parts: Sequence[Test], join: np.ufunc) -> Test:
    """Several tests as one.

    Args:
        parts: the tests, at least one.
        join: takes what two of them found.
    """
    if len(parts) == 1:
        return parts[0]

    def test(columns: Columns) -> np.ndarray:
        found = parts[0](columns)
        # One after the other: all masks together could be many times as large as the table.
        for part in parts[1:]:
            found = join(found, part(columns))
        return found

    return test


def negated(part: Test) -> Test:
    """The opposite of a test.

    Args:
        part: the test.
    """

    def test(columns: Columns) -> np.ndarray:
        return ~part(columns)

    return test


def _column_of(columns: Columns, name: str) -> ItemColumn:
    if name in columns:
        return columns[name]
    raise ConfigError(f"`where` names {unknown_column(columns, name)}")


def unknown_column(columns: Columns, name: str) -> str:
    """Says which columns there are instead.

    Args:
        columns: of the item table.
        name: that it has no column of.
    """
    listed = ", ".join(f"`{each}`" for each in list(columns)[:12])
    if len(columns) > 12:
        listed += f" and {len(columns) - 12} more"
    meant = ""
    near = get_close_matches(name, list(columns), n=1)
    if near:
        meant = f"; did you mean `{near[0]}`?"
    return f"the column `{shortened(name)}`, which the item table does not have: {listed}{meant}"


def _plural(column: ItemColumn) -> str:
    return {"text": "text", "number": "numbers", "truth": "true and false"}[column.kind]
