"""Options about items and what may be recommended, shared by several commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pslrec.cli._identifiers import ids_in, pairs_in

if TYPE_CHECKING:
    from pslrec.data import Vocabulary
    from pslrec.data.items import ItemTable, TableFile

SHOWN_TITLES = 3

ItemTableFile = Annotated[
    Path | None,
    typer.Option(
        "--item-table",
        "--titles",
        metavar="FILE",
        help="Table of items: ids, titles to show, and columns for --where and --at-most. "
        "Default: the one that was saved with the run.",
    ),
]
NewItemTable = Annotated[
    Path | None,
    typer.Option(
        "--item-table",
        "--titles",
        metavar="FILE",
        help="Table of items to save with the model: ids, titles, and columns for rules.",
    ),
]
ItemTableEncoding = Annotated[
    str | None,
    typer.Option(
        "--item-table-encoding",
        metavar="NAME",
        help="Encoding of --item-table if it is text, such as latin-1. Default: utf-8.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="ITEM", help="Item to choose from. Repeatable."),
]
OnlyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File with the items to choose from: one per line, or a column `item`.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="ITEM", help="Item to leave out. Repeatable."),
]
ExcludeFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File with items to leave out: one per line, or a column `item`; with a column "
        "`user` as well, each line is about one user.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="Condition on the item table, such as 'genre == \"Comedy\" and year >= 1990'.",
    ),
]
AtMost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=N",
        help="At most N items of a list with the same value in a column. Repeatable.",
    ),
]


def excluded_in(
    path: Path | None, users: "Vocabulary", items: "Vocabulary"
) -> tuple[list[str], dict[str, list[str]]]:
    """Items that are left out for everybody, and those that are left out for a user.

    Args:
        path: a text file with one item per line, or a table with a column `item` and perhaps one
            called `user`.
        users: the users of the model.
        items: the items of the model.
    """
    if path is None:
        return [], {}
    pairs = pairs_in(path, users, items)
    if pairs is None:
        return ids_in(path, items), {}
    by_user: dict[str, list[str]] = {}
    for user, item in pairs:
        by_user.setdefault(user, []).append(item)
    return [], by_user


def limits_from(given: list[str] | None) -> dict[str, int]:
    """Limits by column, from texts such as `genre=2`.

    Args:
        given: as they were typed.
    """
    from pslrec.errors import ConfigError

    limits = {}
    for text in given or []:
        column, _, number = text.rpartition("=")
        if not column or not number.strip().isdecimal():
            raise ConfigError(f"`--at-most` must be COLUMN=N such as genre=2, got {text}")
        limits[column.strip()] = int(number)
    return limits


def table_file(path: Path | None, encoding: str | None) -> "TableFile | None":
    """What `--item-table` and `--item-table-encoding` say together; `None` if nothing.

    Args:
        path: the file.
        encoding: of the file.
    """
    from pslrec.data.items import TableFile
    from pslrec.errors import ConfigError

    if path is not None:
        return TableFile(path, encoding)
    if encoding is not None:
        raise ConfigError("`--item-table-encoding` is about a file; give `--item-table FILE`, too")
    return None


def table_in(file: "TableFile | None", run: Path, items: "Vocabulary") -> "ItemTable | None":
    """The item table of a file, else the one of the run, if it has one.

    Args:
        file: as `table_file` gives it.
        run: the run directory.
        items: the items of the model.
    """
    from pslrec.artifacts import read_item_table
    from pslrec.data.items import ItemTable

    if file is None:
        return read_item_table(run, items)
    return ItemTable.read(file, items)


def titles_like(wanted: list[str], items: "Vocabulary", table: "ItemTable | None") -> str:
    """What an error about an unknown item adds: what is known and looks like it.

    Args:
        wanted: as they were typed.
        items: the items of the model.
        table: with the titles, if there is one; somebody may have typed one of these.
    """
    unknown = [text for text in wanted if items.find_given(text) is None]
    if not unknown:
        return ""
    examples = items.ids(range(min(len(items), SHOWN_TITLES)))
    known = ", ".join(str(identifier) for identifier in examples)
    not_there = f"; it is not in the training data, whose items have ids such as {known}"
    if table is None:
        return not_there
    part = unknown[0].casefold()
    found = []
    for row, title in enumerate(table.titles):
        if title is not None and part in title.casefold():
            found.append(f"{items.ids([row])[0]} ({title})")
    if not found:
        return not_there
    # Ids are wanted, and a few show what they look like.
    return f"; give an id, such as {', '.join(found[:SHOWN_TITLES])}"


def title_cell(record: dict[str, Any], name: str) -> str:
    """What a table on the terminal shows for an item: its title and id, or the id alone.

    Args:
        record: a line of a frame of lists.
        name: of the column with the id.
    """
    identifier = str(record[name])
    title = record.get("title")
    if title is None:
        return identifier
    return f"{title} ({identifier})"
