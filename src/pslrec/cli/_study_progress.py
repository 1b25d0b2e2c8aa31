"""What a person sees while a study is worked on."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from pslrec.cli._ending import saved_when_stopped
from pslrec.cli._progress import EpochBar, clock
from pslrec.cli._telling import notes_console
from pslrec.reporting import settings_in_words
from pslrec.studies import Listener, StageStarted, StudyEvent, TrialEnded, TrialStarted
from pslrec.training import EpochFinished, TrainingStarted


class StudyProgress(EpochBar):
    """A bar over the epochs of the current trial, and a line per trial that ended."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, width=20)
        self._left = ""
        self._best = ""
        self._n_epochs = 0

    def listen(self, event: StudyEvent) -> None:
        """Show an event."""
        if isinstance(event, StageStarted):
            self._tell(f"{event.title}:")
        elif isinstance(event, TrialStarted):
            place = f"trial {event.n_done + 1}/{event.n_trials}"
            description = f"{place}: {event.cell.described()}"
            self._draw(description=description, total=None, completed=0, visible=True)
            self._show()
        elif isinstance(event, TrainingStarted):
            self._n_epochs = event.n_epochs
            self._draw(total=event.n_epochs, completed=event.epoch)
        elif isinstance(event, EpochFinished):
            self._draw(completed=event.epoch)
            self._show(f"epoch {event.epoch}/{self._n_epochs}")
        elif isinstance(event, TrialEnded):
            self._end(event)

    def _show(self, epoch: str = "") -> None:
        self._draw(numbers=_joined(epoch, self._best, self._left))

    def _end(self, event: TrialEnded) -> None:
        trial = event.trial
        if trial.state == "failed":
            value = f"failed: {trial.reason}"
        elif trial.value is not None:
            value = f"validation {trial.value:.4f}"
        else:
            value = trial.state
        if trial.state == "pruned":
            value += ", given up"
        # A baseline has one round of its own.
        if trial.found.get("trained_epochs", 1) > 1:
            value += f" after {trial.found['trained_epochs']} epochs"
        self._best = ""
        if event.best is not None:
            self._best = f"best {event.best:.4f}"
        self._left = ""
        if event.seconds_left:
            self._left = f"{clock(event.seconds_left)} left"
        what = settings_in_words(trial.settings)
        place = f"trial {event.n_done}/{event.n_trials}"
        self._tell(f"{place}: {_joined(f'{what}: {value}', self._best, self._left)}")


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


@contextmanager
def study_listener() -> Iterator[Listener]:
    """What shows a study while it is worked on; one that is stopped is told how to be resumed."""
    with saved_when_stopped(), StudyProgress(notes_console()) as progress:
        yield progress.listen
