"""The `pslrec` program: its verbs, and what happens when one of them fails."""

import logging
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler

from pslrec import __version__
from pslrec.cli.data import data_app
from pslrec.cli.demo import demo_command
from pslrec.cli.doctor import doctor_command
from pslrec.errors import PslrecError

app = typer.Typer(
    name="pslrec",
    help="Train, judge and serve top-K recommenders; the ranking loss is an option.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app)
app.command("demo")(demo_command)
app.command("doctor")(doctor_command)

INTERRUPTED = 130
USER_ERROR = 2


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pslrec {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Leave out notes about what was found and done.")
    ] = False,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    handler = RichHandler(
        console=Console(stderr=True), show_time=False, show_level=False, show_path=False, highlighter=None
    )
    package = logging.getLogger("pslrec")
    package.handlers[:] = [handler]
    package.setLevel(logging.WARNING if quiet else logging.INFO)


def main() -> None:
    """Run the program; an expected error is one sentence on standard error and exit code 2, never a traceback."""
    try:
        app()
    except PslrecError as error:
        Console(stderr=True, highlight=False).print("[bold red]error:[/] ", end="")
        sys.stderr.write(f"{error}\n")
        sys.exit(USER_ERROR)
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does; that is no error of ours.
        sys.stderr.close()
        sys.exit(1)
