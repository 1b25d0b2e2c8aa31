"""What a person sees while cells run: a live table, or, without a terminal, a line per cell."""

import logging
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from pslrec.cli._ending import UNFINISHED
from pslrec.cli._progress import clock
from pslrec.cli._telling import can_redraw, tell
from pslrec.reproduction import State, Task

if TYPE_CHECKING:
    from pslrec.reproduction import Reproduction

_RUNS = logging.getLogger("pslrec.experiment")
SHOWN_DONE, SHOWN_NEXT = 6, 8
# People who read a log wonder whether anything still happens.
SECONDS_BETWEEN_LINES = 60.0
FINISHED: tuple[State, ...] = ("done", "failed")
NAMES: dict[State, str] = {
    "done": "done",
    "running": "running",
    "waiting": "left",
    "stopped": "stopped",
    "busy": "in another process",
    "failed": "failed",
    "absent": "without data",
}


class CellsProgress:
    """Shows tasks as they change."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live: Live | None = None
        if can_redraw(console):
            self._live = Live(console=console, auto_refresh=False, transient=True)
        self.tasks: Sequence[Task] = ()
        self._told: set[int] = set()
        self._told_at = time.monotonic()

    def __enter__(self) -> "CellsProgress":
        # Every cell is a run, and its notes would appear in the middle of the table.
        _RUNS.setLevel(logging.WARNING)
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        _RUNS.setLevel(logging.NOTSET)
        if self._live is not None:
            self._live.stop()

    def show(self, tasks: Sequence[Task]) -> None:
        """Show the state of all tasks."""
        n_known = len(self.tasks)
        self.tasks = tasks
        if self._live is not None:
            self._live.update(_table(tasks), refresh=True)
            return
        # By identity, as tasks change and therefore have no hash.
        finished = [task for task in tasks if task.state in FINISHED and id(task) not in self._told]
        self._told.update(map(id, finished))
        if len(tasks) > n_known:
            # Cells that an earlier command finished are counted, not listed again.
            tell(self.console, _summary(tasks))
            return
        n_possible = sum(task.state != "absent" for task in tasks)
        if finished:
            self._told_at = time.monotonic()
        elif time.monotonic() - self._told_at > SECONDS_BETWEEN_LINES:
            self._told_at = time.monotonic()
            for task in (task for task in tasks if task.state == "running"):
                tell(
                    self.console,
                    f"{task.cell.label()}: {100 * task.share:.0f} %{_left(tasks, ', about ')}",
                )
        for number, task in enumerate(finished, len(self._told) - len(finished) + 1):
            tell(
                self.console,
                f"{number}/{n_possible} {task.state}: {_line(task)}{_left(tasks, ', about ')}",
            )


def summarize(console: Console, tasks: Sequence[Task], reproduction: "Reproduction") -> int:
    """Print what happened, what is missing with how to get it, and notes; gives an exit code."""
    # Without repetitions: one missing data set concerns many cells.
    absent = dict.fromkeys(task.message for task in tasks if task.state == "absent")
    failed = [f"failed: {_line(task)}" for task in tasks if task.state == "failed"]
    n_recorded = sum(task.recorded is not None for task in tasks)
    hint = "" if reproduction.is_apart else "; --again runs them, too"
    recorded = [f"{n_recorded} already recorded, not run{hint}"] if n_recorded else []
    for text in (_summary(tasks), *recorded, *absent, *failed):
        tell(console, text)
    return UNFINISHED if failed or absent else 0


def plan_table(tasks: Sequence[Task]) -> Table:
    """Every cell with its state, and its result or about how long it would take."""
    table = _cells_table()
    for task in tasks:
        table.add_row(escape(task.cell.label()), NAMES[task.state], escape(_note(task)))
    return table


def _line(task: Task) -> str:
    return f"{task.cell.label()}: {task.message}"


def _summary(tasks: Sequence[Task]) -> str:
    counts = Counter(task.state for task in tasks)
    parts = [f"{counts[state]} {name}" for state, name in NAMES.items() if counts[state]]
    cells = f"{len(tasks)} {'cell' if len(tasks) == 1 else 'cells'}"
    return f"{cells}: {', '.join(parts) or 'none'}{_left(tasks, '; about ')}"


def _left(tasks: Sequence[Task], before: str) -> str:
    seconds = sum(task.seconds_left for task in tasks)
    return f"{before}{clock(max(seconds, 1))} left" if seconds else ""


def _table(tasks: Sequence[Task]) -> Table:
    done = [task for task in tasks if task.state in ("done", "failed", "busy")][-SHOWN_DONE:]
    running = [task for task in tasks if task.state == "running"]
    waiting = [task for task in tasks if task.state == "waiting"][:SHOWN_NEXT]
    table = _cells_table(_summary(tasks))
    for task in [*done, *running, *waiting]:
        state: str = task.state
        if task.state == "running":
            state += f" {100 * task.share:.0f} %, {clock(task.seconds_left)} left"
        table.add_row(escape(task.cell.label()), state, escape(_note(task)))
    return table


def _note(task: Task) -> str:
    if task.state == "waiting":
        return f"about {clock(task.seconds)}"
    # What is missing is said once below the table, not in every row.
    if task.state == "absent":
        return ""
    return task.message


def _cells_table(title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("cell", "state", "result"):
        table.add_column(name)
    return table
