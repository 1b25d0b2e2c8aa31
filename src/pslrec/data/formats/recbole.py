"""RecBole's atomic files: tab separated, with a header of `name:type`."""

from dataclasses import replace
from pathlib import Path

from pslrec.data.columns import Columns
from pslrec.data.formats.base import FORMATS, ReadOptions, Table
from pslrec.data.formats.bytes_of import first_lines
from pslrec.data.formats.delimited import read_delimited
from pslrec.errors import DataError


@FORMATS.register("recbole")
def read_recbole(path: Path, options: ReadOptions) -> Table:
    """Read an `.inter` file; columns are named without their type."""
    header, _ = first_lines(path, 1)
    if not header:
        raise DataError(f"{path}: the file is empty")
    typed = header[0].split("\t")
    if not all(":" in name for name in typed):
        raise DataError(f"{path}: line 1 must name columns as `name:type`, tab separated, got `{header[0][:80]}`")
    typed_of = {name.rsplit(":", 1)[0]: name for name in typed}
    plain = options.columns.resolve(list(typed_of), str(path))
    columns = Columns(*(None if name is None else typed_of[name] for name in plain.names()))
    return read_delimited(path, replace(options, columns=columns, separator="\t", header=True))
