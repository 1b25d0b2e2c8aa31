"""JSON lines: one object per line, plain or gzipped.

Every line goes through Python's own JSON reader. Polars is faster, but without a warning it takes
an object as text, the last of two equal keys, and 2^53 + 1 as 2^53 where another id is written as
a float.
"""

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from pslrec.data._columns import Columns, role_of
from pslrec.data.formats._base import FLOATS_MERGE_FROM, FORMATS, ReadOptions, Table
from pslrec.data.formats._bytes_of import numbered_lines
from pslrec.data.formats._encodings import not_utf8
from pslrec.errors import DataError

KIND_OF_TYPE: dict[type, str] = {dict: "an object", list: "an array"}


@FORMATS.register("json-lines")
def read_json_lines(path: Path, options: ReadOptions) -> Table:
    """Read the needed fields of a file with one JSON object per line."""
    fields = _Fields(options.columns)
    for number, line in numbered_lines(path, options.encoding):
        fields.add(number, _object(path, number, line))
    if not fields.lines:
        raise DataError(f"{path}: the file is empty")
    columns = options.columns.resolve(list(fields.names), str(path))
    series = []
    for role, name in columns.roles().items():
        series.append(_series(path, role, name, fields))
    return Table(pl.DataFrame(series), columns, str(path), lambda row: f"line {fields.lines[row]}")


@dataclass
class _Fields:
    """The values of those fields that may be a user, an item, and so on.

    Args:
        given: columns that the caller named.
        names: all fields seen so far, in order (a dict, because a set has no order).
        lines: number of the line of each record.
        values: the values of each field that may be needed, one per record.
    """

    given: Columns
    names: dict[str, None] = field(default_factory=dict)
    # Eight bytes per record, a quarter of what a list takes: files have millions of lines.
    lines: "array[int]" = field(default_factory=lambda: array("q"))
    values: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, number: int, record: dict[str, Any]) -> None:
        """Keep the fields of one line."""
        # Nearly all lines have the same fields, so this is the only work on names they cause.
        if record.keys() - self.names.keys():
            self._add_names(record)
        self.lines.append(number)
        for name, column in self.values.items():
            column.append(record.get(name))

    def _add_names(self, record: dict[str, Any]) -> None:
        for name in record:
            if name in self.names:
                continue
            self.names[name] = None
            if role_of(name) is not None or name in self.given.present():
                # The lines before this one do not have it.
                self.values[name] = [None] * len(self.lines)


class _RefusedError(Exception):
    """Raised for what others accept as JSON; its text follows "line 7" in the message."""


def _refuse_constant(constant: str) -> NoReturn:
    # Python's reader accepts NaN and Infinity, which are not in the standard.
    raise _RefusedError(f"has `{constant}`, which is not JSON; use a number or leave the field out")


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) == len(pairs):
        return record
    names = [name for name, _ in pairs]
    repeated = next(name for name in names if names.count(name) > 1)
    raise _RefusedError(f"has `{repeated}` more than once; rename or remove the others")


# Made once: building it takes longer than reading a line.
DECODER = json.JSONDecoder(object_pairs_hook=_refuse_repeated, parse_constant=_refuse_constant)


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = DECODER.decode(line.decode())
    except _RefusedError as problem:
        raise DataError(f"{path}: line {number} {problem}") from problem
    except UnicodeDecodeError as error:
        raise not_utf8(path, number, line) from error
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: line {number} is not JSON ({error}); one object per line is expected"
        ) from error
    if not isinstance(record, dict):
        kind = KIND_OF_TYPE.get(type(record), "a single value")
        raise DataError(f"{path}: line {number} is {kind}; one JSON object per line is expected")
    return record


def _series(path: Path, role: str, name: str, fields: _Fields) -> pl.Series:
    values = fields.values[name]
    is_id = role in ("user", "item")
    for nested in (dict, list):
        row = _first_of(values, nested)
        if row is not None:
            expected = "ids, whole numbers or text" if is_id else "numbers or text"
            raise DataError(
                f"{path}: line {fields.lines[row]}: `{name}` must hold {expected}, "
                f"it holds {KIND_OF_TYPE[nested]}"
            )
    if is_id:
        return _ids(path, name, fields)
    return _numbers(name, values)


def _first_of(values: Sequence[Any], kind: type) -> int | None:
    # Most columns have none, and a set of types is several times faster than the loop.
    if kind in set(map(type, values)):
        for row, value in enumerate(values):
            if type(value) is kind:
                return row
    return None


def _ids(path: Path, name: str, fields: _Fields) -> pl.Series:
    values = fields.values[name]
    kinds = set(map(type, values)) - {type(None)}
    if float in kinds:
        values = _whole(path, name, fields)
        kinds = kinds - {float} | {int}
    if kinds == {int} and _fit_64_bits(values):
        return pl.Series(name, values, dtype=pl.Int64)
    # Beside text all ids are text: "7" and 7 are the same, as they are in a CSV file.
    return pl.Series(name, [_spelling(value) for value in values], dtype=pl.String)


def _whole(path: Path, name: str, fields: _Fields) -> list[Any]:
    """The values, with floats replaced by the whole numbers they stand for."""
    values = list(fields.values[name])
    for row, value in enumerate(values):
        if type(value) is not float:
            continue
        if not value.is_integer() or abs(value) >= FLOATS_MERGE_FROM:
            raise DataError(
                f"{path}: line {fields.lines[row]}: `{name}` is {value}, "
                "ids must be whole numbers or text"
            )
        values[row] = int(value)
    return values


def _spelling(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        # As JSON spells it, not as Python does.
        return json.dumps(value)
    return str(value)


def _numbers(name: str, values: list[Any]) -> pl.Series:
    kinds = set(map(type, values)) - {type(None)}
    if str in kinds:
        # Text may be a date or a number in quotes, which is decided later, where the line is known.
        texts = [_spelling(value) for value in values]
        return pl.Series(name, texts, dtype=pl.String)
    if kinds == {int} and _fit_64_bits(values):
        return pl.Series(name, values, dtype=pl.Int64)
    numbers = [_float(value) for value in values]
    return pl.Series(name, numbers, dtype=pl.Float64)


def _fit_64_bits(values: Sequence[int | None]) -> bool:
    return all(value is None or abs(value) < 2**63 for value in values)


def _float(value: int | float | None) -> float | None:
    if value is None:
        return None
    try:
        return float(value)
    except OverflowError:
        # A whole number beyond all floats; infinity is refused later, where the line is known.
        return float("inf")
