"""JSON lines: one object per line, plain or gzipped.

Every line goes through Python's own JSON reader. It is slower than polars, which takes an object as text, the last of
two equal keys, and 2^53 + 1 as 2^53 where another id is written as a float, all without a word.
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
from pslrec.errors import DataError

KIND_OF_TYPE: dict[type, str] = {dict: "an object", list: "an array"}


@FORMATS.register("json-lines")
def read_json_lines(path: Path, options: ReadOptions) -> Table:
    """Read the needed fields of a file with one JSON object per line."""
    fields = _Fields(options.columns)
    for number, line in numbered_lines(path):
        fields.add(number, _object(path, number, line))
    if not fields.lines:
        raise DataError(f"{path}: the file is empty")
    columns = options.columns.resolve(list(fields.names), str(path))
    frame = pl.DataFrame(
        [_series(path, role, name, fields) for role, name in columns.roles().items()]
    )
    return Table(frame, columns, str(path), lambda row: f"line {fields.lines[row]}")


@dataclass
class _Fields:
    """What the lines hold, of the fields that may be a user, an item, and so on."""

    given: Columns
    names: dict[str, None] = field(default_factory=dict)
    lines: "array[int]" = field(default_factory=lambda: array("q"))
    values: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, number: int, record: dict[str, Any]) -> None:
        """Keep the fields of one line."""
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
    """What is JSON to some, and refused here; its text goes on behind the number of the line."""


def _refuse_constant(constant: str) -> NoReturn:
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
        raise DataError(
            f"{path}: line {number} is not UTF-8 text; convert the file to UTF-8"
        ) from error
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
                f"{path}: line {fields.lines[row]}: `{name}` must hold {expected}, it holds {KIND_OF_TYPE[nested]}"
            )
    return _ids(path, name, fields) if is_id else _numbers(name, values)


def _first_of(values: Sequence[Any], kind: type) -> int | None:
    if kind not in set(map(type, values)):
        return None
    return next(row for row, value in enumerate(values) if type(value) is kind)


def _ids(path: Path, name: str, fields: _Fields) -> pl.Series:
    values = fields.values[name]
    kinds = set(map(type, values)) - {type(None)}
    if float in kinds:
        values = _whole(path, name, fields)
        kinds = kinds - {float} | {int}
    if kinds == {int} and all(value is None or abs(value) < 2**63 for value in values):
        return pl.Series(name, values, dtype=pl.Int64)
    # Beside text all ids are text: "7" and 7 are the same, as they are in a CSV file.
    return pl.Series(name, [_spelling(value) for value in values], dtype=pl.String)


def _whole(path: Path, name: str, fields: _Fields) -> list[Any]:
    """The values with floats as the whole numbers they stand for."""
    values = list(fields.values[name])
    for row, value in enumerate(values):
        if type(value) is not float:
            continue
        if not value.is_integer() or abs(value) >= FLOATS_MERGE_FROM:
            raise DataError(
                f"{path}: line {fields.lines[row]}: `{name}` is {value}, ids must be whole numbers or text"
            )
        values[row] = int(value)
    return values


def _spelling(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _numbers(name: str, values: list[Any]) -> pl.Series:
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {int} and all(value is None or abs(value) < 2**63 for value in values):
        return pl.Series(name, values, dtype=pl.Int64)
    if str not in kinds:
        return pl.Series(
            name, [None if value is None else _float(value) for value in values], dtype=pl.Float64
        )
    return pl.Series(name, [_spelling(value) for value in values], dtype=pl.String)


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all floats
        return float("inf")
