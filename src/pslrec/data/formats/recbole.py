"""RecBole's atomic files: tab separated, with a header of `name:type`."""

from dataclasses import replace
from pathlib import Path

from pslrec.data._columns import Columns
from pslrec.data.formats._base import FORMATS, ReadOptions, Table
from pslrec.data.formats._bytes_of import first_lines
from pslrec.data.formats.delimited import read_unquoted
from pslrec.errors import DataError


@FORMATS.register("recbole")
def read_recbole(path: Path, options: ReadOptions) -> Table:
    """Read an `.inter` file; columns are named without their type, quotation marks mean nothing."""
    header = first_lines(path, 1, options.encoding)[0][1]
    typed = header.split("\t")
    if not all(":" in name for name in typed):
        raise DataError(
            f"{path}: line 1 must name columns as `name:type`, tab separated, got `{header[:80]}`"
        )
    names = [name.rsplit(":", 1)[0] for name in typed]
    plain = options.columns.resolve(names, str(path))
    spelled = []
    for name in plain.names():
        if name is None:
            # The empty name: a column that is absent must not be guessed again from `name:type`.
            spelled.append("")
        else:
            spelled.append(typed[names.index(name)])
    columns = Columns(*spelled)
    return read_unquoted(path, replace(options, columns=columns, separator="\t", header=True))
