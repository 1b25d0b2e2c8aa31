"""What the scripts beside this file keep: rows in CSV files, and what stands of them in the documentation between two markers."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pslrec.files import append_line, make_directory, write_text

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = REPOSITORY / "docs" / "how-to" / "new-users.md"


def append(path: Path, row: Mapping[str, object]) -> None:
    """Add a row to a file, which is begun with a line of names if it is not there."""
    make_directory(path.parent)
    line = io.StringIO()
    writer = csv.DictWriter(line, list(row), lineterminator="\n")
    if not path.exists():
        writer.writeheader()
    writer.writerow(row)
    append_line(path, line.getvalue().removesuffix("\n"))


def read(path: Path) -> list[dict[str, str]]:
    """All rows of a file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def table(headings: Mapping[str, str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; `headings` say of each column where it is aligned, by `---` or `---:`."""
    lines = [list(headings), list(headings.values()), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def publish(name: str, text: str, page: Path = PAGE) -> None:
    """Put a text between the markers of this name."""
    marked = rf"(<!-- {name} results -->\n).*?(<!-- end of {name} results -->)"
    before = page.read_text()
    after, count = re.subn(
        marked, lambda match: f"{match[1]}{text}\n{match[2]}", before, flags=re.DOTALL
    )
    if count != 1:
        raise ValueError(
            f"{page} must have the markers of `{name}` once, it has them {count} times"
        )
    write_text(page, after)
