"""What a person sees while settings are searched."""

from rich.console import Console

from pslrec.cli._progress import EpochBar, clock
from pslrec.training import EpochFinished, Event
from pslrec.tuning import CellFinished, CellStarted


class TuningProgress(EpochBar):
    """A bar over the epochs of the cell at hand, and a line per finished cell."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, width=20)
        self._left = self._best = ""
        self._place, self._until = "", 0

    def listen(self, event: CellStarted | CellFinished | Event) -> None:
        """Show an event."""
        if isinstance(event, CellStarted):
            self._place, self._until = f"cell {event.n_done + 1}/{event.n_cells}", event.until
            description = f"{self._place}: {event.cell.described()}"
            self._draw(description=description, total=event.until, completed=0, visible=True)
            self._show()
        elif isinstance(event, EpochFinished):
            self._draw(completed=event.epoch)
            self._show(f"epoch {event.epoch}/{self._until}")
        elif isinstance(event, CellFinished):
            self._finish(event)

    def _show(self, epoch: str = "") -> None:
        self._draw(numbers=", ".join(text for text in (epoch, self._best, self._left) if text))

    def _finish(self, event: CellFinished) -> None:
        outcome = event.outcome
        found = outcome.value(event.metric)
        value = "no look at validation yet" if found is None else f"{event.metric} {found:.4f}"
        value = "diverged" if outcome.state == "failed" else value
        self._best = "" if event.best is None else f"best {event.best:.4f}"
        self._left = f"{clock(event.seconds_left)} left" if event.seconds_left else ""
        epochs = f" after {outcome.epochs} epochs" if outcome.epochs else ""
        parts = [f"{outcome.cell.described()}: {value}{epochs}", self._best, self._left]
        self._tell(f"{self._place}: {', '.join(part for part in parts if part)}")
