"""What a person sees while settings are searched."""

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from pslrec.cli.progress import clock
from pslrec.training.events import EpochFinished, Event
from pslrec.tuning import CellFinished, CellStarted


class TuningProgress:
    """A bar over the epochs of the cell at hand, and a line per finished cell."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[numbers]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", numbers="", visible=False)
        self._left = self._best = ""
        self._place, self._until = "", 0

    def __enter__(self) -> "TuningProgress":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def listen(self, event: CellStarted | CellFinished | Event) -> None:
        """Show an event."""
        if isinstance(event, CellStarted):
            self._place, self._until = f"cell {event.n_done + 1}/{event.n_cells}", event.until
            description = f"{self._place}: {event.cell.described()}"
            self._bar.update(self._task, description=description, total=event.until, completed=0, visible=True)
            self._show()
        elif isinstance(event, EpochFinished):
            self._bar.update(self._task, completed=event.epoch)
            self._show(f"epoch {event.epoch}/{self._until}")
        elif isinstance(event, CellFinished):
            self._finish(event)

    def _show(self, epoch: str = "") -> None:
        shown = ", ".join(text for text in (epoch, self._best, self._left) if text)
        self._bar.update(self._task, numbers=shown)

    def _finish(self, event: CellFinished) -> None:
        outcome = event.outcome
        found = outcome.value(event.metric)
        value = "no look at validation yet" if found is None else f"{event.metric} {found:.4f}"
        value = "diverged" if outcome.state == "failed" else value
        self._best = "" if event.best is None else f"best {event.best:.4f}"
        self._left = f"{clock(event.seconds_left)} left" if event.seconds_left else ""
        epochs = f" after {outcome.epochs} epochs" if outcome.epochs else ""
        left = f", {self._left}" if self._left else ""
        self._console.print(
            f"{self._place}: {outcome.cell.described()}: {value}{epochs}{left}", highlight=False, soft_wrap=True
        )
