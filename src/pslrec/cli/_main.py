"""The `pslrec` program: its verbs, and what happens when one of them fails."""

import io
import logging
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from pslrec import __version__
from pslrec.cli._ending import INTERRUPTED, USER_ERROR
from pslrec.cli._listing import backbones_command, losses_command
from pslrec.cli.data import data_app
from pslrec.cli.demo import demo_command
from pslrec.cli.doctor import doctor_command
from pslrec.cli.evaluate import evaluate_command
from pslrec.cli.export import export_command
from pslrec.cli.recommend import recommend_command
from pslrec.cli.report import report_command
from pslrec.cli.reproduce import reproduce_app
from pslrec.cli.serve import serve_command
from pslrec.cli.similar import similar_command
from pslrec.cli.stress import stress_command
from pslrec.cli.train import train_command
from pslrec.cli.tune import tune_command
from pslrec.errors import PslrecError
from pslrec.registry import import_modules


class _StoppableGroup(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # `--import` is an option of the program, and accepted after the command as well.
        return super().parse_args(ctx, _imports_first(args))

    def invoke(self, ctx: Any) -> Any:
        # Caught here, before typer makes of it what its version thinks best.
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.stderr.write("stopped\n")
            raise typer.Exit(INTERRUPTED) from None


def _imports_first(args: list[str]) -> list[str]:
    imports: list[str] = []
    others: list[str] = []
    waiting = iter(args)
    for each in waiting:
        if each == "--import":
            imports += [each, next(waiting, "")]
        elif each.startswith("--import="):
            imports.append(each)
        elif each == "--":
            others += [each, *waiting]
        else:
            others.append(each)
    return imports + others


app = typer.Typer(
    name="pslrec",
    cls=_StoppableGroup,
    help="Train, judge and serve top-K recommenders; the ranking loss is an option.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app)
app.add_typer(reproduce_app)
app.command("train")(train_command)
app.command("evaluate")(evaluate_command)
app.command("report")(report_command)
app.command("tune")(tune_command)
app.command("stress")(stress_command)
app.command("recommend")(recommend_command)
app.command("similar")(similar_command)
app.command("export")(export_command)
app.command("serve")(serve_command)
app.command("losses")(losses_command)
app.command("backbones")(backbones_command)
app.command("demo")(demo_command)
app.command("doctor")(doctor_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pslrec {__version__}")
        raise typer.Exit


class _Once(logging.Filter):
    """A note is told once, however many runs of a command find the same about their data; warnings always."""

    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        is_new = text not in self._told
        self._told.add(text)
        return is_new or record.levelno > logging.INFO


@app.callback()
def _options(
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Leave out notes about what was found and done.")
    ] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a module or a .py file with losses or backbones; repeatable.",
        ),
    ] = None,
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    # Plain lines: a path must not be broken in two to fit the width of a terminal.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    handler.addFilter(_Once())
    package = logging.getLogger("pslrec")
    package.handlers[:] = [handler]
    package.setLevel(logging.WARNING if quiet else logging.INFO)
    import_modules(modules or ())


def main() -> None:
    """Run the program; an expected error is one sentence on standard error and exit code 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that can not show a character gets a stand-in for it, not an error.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    except PslrecError as error:
        Console(stderr=True, highlight=False).print("[bold red]error:[/] ", end="")
        sys.stderr.write(f"{_printable(str(error))}\n")
        sys.exit(USER_ERROR)
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does; that is no error of ours.
        sys.stderr.close()
        sys.exit(1)


def _printable(text: str) -> str:
    # An id or a name of a file may hold ends of lines, or what a terminal takes as a command.
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
