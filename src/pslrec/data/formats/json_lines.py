"""JSON lines: one object per line, plain or gzipped."""

import json
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from pslrec.data.formats.base import FORMATS, ReadOptions, Table
from pslrec.data.formats.bytes_of import decompressed, first_lines, in_memory
from pslrec.errors import DataError


@FORMATS.register("json-lines")
def read_json_lines(path: Path, options: ReadOptions) -> Table:
    """Read the needed fields of a file with one JSON object per line."""
    for number, line in first_lines(path, 100):
        _check_object(path, number, line)
    content = decompressed(path)
    try:
        schema = pl.scan_ndjson(content, infer_schema_length=None).collect_schema()
        columns = options.columns.resolve(schema.names(), str(path))
        wanted = {name: schema[name] for name in columns.present()}
        frame = pl.scan_ndjson(content, schema=wanted).select(*wanted).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        _explain(path, content, error)
    return Table(frame, columns, str(path), lambda row: f"line {_line_of_row(content, row)}")


def _check_object(path: Path, number: int, line: str) -> None:
    def refuse_constant(constant: str) -> NoReturn:
        raise DataError(
            f"{path}: line {number} has `{constant}`, which is not JSON; use a number or leave the field out"
        )

    def refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise DataError(f"{path}: line {number} has `{repeated}` more than once; rename or remove the others")
        return dict(pairs)

    try:
        record = json.loads(line, parse_constant=refuse_constant, object_pairs_hook=refuse_repeated)
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: line {number} is not JSON ({error}); one object per line is expected") from error
    if not isinstance(record, dict):
        kind = {"list": "an array"}.get(type(record).__name__, "a single value")
        raise DataError(f"{path}: line {number} is {kind}; one JSON object per line is expected")


def _explain(path: Path, content: bytes | Path, error: Exception) -> NoReturn:
    for number, line in enumerate(in_memory(content).split(b"\n"), start=1):
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise DataError(f"{path}: line {number} is not UTF-8 text; convert the file to UTF-8") from error
        if text.strip():
            _check_object(path, number, text)
    raise DataError(f"{path}: not JSON lines that can be read ({str(error).splitlines()[0]})") from error


def _line_of_row(content: bytes | Path, row: int) -> int:
    filled = (number for number, line in enumerate(in_memory(content).split(b"\n"), start=1) if line.strip())
    return next(number for position, number in enumerate(filled) if position == row)
