"""The `pslrec` program: its commands, and what happens when one of them fails."""

import io
import logging
import os
import sys
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

# The modules below import torch, polars and the rest of the library inside their functions only, so
# that help pages appear at once; tests/architecture checks it.
from pslrec import __version__
from pslrec.cli._ending import INTERRUPTED, USER_ERROR
from pslrec.cli._help import Command, Group
from pslrec.cli._listing import backbones_command, losses_command
from pslrec.cli._processes import is_one_of_several, is_told_here
from pslrec.cli._reading import columns_message
from pslrec.cli.compare import compare_command
from pslrec.cli.data import data_app
from pslrec.cli.demo import demo_command
from pslrec.cli.doctor import doctor_command
from pslrec.cli.evaluate import evaluate_command
from pslrec.cli.export import export_command
from pslrec.cli.recommend import recommend_command
from pslrec.cli.report import report_command
from pslrec.cli.reproduce import reproduce_command
from pslrec.cli.serve import serve_command
from pslrec.cli.similar import similar_command
from pslrec.cli.stress import stress_command
from pslrec.cli.train import train_command
from pslrec.cli.tune import tune_command
from pslrec.errors import ColumnsError, PslrecError
from pslrec.registry import import_modules


class _StoppableGroup(Group):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # `--import` is an option of the program, and accepted after the command as well.
        return super().parse_args(ctx, _imports_first(args))

    def invoke(self, ctx: Any) -> Any:
        # Caught here because typer's own ending after Ctrl-C (message and exit code) differs from
        # release to release.
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
    help="Train, evaluate and serve top-K recommenders with the ranking loss of your choice.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app)
# A command that cannot do anything useful without arguments answers with its help page.
app.command("train", cls=Command, no_args_is_help=True)(train_command)
app.command("evaluate", cls=Command, no_args_is_help=True)(evaluate_command)
app.command("report", cls=Command, no_args_is_help=True)(report_command)
app.command("tune", cls=Command, no_args_is_help=True)(tune_command)
app.command("compare", cls=Command, no_args_is_help=True)(compare_command)
app.command("stress", cls=Command, no_args_is_help=True)(stress_command)
app.command("recommend", cls=Command, no_args_is_help=True)(recommend_command)
app.command("similar", cls=Command, no_args_is_help=True)(similar_command)
app.command("export", cls=Command, no_args_is_help=True)(export_command)
app.command("serve", cls=Command, no_args_is_help=True)(serve_command)
app.command("reproduce", cls=Command)(reproduce_command)
app.command("losses", cls=Command)(losses_command)
app.command("backbones", cls=Command)(backbones_command)
app.command("demo", cls=Command)(demo_command)
app.command("doctor", cls=Command)(doctor_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pslrec {__version__}")
        raise typer.Exit


class _Once(logging.Filter):
    """Lets each note through once, and warnings always.

    A command such as `tune` makes many runs, and each of them would say the same about its data.
    """

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
        bool, typer.Option("--quiet", "-q", help="Print results and warnings only, no notes.")
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
        typer.Option(
            "--version",
            help="Show the version and exit.",
            callback=_show_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    # Plain lines rather than rich's handler, which would break a long path in two.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    handler.addFilter(_Once())
    package = logging.getLogger("pslrec")
    # Replaced rather than added to: tests run the program several times in one process.
    package.handlers[:] = [handler]
    package.setLevel(logging.WARNING if quiet else logging.INFO)
    if not is_told_here():
        # All processes would say the same; what stops one of them is an error, which is shown.
        package.setLevel(logging.ERROR)
    import_modules(modules or ())


def main() -> None:
    """Run the program.

    An expected error becomes one sentence on standard error and exit code 2, never a traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a stand-in for it, not an error.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    except ColumnsError as error:
        _fail(columns_message(error, sys.argv[1:]))
    except PslrecError as error:
        _fail(str(error))
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does; that is no error of ours. Closing
        # the stream keeps the interpreter from complaining about it at exit.
        sys.stderr.close()
        sys.exit(1)


def _fail(message: str) -> NoReturn:
    if is_one_of_several():
        message = f"rank {os.environ['RANK']}: {message}"
    Console(stderr=True, highlight=False).print("[bold red]error:[/] ", end="")
    sys.stderr.write(f"{_printable(message)}\n")
    sys.exit(USER_ERROR)


def _printable(text: str) -> str:
    # An id or a file name may hold line breaks, or bytes that a terminal takes as a command.
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
