"""Working on a study: claim a trial, make it, write down what came out, until nothing is left."""

import multiprocessing
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from pslrec.artifacts import DirectoryInUseError
from pslrec.errors import PslrecError
from pslrec.files import is_about_room
from pslrec.registry import import_modules, imported_modules
from pslrec.studies._attempt import Attempt, Clock
from pslrec.studies._cells import BudgetSpent, Cell, StageStarted, Trial, TrialEnded, TrialStarted
from pslrec.studies._queues import Listed, Queue
from pslrec.studies._study import Study
from pslrec.training import Event, TrainingDivergedError, TrainingInterrupted

WAIT_SECONDS = 0.5
Work = Callable[[Attempt], Mapping[str, Any]]
StudyEvent = StageStarted | TrialStarted | TrialEnded | Event
Listener = Callable[[StudyEvent], None]


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
    todo = Listed(study, cells)
    worker = Worker(
        todo,
        work,
        Clock(budget_seconds),
        workers=workers,
        wait=wait,
        keeps_going=keeps_going,
        listener=listener,
    )
    worker.run()
    return todo.trials()


@dataclass
class Worker:
    """Works through a queue, in this process and, if there are several, in others.

    Args:
        todo: where trials come from.
        work: as in `run_cells`, like the others below.
        clock: ends the work.
        workers: processes.
        wait: for other processes.
        keeps_going: make other trials after one of them ended in an error, rather than raise it.
        listener: is told what happens.
    """

    todo: Queue
    work: Work
    clock: Clock
    workers: int = 1
    wait: bool = True
    keeps_going: bool = True
    listener: Listener | None = None
    # A trial that could not be made, for lack of data perhaps, is tried once by each process.
    _tried: set[int] = field(default_factory=set)
    _cost: float = 0.0
    _seconds: float = 0.0

    def run(self) -> bool:
        """Work until nothing is left to do, or the time is over; says whether nothing is left."""
        if self.workers == 1:
            return self.run_alone()
        threads = torch.get_num_threads()
        torch.set_num_threads(max(1, threads // self.workers))
        try:
            with _helpers(self):
                return self.run_alone()
        finally:
            torch.set_num_threads(threads)

    def run_alone(self) -> bool:
        """The same in this process."""
        study = self.todo.study
        self.todo.begin()
        is_through = False
        while not is_through and not self.clock.is_over:
            claimed = self._claim()
            if claimed is not None:
                attempt, held = claimed
                with held:
                    self._make(attempt)
            elif self.wait and self._open():
                time.sleep(WAIT_SECONDS)
            else:
                is_through = True
        if self._tried or not study.has_results:
            study.write_results()
        return is_through

    def tell(self, event: StudyEvent) -> None:
        """Tell the listener, if there is one."""
        if self.listener is not None:
            self.listener(event)

    def _open(self) -> list[Trial]:
        """What is not over, unless this process has tried it."""
        found = []
        for trial in self.todo.trials():
            if not trial.is_over and trial.number not in self._tried:
                found.append(trial)
        return found

    def _claim(self) -> tuple[Attempt, ExitStack] | None:
        with self.todo.study.exclusively():
            claimed = self._take()
            if claimed is None and self.todo.propose():
                claimed = self._take()
            return claimed

    def _take(self) -> tuple[Attempt, ExitStack] | None:
        study = self.todo.study
        for trial in self._open():
            # Whoever had it has ended if the lock is free.
            held = study.hold(trial.number)
            if held is not None:
                handle = study.start(trial.number)
                cell = self.todo.cell(trial)
                return Attempt(study, cell, handle, self.clock, self.tell), held
        return None

    def _make(self, attempt: Attempt) -> None:
        number = attempt.handle.number
        self._tried.add(number)
        n_done = sum(trial.is_over for trial in self.todo.trials())
        self.tell(TrialStarted(attempt.cell, n_done, self.todo.total()))
        began = time.monotonic()
        try:
            attempt.finish(self.work(attempt))
        except TrainingDivergedError as error:
            attempt.fail(str(error))
        except DirectoryInUseError:
            # A run of somebody outside of the study; it is looked at again later.
            self._tried.discard(number)
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
            self._cost += attempt.cell.cost
            self._seconds += time.monotonic() - began
        self.todo.study.write_results()
        self._tell_end(number)

    def _tell_end(self, number: int) -> None:
        trials = self.todo.trials()
        total = self.todo.total()
        values = [trial.value for trial in trials if trial.value is not None]
        ahead = [self.todo.cell(trial).cost for trial in trials if not trial.is_over]
        left = 0.0
        if self._cost:
            pace = self._seconds / self._cost / self.workers
            n_unknown = total - len(trials)
            left = (sum(ahead) + n_unknown) * pace
        n_done = len(trials) - len(ahead)
        trial = self.todo.study.trial(number)
        self.tell(TrialEnded(trial, n_done, total, max(values, default=None), left))


@contextmanager
def _helpers(worker: Worker) -> Iterator[None]:
    """Other processes that work on the study as long as this one does."""
    # Not forked: a copy of a process with threads may wait for locks that nobody holds.
    context = multiprocessing.get_context("spawn")
    events: Any = context.Queue()
    # An error of a helper would be seen by nobody; it leaves the trial to this process.
    helper_worker = replace(worker, wait=True, keeps_going=True, listener=None)
    arguments = (helper_worker, torch.get_num_threads(), imported_modules(), events)
    helpers = []
    for _ in range(worker.workers - 1):
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


def _help(worker: Worker, threads: int, modules: Sequence[str], events: Any) -> None:
    # Ctrl-C reaches every process of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    import_modules(modules)

    def tell(event: StudyEvent) -> None:
        # Epochs of several runs at once would only confuse.
        if isinstance(event, TrialEnded):
            events.put(event)

    worker.listener = tell
    try:
        worker.run_alone()
    except TrainingInterrupted:
        return


def _pass_on(events: Any, tell: Listener, is_over: threading.Event) -> None:
    while True:
        try:
            tell(events.get(timeout=WAIT_SECONDS))
        except queue.Empty:
            if is_over.is_set():
                return
