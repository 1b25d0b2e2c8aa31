"""JSON lines: one object per line, plain or gzipped."""

import json
from pathlib import Path
from typing import NoReturn

import polars as pl

from pslrec.data.formats.base import FORMATS, ReadOptions, Table
from pslrec.data.formats.bytes_of import decompressed, first_lines
from pslrec.errors import DataError


@FORMATS.register("json-lines")
def read_json_lines(path: Path, options: ReadOptions) -> Table:
    """Read the needed fields of a file with one JSON object per line."""
    content = decompressed(path)
    columns = options.columns.resolve(_keys(path), str(path))
    wanted = [name for name in columns.names() if name is not None]
    try:
        frame = pl.scan_ndjson(content, infer_schema_length=None).select(wanted).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        _explain(path, content, wanted, error)
    return Table(frame, columns, str(path), lambda row: f"line {row + 1}")


def _keys(path: Path) -> list[str]:
    keys: dict[str, None] = {}
    for number, line in enumerate(first_lines(path, 100)[0], start=1):
        keys |= dict.fromkeys(_object(path, number, line))
    if not keys:
        raise DataError(f"{path}: the file is empty")
    return list(keys)


def _object(path: Path, number: int, line: str | bytes) -> dict[str, object]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DataError(f"{path}: line {number} is not a JSON object ({error})") from error
    if not isinstance(record, dict):
        raise DataError(f"{path}: line {number} is not a JSON object but {type(record).__name__}")
    return record


def _explain(path: Path, content: bytes | Path, wanted: list[str], error: Exception) -> NoReturn:
    raw = content.read_bytes() if isinstance(content, Path) else content
    kinds: dict[str, type] = {}
    for number, line in enumerate(raw.splitlines(), start=1):
        if not line.strip():
            continue
        record = _object(path, number, line)
        for name in wanted:
            kind = type(record.get(name))
            if kind is not type(None) and kinds.setdefault(name, kind) is not kind:
                raise DataError(
                    f"{path}: line {number} has {kind.__name__} in `{name}` where earlier lines have {kinds[name].__name__}"
                ) from error
    raise DataError(f"{path}: not JSON lines that can be read ({str(error).splitlines()[0]})") from error
