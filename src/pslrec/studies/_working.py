"""Working on a study: claim a trial, make it, write down what came out, until nothing is left."""

import multiprocessing
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from pslrec.artifacts import DirectoryInUseError
from pslrec.errors import PslrecError
from pslrec.files import is_about_room
from pslrec.registry import import_modules, imported_modules
from pslrec.studies._attempt import Attempt
from pslrec.studies._cells import BudgetSpent, Cell, StageStarted, Trial, TrialEnded, TrialStarted
from pslrec.studies._queues import Listed, Queue
from pslrec.studies._study import Study
from pslrec.training import Event, TrainingDivergedError, TrainingInterrupted

WAIT_SECONDS = 0.5
Work = Callable[[Attempt], Mapping[str, Any]]
StudyEvent = StageStarted | TrialStarted | TrialEnded | Event
Listener = Callable[[StudyEvent], None]


class Clock:
    """The time that is left of a budget.

    Args:
        budget_seconds: from now on; `None` for all the time there is.
    """

    def __init__(self, budget_seconds: float | None) -> None:
        self._end = None
        if budget_seconds is not None:
            self._end = time.monotonic() + budget_seconds

    @property
    def left(self) -> float | None:
        """Seconds that are left, or `None`."""
        if self._end is None:
            return None
        return max(0.0, self._end - time.monotonic())


def run_cells(
    study: Study,
    cells: Sequence[Cell],
    work: Work,
    *,
    budget_seconds: float | None = None,
    workers: int = 1,
    wait: bool = True,
    keeps_going: bool = True,
    listener: Listener | None = None,
) -> list[Trial]:
    """Make every cell of a list that is not made yet, in its order.

    Args:
        study: keeps what comes out.
        cells: what to make; other cells of the study are left alone.
        work: makes one of them, see `Attempt`; it gives what is to be kept, as JSON can hold it.
            A function of a module, if there are several workers.
        budget_seconds: leave off after about that time; the next call resumes.
        workers: processes of this call.
        wait: for cells that other processes are working on, and take up those of killed ones.
        keeps_going: make other cells after one of them ended in an error, rather than raise it.
        listener: is told what happens.

    Returns:
        What became of the cells, in their order.
    """
    listed = Listed(cells)
    work_through(
        study,
        listed,
        work,
        budget_seconds=budget_seconds,
        workers=workers,
        wait=wait,
        keeps_going=keeps_going,
        listener=listener,
    )
    return listed.trials(study)


def work_through(
    study: Study,
    todo: Queue,
    work: Work,
    *,
    budget_seconds: float | None = None,
    workers: int = 1,
    wait: bool = True,
    keeps_going: bool = True,
    listener: Listener | None = None,
) -> bool:
    """Work until nothing is left to do, or the time is over; says whether nothing is left.

    Args:
        study: as in `run_cells`, like the others below.
        todo: where trials come from.
        work: makes one of them.
        budget_seconds: time to work.
        workers: processes.
        wait: for other processes.
        keeps_going: make other trials after one of them ended in an error, rather than raise it.
        listener: is told what happens.
    """
    seconds = float("inf") if budget_seconds is None else budget_seconds
    worker = _Worker(
        study,
        todo,
        work,
        deadline=time.monotonic() + seconds,
        wait=wait,
        keeps_going=keeps_going,
        n_workers=workers,
        tell=listener or _tell_nobody,
    )
    if workers == 1:
        return worker.run()
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads // workers))
    try:
        with _helpers(worker):
            return worker.run()
    finally:
        torch.set_num_threads(threads)


def _tell_nobody(_event: StudyEvent) -> None:
    """A listener where there is none."""


@dataclass
class _Worker:
    """Works in this process."""

    study: Study
    todo: Queue
    work: Work
    # Of the monotonic clock, which all processes of a machine share.
    deadline: float
    wait: bool
    keeps_going: bool
    n_workers: int
    tell: Listener
    # A trial that could not be made, for lack of data perhaps, is tried once by each process.
    tried: set[int] = field(default_factory=set)
    cost: float = 0.0
    seconds: float = 0.0

    def run(self) -> bool:
        self.todo.begin(self.study)
        is_through = False
        while not is_through and time.monotonic() < self.deadline:
            attempt = self._claim()
            if attempt is not None:
                with attempt:
                    self._make(attempt)
            elif self.wait and self._is_somebody_working():
                time.sleep(WAIT_SECONDS)
            else:
                is_through = True
        if self.tried or not self.study.has_results:
            self.study.write_results()
        return is_through

    def _claim(self) -> Attempt | None:
        with self.study.exclusively():
            for trial in self.todo.trials(self.study):
                if trial.is_over or trial.number in self.tried:
                    continue
                # Whoever had it has ended if the lock is free.
                held = self.study.hold(trial.number)
                if held is not None:
                    handle = self.study.start(trial.number)
                    return Attempt(self.study, self.todo.cell(trial), handle, held)
            return self.todo.propose(self.study)

    def _is_somebody_working(self) -> bool:
        for trial in self.todo.trials(self.study):
            if not trial.is_over and trial.number not in self.tried:
                return True
        return False

    def _make(self, attempt: Attempt) -> None:
        attempt.deadline = self.deadline
        attempt.watch = self.tell
        self.tried.add(attempt.number)
        n_done = sum(trial.is_over for trial in self.todo.trials(self.study))
        self.tell(TrialStarted(attempt.cell, n_done, self.todo.total(self.study)))
        began = time.monotonic()
        try:
            attempt.finish(self.work(attempt))
        except TrainingDivergedError as error:
            attempt.fail(str(error))
        except DirectoryInUseError:
            # A run of somebody outside of the study; it is looked at again later.
            self.tried.discard(attempt.number)
            attempt.leave("another process works in its directory")
            time.sleep(WAIT_SECONDS)
            return
        except (BudgetSpent, TrainingInterrupted, KeyboardInterrupt) as error:
            attempt.leave(str(error) or "interrupted")
            if not isinstance(error, BudgetSpent):
                raise
        except PslrecError as error:
            if is_about_room(error):
                # The books cannot be written either; a trial that is not over is taken up again.
                raise
            attempt.leave(str(error))
            if not self.keeps_going:
                raise
        if not attempt.left:
            self.cost += attempt.cell.cost
            self.seconds += time.monotonic() - began
        self._tell_end(attempt)

    def _tell_end(self, attempt: Attempt) -> None:
        self.study.write_results()
        trials = self.todo.trials(self.study)
        n_done = sum(trial.is_over for trial in trials)
        values = [trial.value for trial in trials if trial.value is not None]
        left = 0.0
        if self.cost:
            costs = [self.todo.cell(trial).cost for trial in trials if not trial.is_over]
            n_unknown = self.todo.total(self.study) - len(trials)
            pace = self.seconds / self.cost / self.n_workers
            left = (sum(costs) + n_unknown) * pace
        trial = self.study.trial(attempt.number)
        total = self.todo.total(self.study)
        self.tell(TrialEnded(trial, n_done, total, max(values, default=None), left))


@contextmanager
def _helpers(worker: _Worker) -> Iterator[None]:
    """Other processes that work on the study as long as this one does."""
    # Not forked: a copy of a process with threads may wait for locks that nobody holds.
    context = multiprocessing.get_context("spawn")
    events: Any = context.Queue()
    # An error of a helper would be seen by nobody; it leaves the trial to this process.
    helper_worker = replace(worker, wait=True, keeps_going=True, tell=_tell_nobody)
    arguments = (helper_worker, torch.get_num_threads(), imported_modules(), events)
    helpers = []
    for _ in range(worker.n_workers - 1):
        helpers.append(context.Process(target=_help, args=arguments))
    is_over = threading.Event()
    teller = threading.Thread(target=_pass_on, args=(events, worker.tell, is_over))
    for helper in helpers:
        helper.start()
    teller.start()
    try:
        yield
    except BaseException:
        for helper in helpers:
            # They stop between two steps, and save what they have.
            helper.terminate()
        raise
    finally:
        for helper in helpers:
            helper.join()
        is_over.set()
        teller.join()


def _help(worker: _Worker, threads: int, modules: Sequence[str], events: Any) -> None:
    # Ctrl-C reaches every process of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    import_modules(modules)

    def tell(event: StudyEvent) -> None:
        # Epochs of several runs at once would only confuse.
        if isinstance(event, TrialEnded):
            events.put(event)

    worker.tell = tell
    try:
        worker.run()
    except TrainingInterrupted:
        return


def _pass_on(events: Any, tell: Listener, is_over: threading.Event) -> None:
    while True:
        try:
            tell(events.get(timeout=WAIT_SECONDS))
        except queue.Empty:
            if is_over.is_set():
                return
