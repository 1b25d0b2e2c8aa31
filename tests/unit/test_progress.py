"""Progress where somebody can see it: a terminal, a notebook, or nowhere."""

import io
import sys
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from pslrec import Recommender, progress
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.training import (
    EpochFinished,
    SettingsChosen,
    SettingsTried,
    TrainingStarted,
    TryAdvanced,
    TryStarted,
)

OPTIONS = {"preset": "fixed", "epochs": 2, "dimension": 4}
LOG = planted_tastes(40, 30, model=TasteModel(n_topics=3), seed=1).interactions


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()

    def console(**_: Any) -> Console:
        return Console(file=stream, force_terminal=True, force_interactive=True, width=120)

    monkeypatch.setattr(progress, "Console", console)
    return stream


class Shown:
    """What a notebook was asked to show: pages, and whether each took the place of the one before."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.n_elements = 0

    def display(self, page: str, *, display_id: bool) -> "Shown":
        assert display_id
        self.n_elements += 1
        self.pages.append(page)
        return self

    def update(self, page: str) -> None:
        self.pages.append(page)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Shown:
    shown = Shown()
    shell = type("ZMQInteractiveShell", (), {})()
    package = ModuleType("IPython")
    package.get_ipython = lambda: shell  # type: ignore[attr-defined]
    inner = ModuleType("IPython.display")
    inner.HTML = str  # type: ignore[attr-defined]
    inner.display = shown.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    return shown


def test_fit_draws_a_bar_in_a_terminal_unless_told_not_to(terminal: Terminal) -> None:
    Recommender("sl", **OPTIONS).fit(LOG)
    assert "epoch 2/2" in terminal.getvalue()
    terminal.truncate(0)
    Recommender("sl", verbose=False, **OPTIONS).fit(LOG)
    Recommender("sl", **OPTIONS).fit(LOG, verbose=False)
    assert "epoch" not in terminal.getvalue()


def test_fit_updates_one_element_of_a_notebook(notebook: Shown) -> None:
    Recommender("sl", **OPTIONS).fit(LOG)
    assert notebook.n_elements == 1
    assert 'value="2.00" max="2"' in notebook.pages[-1]
    assert "epoch 2/2" in notebook.pages[-1]


def test_notes_of_a_notebook_are_escaped_and_stay(notebook: Shown) -> None:
    bar = progress.NotebookProgress()
    bar.listen(SettingsChosen("took <b> & c"))
    bar.listen(TrainingStarted(n_epochs=3, n_batches=1, epoch=0, batch=0))
    bar.listen(EpochFinished(1, 0.5, 0.1, 0.25, True))
    assert "took &lt;b&gt; &amp; c" in notebook.pages[-1]
    assert "validation 0.2500" in notebook.pages[-1]
    assert notebook.n_elements == 1


def test_a_training_that_stops_early_leaves_a_full_bar(notebook: Shown) -> None:
    with progress.NotebookProgress() as bar:
        bar.listen(TrainingStarted(n_epochs=9, n_batches=1, epoch=0, batch=0))
        bar.listen(EpochFinished(1, 0.5, 0.1, 0.25, True))
        bar.listen(EpochFinished(2, 0.4, 0.1, 0.125, False))
        assert 'value="2.00" max="9"' in notebook.pages[-1]
    assert 'value="9.00" max="9"' in notebook.pages[-1]
    assert "stopped early after epoch 2" in notebook.pages[-1]
    assert "left" not in notebook.pages[-1]


def test_the_race_is_announced_and_shows_how_far_it_has_got(
    notebook: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every step is drawn, and takes a second.
    monkeypatch.setattr(progress, "REFRESH_SECONDS", 0.0)
    seconds = iter(range(100))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(seconds)))
    shown = progress.NotebookProgress()
    shown.listen(TryStarted("temperature 1/12", 1, 4, 2))
    assert "by at most 4 short trainings on validation data" in notebook.pages[-1]
    assert "auto tries temperature 1/12 try 1 of at most 4" in notebook.pages[-1]
    for done in (0.5, 1.0, 0.5, 1.0):
        shown.listen(TryAdvanced(done))
    assert '<progress value="1.00" max="4">' in notebook.pages[-1]
    assert "left, then the training" in notebook.pages[-1]
    shown.listen(SettingsTried("temperature 1/12", 0.5, 3.0))
    shown.listen(TryStarted("temperature 1/16", 2, 4, 2))
    shown.listen(TryAdvanced(0.5))
    assert '<progress value="1.25" max="4">' in notebook.pages[-1]
    # Where nobody knows how many tries there are, the bar is about one.
    shown.listen(TryStarted("dimension 256", 3, 0, 1))
    shown.listen(TryAdvanced(0.5))
    assert '<progress value="0.50" max="1">' in notebook.pages[-1]
    assert "try 3" in notebook.pages[-1]


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert not progress.is_notebook()
    Recommender("sl", **OPTIONS).fit(LOG)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
