"""What a paper printed: the files of `published/`, looked up by the columns of a cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pslrec.reporting import RUN_COLUMNS, canonical, read_results

Row = dict[str, str]


@dataclass(frozen=True)
class Printed:
    """A row that was found, or nothing.

    Args:
        file: its file, without ending.
        row: all its columns.
    """

    file: str = ""
    row: Row = field(default_factory=dict)

    def values(self, metrics: Sequence[str]) -> dict[str, float]:
        """The printed values, by metric."""
        return {name: float(self.row[name]) for name in metrics if self.row.get(name)}

    def settings(self) -> dict[str, Any]:
        """The settings of a run: columns whose names have a dot. Others are for readers."""
        found = {}
        for name, text in self.row.items():
            if "." in name and text:
                found[name] = _value(text)
        return found


class Published:
    """The printed numbers.

    Args:
        folder: of the paper. `published/` holds CSV files of what was printed, `settings/` of
            settings that were not printed but found. Columns that results have as well say which
            cells a row is about; a column that a file lacks, or that is empty, fits every cell.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, list[Row]] = {}

    def rows(self, file: str) -> list[Row]:
        """All rows of a file."""
        if file not in self._files:
            path = self._folder / "settings" / f"{file}.csv"
            if not path.exists():
                path = self._folder / "published" / f"{file}.csv"
            self._files[file] = read_results(path)
        return self._files[file]

    def find(self, files: Sequence[str], columns: Mapping[str, str]) -> Printed:
        """The first row that is about a cell.

        Args:
            files: where to look, in this order.
            columns: of the cell.
        """
        for file in files:
            for row in self.rows(file):
                if _is_about(row, columns):
                    return Printed(file, row)
        return Printed()


def _is_about(row: Row, columns: Mapping[str, str]) -> bool:
    said = {name: row[name] for name in RUN_COLUMNS if row.get(name)}
    return fits(columns, said)


def fits(row: Mapping[str, str], wanted: Mapping[str, Any]) -> bool:
    """Whether a row has one of the wanted values in every column.

    Args:
        row: of results.
        wanted: a value or a list of them, by column; numbers count by value.

    >>> fits({"loss": "SL", "noise": "0.50"}, {"loss": ["SL", "BSL"], "noise": 0.5})
    True
    """
    for name, value in wanted.items():
        listed = value if isinstance(value, list | tuple) else [value]
        if canonical(row[name]) not in {canonical(str(one)) for one in listed}:
            return False
    return True


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
