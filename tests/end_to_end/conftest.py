import sys
from pathlib import Path

import pytest
from command_line import Command, Outcome

from pslrec.data._synthetic import TasteModel, planted_tastes


@pytest.fixture
def pslrec(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs the program in this process with the arguments given."""
    from pslrec.cli import main

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["pslrec", *map(str, arguments)])
        capfd.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of people with tastes, as a file; only to be read."""
    path = tmp_path_factory.mktemp("data") / "log.csv"
    model = TasteModel(n_topics=4, median_history=9, minimum_history=6)
    planted_tastes(60, 40, model=model, seed=2).interactions.to_frame().write_csv(path)
    return path
