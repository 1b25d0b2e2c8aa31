"""Where a process finds its next trial: a list of cells, or a sampler that proposes them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pslrec.studies._cells import Cell, Trial
from pslrec.studies._space import Pruning, Space, build_sampler, suggest
from pslrec.studies._study import Study

# A sampler that proposes known settings so often in a row has seen all there are.
MOST_REPETITIONS = 200


@dataclass(frozen=True)
class Queue:
    """Gives out trials; a copy of it goes to every process.

    Args:
        study: keeps them.
        pruning: which trials are given up.
    """

    study: Study
    pruning: Pruning = field(default_factory=Pruning, kw_only=True)

    def begin(self) -> None:
        """Prepare the study; called once in each process."""
        self.study.books.pruner = self.pruning.build()

    def trials(self) -> list[Trial]:
        """Those of the study that belong to it."""
        return self.study.trials()

    def total(self) -> int:
        """How many there will be."""
        return len(self.trials())

    def cell(self, trial: Trial) -> Cell:
        """The cell of a trial that is there."""
        raise NotImplementedError

    def propose(self) -> bool:
        """Add a new trial, if there is one to add. The study is held."""
        return False


@dataclass(frozen=True)
class Listed(Queue):
    """A fixed list of cells, taken in its order."""

    cells: Sequence[Cell]

    def begin(self) -> None:
        """Add the cells that the study does not know."""
        super().begin()
        self.study.add(self.cells)

    def trials(self) -> list[Trial]:
        """In the order of the list."""
        by_key = {trial.key: trial for trial in self.study.trials()}
        return [by_key[cell.key] for cell in self.cells]

    def cell(self, trial: Trial) -> Cell:
        """The one with the key."""
        return next(cell for cell in self.cells if cell.key == trial.key)


@dataclass(frozen=True)
class Proposed(Queue):
    """Cells from a search space.

    Args:
        space: values or ranges by setting.
        sampler: `random` or `tpe`.
        n_trials: trials in all, `None` for no end; settings that were proposed before do not count.
        cell_of: the cell for a choice of settings.
        seed: of the sampler.
    """

    space: Space
    sampler: str
    n_trials: int | None
    cell_of: Callable[[Mapping[str, Any]], Cell]
    seed: int

    def total(self) -> int:
        """As many as were asked for, or as there are."""
        return self.n_trials or super().total()

    def cell(self, trial: Trial) -> Cell:
        """Made from its settings."""
        return self.cell_of(trial.settings)

    def propose(self) -> bool:
        """Ask the sampler for settings that the study does not have."""
        from optuna.trial import TrialState

        known = {trial.key: trial for trial in self.study.trials()}
        if self.n_trials is not None and len(known) >= self.n_trials:
            return False
        books = self.study.books
        for _ in range(MOST_REPETITIONS):
            # By the number of the trial, so that no two processes draw the same numbers and a
            # search that was stopped draws those that it would have drawn.
            n_before = len(books.get_trials(deepcopy=False))
            books.sampler = build_sampler(self.sampler, seed=self.seed + n_before)
            handle = books.ask()
            cell = self.cell_of(suggest(handle, self.space))
            if cell.key not in known:
                handle.set_user_attr("settings", dict(cell.settings))
                handle.set_user_attr("key", cell.key)
                return True
            # Told once more, so that the sampler learns where it has been.
            value = known[cell.key].value
            if value is None:
                books.tell(handle, state=TrialState.FAIL)
            else:
                books.tell(handle, value)
        return False
