"""What a person sees during a search for settings."""

from rich.console import Console

from pslrec.cli._progress import EpochBar, clock
from pslrec.training import EpochFinished, Event
from pslrec.tuning import CellFinished, CellStarted


class TuningProgress(EpochBar):
    """A bar over the epochs of the current cell, and a line per finished cell."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, width=20)
        self._left = ""
        self._best = ""
        self._place = ""
        self._until = 0

    def listen(self, event: CellStarted | CellFinished | Event) -> None:
        """Show an event."""
        if isinstance(event, CellStarted):
            self._place = f"cell {event.n_done + 1}/{event.n_cells}"
            # With halving a cell stops before the last epoch of a run.
            self._until = event.until
            description = f"{self._place}: {event.cell.described()}"
            self._draw(description=description, total=event.until, completed=0, visible=True)
            self._show()
        elif isinstance(event, EpochFinished):
            self._draw(completed=event.epoch)
            self._show(f"epoch {event.epoch}/{self._until}")
        elif isinstance(event, CellFinished):
            self._finish(event)

    def _show(self, epoch: str = "") -> None:
        self._draw(numbers=_joined(epoch, self._best, self._left))

    def _finish(self, event: CellFinished) -> None:
        outcome = event.outcome
        found = outcome.value(event.metric)
        if outcome.state == "failed":
            value = "diverged"
        elif found is None:
            value = "not validated yet"
        else:
            value = f"{event.metric} {found:.4f}"
        self._best = ""
        if event.best is not None:
            self._best = f"best {event.best:.4f}"
        self._left = ""
        if event.seconds_left:
            self._left = f"{clock(event.seconds_left)} left"
        line = f"{outcome.cell.described()}: {value}"
        if outcome.epochs:
            line += f" after {outcome.epochs} epochs"
        self._tell(f"{self._place}: {_joined(line, self._best, self._left)}")


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
