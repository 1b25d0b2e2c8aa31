"""Reading raw files: polars for speed; when something is wrong, a slow second look for the line at fault."""

import csv
import gzip
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from enum import Enum
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

import polars as pl

from pslrec.data._interactions import Interactions
from pslrec.errors import DataError


class Kind(Enum):
    """What a column holds, in the words of an error message."""

    TEXT = "text"
    INTEGER = "a whole number"
    NUMBER = "a finite number"
    TIME = "a date, or date and time"
    SKIPPED = "anything"


Columns = Mapping[str, Kind]
Records = Iterator[tuple[int, Mapping[str, Any]]]

DTYPES = {Kind.INTEGER: pl.Int64, Kind.NUMBER: pl.Float32}
GZIP_MAGIC = b"\x1f\x8b"
BROKEN_ARCHIVE = (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error)


def to_interactions(frame: pl.DataFrame) -> Interactions:
    """Interactions of the columns `user`, `item`, and `rating` and `timestamp` where there are any."""
    optional = {
        f"{name}s": frame[name] for name in ("rating", "timestamp") if name in frame.columns
    }
    return Interactions.from_ids(frame["user"], frame["item"], **optional)


def read_delimited(
    path: Path, columns: Columns, *, separator: str, member: str | None = None
) -> pl.DataFrame:
    """A file without header whose lines are fields with a separator between them, never quoted.

    Args:
        path: the file, plain or gzipped, or a zip.
        columns: what is in each field, in order.
        separator: one character, or one character twice.
        member: the file within, if `path` is a zip.
    """
    # Polars separates by single bytes: a doubled one leaves an empty field between any two.
    gaps = [f"_{name}" for name in list(columns)[1:] if len(separator) > 1]
    names = [
        part for name in columns for part in (f"_{name}", name) if part in columns or part in gaps
    ]
    schema = {name: DTYPES.get(columns.get(name, Kind.SKIPPED), pl.String) for name in names}

    def scan() -> pl.LazyFrame:
        source = _member_bytes(path, member) if member else path
        # Not lazily: with fewer columns to parse, polars would pass over surplus fields at the end of a line.
        frame = pl.read_csv(
            source, has_header=False, schema=schema, separator=separator[0], quote_char=None
        )
        if any(frame[gap].null_count() < len(frame) for gap in gaps):
            raise pl.exceptions.ComputeError(f"expected {separator!r} between fields")
        return frame.lazy()

    def records() -> Records:
        with open_text(path, member) as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, _fields(line, columns, separator)

    return _read(path, columns, scan, records)


def read_json_lines(path: Path, columns: Columns) -> pl.DataFrame:
    """One JSON object per line, of which some keys are taken."""
    schema = {name: DTYPES.get(kind, pl.String) for name, kind in columns.items()}

    def records() -> Records:
        with open_text(path) as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, _json_object(line)

    return _read(path, columns, lambda: pl.scan_ndjson(path, schema=schema), records)


def read_csv_table(path: Path, columns: Columns) -> pl.DataFrame:
    """A CSV file with header and quotes, of which some columns are taken."""
    schema = {name: DTYPES.get(kind, pl.String) for name, kind in columns.items()}

    def records() -> Records:
        with open_text(path) as file:
            reader = csv.DictReader(file)
            for record in reader:
                yield reader.line_num, record

    return _read(path, columns, lambda: pl.scan_csv(path, schema_overrides=schema), records)


@contextmanager
def open_text(path: Path, member: str | None = None) -> Iterator[IO[str]]:
    """The text of a file, gzipped or not, or of a member of a zip."""
    with ExitStack() as stack:
        content: Any = stack.enter_context(path.open("rb"))
        if member:
            content = stack.enter_context(
                stack.enter_context(zipfile.ZipFile(content)).open(member)
            )
        elif content.peek(2)[:2] == GZIP_MAGIC:
            content = stack.enter_context(gzip.GzipFile(fileobj=content))
        yield stack.enter_context(TextIOWrapper(content, encoding="utf-8-sig", newline=""))


def _member_bytes(path: Path, member: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read(member)


def _read(
    path: Path, columns: Columns, scan: Callable[[], pl.LazyFrame], records: Callable[[], Records]
) -> pl.DataFrame:
    wanted = {name: kind for name, kind in columns.items() if kind is not Kind.SKIPPED}
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    try:
        frame = scan().select(_column(name, kind) for name, kind in wanted.items()).collect()
    except (pl.exceptions.PolarsError, OSError, KeyError, *BROKEN_ARCHIVE) as error:
        raise _explain(path, wanted, records, error) from error
    if frame.null_count().row(0) != (0,) * frame.width:
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))  # empty lines
    if frame.null_count().row(0) != (0,) * frame.width:
        raise _explain(path, wanted, records, None)
    if frame.is_empty():
        raise DataError(f"{path} is empty")
    return frame


def _column(name: str, kind: Kind) -> pl.Expr:
    column = pl.col(name)
    if kind is Kind.TEXT:
        return pl.when(column != "").then(column)
    if kind is Kind.NUMBER:
        return pl.when(column.is_finite()).then(column)
    if kind is Kind.TIME:
        plain = column.str.strip_suffix("Z").str.replace("T", " ", literal=True)
        moment = plain.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us")
        day = plain.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us"))
        return pl.coalesce(moment, day).dt.epoch("s").alias(name)
    return column


def _explain(
    path: Path, columns: Columns, records: Callable[[], Records], cause: BaseException | None
) -> DataError:
    number = 0
    try:
        for number, record in records():
            for name, kind in columns.items():
                if not _is(record.get(name), kind):
                    return DataError(
                        f"{path}, line {number}: `{name}` must be {kind.value}, got {record.get(name)!r}"
                    )
    except UnicodeDecodeError:
        return DataError(
            f"{path}, after line {number}: not UTF-8 text; is this the file as published?"
        )
    except (*BROKEN_ARCHIVE, KeyError) as error:
        return DataError(f"{path} is truncated or damaged ({error}); delete it and fetch it again")
    except DataError as error:
        return DataError(f"{path}, line {number + 1}: {error}")
    return DataError(
        f"{path} cannot be read: {str(cause).splitlines()[0] if cause else 'a value is missing'}"
    )


def _is(value: Any, kind: Kind) -> bool:
    text = "" if value is None else str(value)
    try:
        if kind is Kind.INTEGER:
            int(text)
        elif kind is Kind.TIME:
            datetime.fromisoformat(text)
        return text != "" and (kind is not Kind.NUMBER or math.isfinite(float(text)))
    except ValueError:
        return False


def _fields(line: str, columns: Columns, separator: str) -> dict[str, str]:
    fields = line.rstrip("\r\n").split(separator)
    if len(fields) != len(columns):
        expected = f"{len(columns)} fields ({', '.join(columns)}) with {separator!r} between them"
        raise DataError(f"expected {expected}, got {len(fields)}")
    return dict(zip(columns, fields, strict=True))


def _json_object(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DataError(f"not JSON ({error}); was the file cut off?") from error
    if not isinstance(record, dict):
        raise DataError(f"expected a JSON object, got {type(record).__name__}")
    return record
