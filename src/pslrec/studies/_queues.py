"""Where a process finds its next trial: a list of cells, or a sampler that proposes them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pslrec.studies._attempt import Attempt
from pslrec.studies._cells import Cell, Trial
from pslrec.studies._space import Pruning, Space, build_sampler, suggest
from pslrec.studies._study import Study

# A sampler that proposes known settings so often in a row has seen all there are.
MOST_REPETITIONS = 200


@dataclass(frozen=True)
class Queue:
    """Gives out trials; a copy of it goes to every process.

    Args:
        pruning: which trials are given up.
    """

    pruning: Pruning = field(default_factory=Pruning, kw_only=True)

    def begin(self, study: Study) -> None:
        """Prepare the study; called once in each process."""
        study.books.pruner = self.pruning.build()

    def trials(self, study: Study) -> list[Trial]:
        """Those of the study that belong to it."""
        return study.trials()

    def total(self, study: Study) -> int:
        """How many there will be."""
        return len(self.trials(study))

    def cell(self, trial: Trial) -> Cell:
        """The cell of a trial that is there."""
        raise NotImplementedError

    def propose(self, _study: Study) -> Attempt | None:
        """A new trial, running and held; `None` if there is none. The study is held."""
        return None


@dataclass(frozen=True)
class Listed(Queue):
    """A fixed list of cells, taken in its order."""

    cells: Sequence[Cell]

    def begin(self, study: Study) -> None:
        """Add the cells that the study does not know."""
        super().begin(study)
        study.add(self.cells)

    def trials(self, study: Study) -> list[Trial]:
        """In the order of the list."""
        by_key = {trial.key: trial for trial in study.trials()}
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

    def total(self, study: Study) -> int:
        """As many as were asked for, or as there are."""
        return self.n_trials or super().total(study)

    def cell(self, trial: Trial) -> Cell:
        """Made from its settings."""
        return self.cell_of(trial.settings)

    def propose(self, study: Study) -> Attempt | None:
        """Ask the sampler for settings that the study does not have."""
        from optuna.trial import TrialState

        known = {trial.key: trial for trial in study.trials()}
        if self.n_trials is not None and len(known) >= self.n_trials:
            return None
        for _ in range(MOST_REPETITIONS):
            # By the number of the trial, so that no two processes draw the same numbers and a
            # search that was stopped draws those that it would have drawn.
            n_before = len(study.books.get_trials(deepcopy=False))
            study.books.sampler = build_sampler(self.sampler, seed=self.seed + n_before)
            handle = study.books.ask()
            cell = self.cell_of(suggest(handle, self.space))
            if cell.key not in known:
                held = study.hold(handle.number)
                assert held is not None
                handle.set_user_attr("settings", dict(cell.settings))
                handle.set_user_attr("key", cell.key)
                return Attempt(study, cell, handle, held)
            # Told once more, so that the sampler learns where it has been.
            value = known[cell.key].value
            if value is None:
                study.books.tell(handle, state=TrialState.FAIL)
            else:
                study.books.tell(handle, value)
        return None
