"""Help pages: every command has one, and none of them shows the types of Python."""

import re

import pytest
from command_line import Command
from typer.main import get_command

from pslrec.cli._main import app

ROOT = get_command(app)
COMMANDS = [
    (name, *inner)
    for name, command in ROOT.commands.items()
    for inner in [(), *((each,) for each in getattr(command, "commands", {}))]
]
# What can do nothing useful without an argument or an option.
NEEDING_ARGUMENTS = [
    ("train",),
    ("evaluate",),
    ("report",),
    ("tune",),
    ("compare",),
    ("stress",),
    ("recommend",),
    ("similar",),
    ("export",),
    ("serve",),
    ("data", "describe"),
    ("data", "prepare"),
    ("data", "split"),
]


@pytest.mark.parametrize("command", [(), *COMMANDS], ids=" ".join)
def test_help_shows_names_and_no_types(
    pslrec: Command, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    done = pslrec(*command, "--help")
    assert done.code == 0, done.err
    assert "Usage:" in done.out
    assert not re.findall(r"<[a-z][^>]*>|\{[A-Z]", done.out)


@pytest.mark.parametrize("command", NEEDING_ARGUMENTS, ids=" ".join)
def test_a_command_without_its_arguments_shows_its_usage(
    pslrec: Command, command: tuple[str, ...]
) -> None:
    done = pslrec(*command)
    assert done.code == 2
    assert f"{' '.join(command)} [OPTIONS]" in done.out + done.err
    assert "Missing" not in done.out + done.err
