"""What a person sees while a model trains."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pslrec.training.events import BatchFinished, EpochFinished, Event, TrainingStarted

REFRESH_SECONDS = 0.2


class TrainingProgress:
    """A progress bar over epochs; where there is no terminal, a line per validation instead."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[numbers]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("epochs", numbers="", visible=False)
        self._batches = 1
        self._best = ""
        self._next_refresh = 0.0

    def __enter__(self) -> "TrainingProgress":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def listen(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, TrainingStarted):
            self._batches = event.n_batches
            self._bar.update(self._task, total=event.n_epochs, completed=event.epoch, visible=True)
        elif isinstance(event, BatchFinished):
            self._show_batch(event)
        elif isinstance(event, EpochFinished):
            self._show_epoch(event)

    def _show_batch(self, event: BatchFinished) -> None:
        if time.monotonic() < self._next_refresh:
            return
        self._next_refresh = time.monotonic() + REFRESH_SECONDS
        done = event.epoch + event.batch / self._batches
        self._bar.update(self._task, completed=done, numbers=f"loss {event.loss:.4f}{self._best}")

    def _show_epoch(self, event: EpochFinished) -> None:
        if event.is_best and event.validation is not None:
            self._best = f", best validation {event.validation:.4f} in epoch {event.epoch}"
        pace = f"loss {event.loss:.4f}, {event.seconds:.1f} s per epoch{self._best}"
        self._bar.update(self._task, completed=event.epoch, numbers=pace)
        if not self._console.is_terminal and event.validation is not None:
            self._console.print(
                f"epoch {event.epoch}: loss {event.loss:.4f}, validation {event.validation:.4f}"
                f"{' (best)' if event.is_best else ''}, {event.seconds:.1f} s per epoch",
                highlight=False,
            )
