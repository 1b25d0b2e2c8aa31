"""Options for reading a file: which column is what, and how the file is written.

A command takes all of them by one line, `@takes_reading`, and gets them as one argument.
"""

import functools
import inspect
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

import typer

from pslrec.errors import ColumnsError

# They matter only if reading a file goes wrong without them, so they have a panel of their own.
PANEL = "Reading"


def _option(help: str, *names: str, metavar: str = "NAME") -> Any:  # noqa: A002 - typer's word
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=PANEL)


@dataclass(frozen=True)
class Reading:
    """What was said about the columns and the format of a file; `None` where nothing was."""

    user_column: Annotated[str | None, _option("Column with the users.")] = None
    item_column: Annotated[str | None, _option("Column with the items.")] = None
    rating_column: Annotated[
        str | None, _option('Column with the ratings; "" to ignore ratings.')
    ] = None
    time_column: Annotated[
        str | None,
        _option('Column with the times; "" to ignore times.'),
    ] = None
    weight_column: Annotated[
        str | None, _option('Column with the weights; "" to ignore weights.')
    ] = None
    file_format: Annotated[
        str | None,
        _option("delimited, unquoted, json-lines, lightgcn, parquet or recbole.", "--format"),
    ] = None
    separator: Annotated[
        str | None,
        _option("Separator between the fields of a text file; \\t is a tab.", metavar="TEXT"),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line of a text file names the columns.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None

    encoding: Annotated[
        str | None,
        _option("Encoding of a text file, such as latin-1, cp1252 or utf-16. Default: utf-8."),
    ] = None

    def settings(self) -> dict[str, Any]:
        """As settings of a run, by dotted name; `None` where an option was not given."""
        separator = self.separator
        if separator is not None:
            # A shell hands over a backslash and a t where people mean a tab.
            separator = separator.replace("\\t", "\t")
        return {
            "data.columns.user": self.user_column,
            "data.columns.item": self.item_column,
            "data.columns.rating": self.rating_column,
            "data.columns.timestamp": self.time_column,
            "data.columns.weight": self.weight_column,
            "data.format": self.file_format,
            "data.separator": separator,
            "data.header": self.header,
            "data.encoding": self.encoding,
        }

    def arguments(self) -> dict[str, Any]:
        """As arguments of `pslrec.data.load`."""
        from pslrec.config import RunConfig

        given = {name: value for name, value in self.settings().items() if value is not None}
        return RunConfig.from_settings(given).data.reading()


# The default of a command's argument, which typer never sees.
NO_READING = Reading()


def takes_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options of `Reading`.

    Args:
        command: gets them together, as its argument `reading`.
    """
    added = get_type_hints(Reading, include_extras=True)

    @functools.wraps(command)
    def with_reading(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in added}
        command(**arguments, reading=Reading(**given))

    # Typer reads the options of a command from its signature.
    signature = inspect.signature(command)
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.name != "reading":
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    for field in fields(Reading):
        parameters.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=added[field.name],
            )
        )
    annotations = {**get_type_hints(command, include_extras=True), **added}
    annotations.pop("reading")
    with_reading.__annotations__ = annotations
    # `inspect` looks for this attribute first.
    with_reading.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return with_reading


# How the command line names the column of each role.
OPTION_OF_ROLE = {
    "user": "--user-column",
    "item": "--item-column",
    "rating": "--rating-column",
    "timestamp": "--time-column",
    "weight": "--weight-column",
}


def columns_message(error: ColumnsError, arguments: Sequence[str]) -> str:
    """An error about columns, with the command that names them.

    Args:
        error: says what is wrong and what the columns probably are.
        arguments: of the program, as they were typed.

    >>> error = ColumnsError("log.csv: no user column found", {"user": "ann"})
    >>> columns_message(error, ["train", "log.csv"])
    'log.csv: no user column found; name the columns, perhaps pslrec train log.csv --user-column ann'
    """
    command = ["pslrec", *arguments]
    for role, name in error.guess.items():
        # Those that were typed are there already.
        if OPTION_OF_ROLE[role] not in arguments:
            command += [OPTION_OF_ROLE[role], name]
    return error.advising(shlex.join(command))
