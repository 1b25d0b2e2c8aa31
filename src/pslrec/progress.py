"""What a person sees while a model trains: in a terminal, in a notebook, or line by line."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from pslrec.terminal import can_redraw, tell
from pslrec.training import (
    BatchFinished,
    EpochFinished,
    EstimateMade,
    Event,
    Listener,
    SettingsChosen,
    SettingsTried,
    TrainingStarted,
    TryAdvanced,
    TryStarted,
    WalksChosen,
    WalksTried,
    described_memory,
)

# A batch may take less than a millisecond; redrawing after each would cost more than training.
REFRESH_SECONDS = 0.2
# Nobody needs an estimate for a run that is over before it is read.
LONG_RUN_SECONDS = 60
# On narrower terminals the bar and the numbers shrink, so that the time left stays in sight.
WIDE_COLUMNS = 110


class EpochBar:
    """A progress bar between a description and numbers, drawn on terminals only.

    Enter it as a context while something trains.

    Args:
        console: where to draw.
        width: length of the bar in characters.
    """

    def __init__(self, console: Console, *, width: int) -> None:
        self._console = console
        self._is_drawn = can_redraw(console)
        # Without markup: descriptions hold names of files and settings.
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(width),
            TextColumn("{task.fields[numbers]}", markup=False),
            console=console,
            disable=not self._is_drawn,
        )
        # Invisible until training starts, as reading the data may take a while.
        self._task = self._bar.add_task("", numbers="", visible=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def _draw(self, **changes: Any) -> None:
        self._bar.update(self._task, **changes)

    def _tell(self, text: str) -> None:
        tell(self._console, text)


class TrainingProgress(EpochBar):
    """A progress bar over epochs; without a terminal, one line per validation instead."""

    def __init__(self, console: Console) -> None:
        self._is_wide = console.width >= WIDE_COLUMNS
        super().__init__(console, width=30 if self._is_wide else 8)
        self._n_epochs = 1
        self._n_batches = 1
        self._first_done = 0.0
        self._started = 0.0
        self._next_refresh = 0.0
        self._seconds: float | None = None
        self._validation = 0.0
        self._best = 0.0
        self._best_epoch = 0
        self._last_epoch = 0
        # Of the race of `auto`, which comes before the training.
        self._try: TryStarted | None = None
        self._tried_trainings = 0
        self._last_done = 0.0

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and 0 < self._last_epoch < self._n_epochs:
            # Otherwise the bar would promise epochs that never come.
            self._draw(
                completed=self._n_epochs,
                description=f"stopped early after epoch {self._last_epoch}",
                numbers=", ".join(self._validation_text()),
            )
        super().__exit__(kind, error, trace)

    def listen(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, TrainingStarted):
            self._start(event)
        elif isinstance(event, EstimateMade):
            self._show_estimate(event)
        elif isinstance(event, BatchFinished):
            # The next epoch has begun, so the one before it was not the last.
            self._last_epoch = 0
            if time.monotonic() >= self._next_refresh:
                self._next_refresh = time.monotonic() + REFRESH_SECONDS
                self._show(event.epoch + event.batch / self._n_batches, event.loss)
        elif isinstance(event, EpochFinished):
            self._show_epoch(event)
        else:
            self._listen_to_choice(event)

    def _listen_to_choice(self, event: Event) -> None:
        """Show what is tried and chosen: settings before training, walks and a regression after it."""
        if isinstance(event, TryStarted):
            self._start_try(event)
        elif isinstance(event, TryAdvanced):
            self._show_try(event.done)
        elif isinstance(event, SettingsTried):
            self._tell(
                f"auto tried {event.settings}: validation {event.validation:.4f}, "
                f"{event.seconds:.1f} s"
            )
        elif isinstance(event, SettingsChosen):
            self._draw(visible=False)
            self._conclude(event.sentence)
        elif isinstance(event, WalksTried):
            self._draw(
                description=f"walks and regression, try {event.number}",
                numbers=f"validation {event.validation:.4f}",
            )
        elif isinstance(event, WalksChosen):
            # The bar is about the training again.
            self._draw(description="trained", numbers=", ".join(self._validation_text()))
            self._conclude(event.sentence)

    def _conclude(self, sentence: str) -> None:
        """Say what was chosen."""
        self._tell(sentence)

    def _start_try(self, event: TryStarted) -> None:
        if self._try is None:
            self._started = time.monotonic()
            self._tell(_race_announced(event))
        self._try = event
        self._tried_trainings = 0
        self._last_done = 0.0
        self._next_refresh = 0.0
        self._draw(visible=True, description=f"auto tries {event.settings}")
        self._show_try(0.0)

    def _show_try(self, done: float) -> None:
        if self._try is None or time.monotonic() < self._next_refresh:
            return
        self._next_refresh = time.monotonic() + REFRESH_SECONDS
        if done < self._last_done:
            # The next training of the same try has begun.
            self._tried_trainings += 1
        self._last_done = done
        share = (self._tried_trainings + done) / self._try.n_trainings
        completed = self._try.number - 1 + share
        if not self._try.n_tries:
            # How many come is not known, so the bar is about this one.
            self._draw(total=1, completed=share, numbers=f"try {self._try.number}")
            return
        numbers = f"try {self._try.number} of at most {self._try.n_tries}"
        if completed > 0:
            seconds = (time.monotonic() - self._started) / completed
            left = clock(seconds * (self._try.n_tries - completed))
            numbers += f", at most {left} left, then the training"
        self._draw(total=self._try.n_tries, completed=completed, numbers=numbers)

    def _start(self, event: TrainingStarted) -> None:
        self._n_epochs = event.n_epochs
        self._last_epoch = 0
        self._n_batches = event.n_batches
        # A resumed run starts in the middle; its pace is measured from there.
        self._first_done = event.epoch + event.batch / event.n_batches
        self._started = time.monotonic()
        self._next_refresh = 0.0
        self._draw(
            numbers="",
            completed=0,
            total=event.n_epochs,
            visible=True,
            description=f"epoch {event.epoch + 1}",
        )

    def _show_estimate(self, event: EstimateMade) -> None:
        if event.seconds > LONG_RUN_SECONDS:
            self._tell(
                f"training will take about {in_words(event.seconds)}, not counting validation; "
                f"memory on top of program and data: {described_memory(event.memory)}"
            )

    def _show(self, done: float, loss: float) -> None:
        # In the last batch of the last epoch `done` is the number of epochs.
        epoch = min(int(done) + 1, self._n_epochs)
        numbers = [f"loss {loss:.4f}", *self._validation_text(), *self._pace_text(done)]
        self._draw(
            completed=done,
            description=f"epoch {epoch}/{self._n_epochs}",
            numbers=", ".join(numbers),
        )

    def _validation_text(self) -> list[str]:
        if not self._best_epoch:
            return []
        if self._is_wide:
            best = f"best {self._best:.4f} in epoch {self._best_epoch}"
            return [f"validation {self._validation:.4f} ({best})"]
        return [f"best {self._best:.4f} ({self._best_epoch})"]

    def _pace_text(self, done: float) -> list[str]:
        parts = []
        if self._seconds is not None:
            parts.append(f"{self._seconds:.1f} s/epoch")
        since = done - self._first_done
        if since > 0 and done < self._n_epochs:
            # From the whole time so far, so that validation and checkpoints are counted.
            seconds_per_epoch = (time.monotonic() - self._started) / since
            left = seconds_per_epoch * (self._n_epochs - done)
            parts.append(f"{clock(left)} left")
        return parts

    def _show_epoch(self, event: EpochFinished) -> None:
        self._seconds = event.seconds
        self._last_epoch = event.epoch
        if event.validation is not None:
            self._validation = event.validation
            if event.is_best:
                self._best = event.validation
                self._best_epoch = event.epoch
        self._show(event.epoch, event.loss)
        if not self._is_drawn and event.validation is not None:
            best = " (best)" if event.is_best else ""
            self._tell(
                f"epoch {event.epoch}: loss {event.loss:.4f}, "
                f"validation {event.validation:.4f}{best}, {event.seconds:.1f} s per epoch"
            )


def _race_announced(first: TryStarted) -> str:
    """What is going to happen, and how to do without it."""
    how_many = "short trainings"
    if first.n_tries:
        how_many = f"at most {first.n_tries} short trainings"
    return (
        f"auto looks for settings first, by {how_many} on validation data; "
        "the preset fast does without"
    )


class NotebookProgress(TrainingProgress):
    """The same bar as an element of a notebook's page, which every kind of notebook can show."""

    def __init__(self) -> None:
        # Nothing is printed; the width decides how much the bar says.
        super().__init__(Console(quiet=True, width=WIDE_COLUMNS))
        # Not a line per validation in addition, as where nothing can be redrawn.
        self._is_drawn = True
        # Given by IPython when something is first shown.
        self._handle: Any = None
        self._shown: dict[str, Any] = {}
        self._notes: list[str] = []
        self._conclusions: list[str] = []

    def _draw(self, **changes: Any) -> None:
        self._shown |= changes
        self._update()

    def _tell(self, text: str) -> None:
        self._notes.append(text)
        self._update()

    def _conclude(self, sentence: str) -> None:
        self._conclusions.append(sentence)
        self._update()

    def _folded_notes(self) -> str:
        notes = self._notes
        shown = self._conclusions
        if not shown:
            notes, shown = self._notes[:-1], self._notes[-1:]
        if not shown:
            return ""
        # What was chosen; what was tried before it can be unfolded.
        summary = "<br>".join(escape(sentence) for sentence in shown)
        earlier = "".join(f"<div>{escape(note)}</div>" for note in notes)
        return f"<details><summary>{summary}</summary>{earlier}</details>"

    def _update(self) -> None:
        from IPython.display import HTML, display

        # Notebooks show an element of this kind as a bar without any further software.
        done = f"{self._shown.get('completed', 0):.2f}"
        bar = f'<progress value="{done}" max="{self._shown.get("total", 1)}"></progress>'
        said = f"{self._shown.get('description', '')} {self._shown.get('numbers', '')}"
        page = HTML(f"{self._folded_notes()}<div>{bar} {escape(said)}</div>")
        if self._handle is None:
            self._handle = display(page, display_id=True)
        else:
            self._handle.update(page)


def is_notebook() -> bool:
    """Whether a notebook shows what is displayed."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    # A terminal with IPython in it has another kind of shell.
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def shown_progress() -> Iterator[list[Listener]]:
    """Show the progress of a training where somebody can see it.

    Yields:
        Listeners for the training; none where there is neither a terminal nor a notebook.
    """
    console = Console(stderr=True)
    if is_notebook():
        progress: TrainingProgress = NotebookProgress()
    elif can_redraw(console):
        progress = TrainingProgress(console)
    else:
        # A log file has no use for a bar; those who want lines add a listener.
        yield []
        return
    with progress:
        yield [progress.listen]


def clock(seconds: float) -> str:
    """Time as hours, minutes and seconds; hours are left out where there are none.

    >>> clock(75), clock(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}"


def in_words(seconds: float) -> str:
    """Time in the largest unit that fits.

    >>> in_words(48), in_words(150), in_words(9000)
    ('48 s', '2.5 min', '2.5 h')
    """
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
