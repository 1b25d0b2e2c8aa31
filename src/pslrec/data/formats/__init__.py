"""Reading tables of interactions, one module per format.

The format of a file follows from the end of its name, or from its content.
"""

from pathlib import Path

from pslrec.data.formats._base import FLOATS_MERGE_FROM, FORMATS, ReadOptions, Table
from pslrec.data.formats._bytes_of import (
    check_readable,
    decompressed,
    first_lines,
    in_memory,
    limited,
)
from pslrec.data.formats._encodings import checked_encoding, not_utf8_in
from pslrec.data.formats._memory import interactions_from_matrix, is_frame, table_from_frame
from pslrec.data.formats.delimited import (
    detect_separator,
    read_delimited,
    read_unquoted,
    split_lines,
)
from pslrec.data.formats.json_lines import read_json_lines
from pslrec.data.formats.lightgcn import is_ambiguous, looks_like_lightgcn, read_lightgcn
from pslrec.data.formats.parquet import read_parquet, scan_parquet
from pslrec.data.formats.recbole import read_recbole
from pslrec.errors import DataError

__all__ = [
    "FLOATS_MERGE_FROM",
    "FORMATS",
    "SUFFIXES",
    "ReadOptions",
    "Table",
    "check_readable",
    "checked_encoding",
    "decompressed",
    "detect_separator",
    "first_lines",
    "format_of",
    "in_memory",
    "interactions_from_matrix",
    "is_frame",
    "limited",
    "not_utf8_in",
    "read_delimited",
    "read_json_lines",
    "read_lightgcn",
    "read_parquet",
    "read_recbole",
    "read_unquoted",
    "scan_parquet",
    "split_lines",
    "table_from_frame",
]

_FORMAT_OF_SUFFIX = {
    ".csv": "delimited",
    ".tsv": "delimited",
    ".tab": "delimited",
    ".dat": "delimited",
    ".data": "delimited",
    ".parquet": "parquet",
    ".jsonl": "json-lines",
    ".ndjson": "json-lines",
    ".json": "json-lines",
    ".inter": "recbole",
}


SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
# What the tables of a directory end in, gzipped or not.
SUFFIXES = (*_FORMAT_OF_SUFFIX, ".txt")


def format_of(path: Path, encoding: str | None = None) -> str:
    """Name of the format of a file, by the end of its name; a `.txt` is looked into.

    Args:
        path: the file.
        encoding: of its text; `None` for UTF-8.
    """
    suffix = path.suffix
    if suffix.lower() == ".gz":
        suffix = Path(path.stem).suffix
    known = _FORMAT_OF_SUFFIX.get(suffix.lower())
    if known is not None:
        return known
    # A missing file is reported as missing, not as one of an unknown format.
    check_readable(path)
    if suffix.lower() in SPREADSHEETS:
        raise DataError(f"{path}: spreadsheets are not read; save the sheet as a CSV file")
    if suffix.lower() not in (".txt", ""):
        raise DataError(
            f"{path}: files ending in `{suffix}` are not known; name the format with `format=` "
            f"(on the command line `--format`), one of {', '.join(FORMATS)}"
        )
    lines = [line for _, line in first_lines(path, 200, encoding)]
    if is_ambiguous(lines):
        raise DataError(
            f"{path}: `{lines[0][:40]}` may be a user with its items, or a user, an item and a "
            'rating; say which with `format="lightgcn"` or `format="delimited"` '
            "(on the command line `--format`)"
        )
    if looks_like_lightgcn(lines):
        return "lightgcn"
    return "delimited"
