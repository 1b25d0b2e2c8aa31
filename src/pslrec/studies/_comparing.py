"""A comparison: every contestant is tuned alike, then trained with several seeds, then tested."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pslrec.config import RunConfig
from pslrec.errors import ConfigError
from pslrec.studies._attempt import Attempt
from pslrec.studies._candidates import Candidate, Fitted, Trained, named_space
from pslrec.studies._cells import Cell, StageStarted
from pslrec.studies._comparison_files import write_comparison
from pslrec.studies._comparison_summary import summarized
from pslrec.studies._plan import ComparisonPlan
from pslrec.studies._searching import Effort, TuningResult, search, write_search
from pslrec.studies._space import Space
from pslrec.studies._study import TABLE_FILE, Study
from pslrec.studies._working import Clock, Listener, run_cells


def compare_contestants(
    config: RunConfig,
    plan: ComparisonPlan,
    *,
    out: Path,
    budget_seconds: float | None = None,
    workers: int = 1,
    storage: str | None = None,
    listener: Listener | None = None,
) -> dict[str, Any] | None:
    """Tune every contestant on validation, train the best settings with several seeds, and test.

    The test part is opened for the chosen settings alone. A comparison that was stopped is resumed
    by the same call, and several processes may make that call at the same time.

    Args:
        config: data, training and all else that contestants have in common.
        plan: who is compared, and how much is done for each.
        out: directory of the comparison; every search in it is a study of its own.
        budget_seconds: leave off after about that time.
        workers: processes that share the runs.
        storage: address of a database for the books.
        listener: is told what happens.

    Returns:
        The content of `comparison.json`; `None` if the time was over before the end.
    """
    if config.resolved().data.validation == "none":
        raise ConfigError(
            "there is no validation part to tune on, and nothing is chosen on the test part; "
            "set `data.validation` to fraction"
        )
    clock = Clock(budget_seconds)
    contestants = plan.contestants(config)
    tuning = _Tuning(plan, out, clock, workers, storage, listener)
    # First what is free, so that several processes begin with different contestants.
    for contestant in contestants:
        tuning.work(contestant, wait=False)
    chosen = [tuning.work(contestant, wait=True) for contestant in contestants]
    if not all(result.is_complete for result in chosen):
        return None
    cells = _final_cells(contestants, chosen, plan, config.training.seed)
    if listener is not None and not (out / "comparison.json").exists():
        listener(StageStarted("running the chosen settings"))
    trials = run_cells(
        Study(out, kind="comparison", metric=plan.metric, storage=storage),
        [cell for group in cells for cell in group],
        run_contestant,
        budget_seconds=clock.left,
        workers=workers,
        keeps_going=False,
        listener=listener,
    )
    if not all(trial.is_over for trial in trials):
        return None
    by_key = {trial.key: trial for trial in trials}
    groups = [[by_key[cell.key] for cell in group] for group in cells]
    found = summarized(config, plan, contestants, chosen, groups)
    write_comparison(found, out)
    return found


def run_contestant(attempt: Attempt) -> dict[str, Any]:
    """The work function of the last stage, for losses and baselines alike."""
    if isinstance(attempt.cell.task, RunConfig):
        return Trained.run(attempt)
    return Fitted.run(attempt)


@dataclass(frozen=True)
class _Tuning:
    plan: ComparisonPlan
    out: Path
    clock: Clock
    workers: int
    storage: str | None
    listener: Listener | None

    def work(self, contestant: Candidate, *, wait: bool) -> TuningResult:
        """Tune as far as possible, unless there is nothing to be tuned."""
        space = self._space(contestant)
        directory = self.out / "tuning" / contestant.name.replace(" / ", "-")
        if not space or not self.plan.n_trials:
            return TuningResult(directory, self.plan.metric, space, [], {}, is_complete=True)
        effort = Effort(
            sampler="tpe",
            pruner=self.plan.pruner,
            trials=self.plan.n_trials,
            budget_seconds=self.clock.left,
            workers=self.workers,
        )
        if self.listener is not None and not (directory / TABLE_FILE).exists():
            self.listener(StageStarted(f"tuning {contestant.name}"))
        study, result = search(
            contestant,
            space,
            effort,
            directory,
            metric=self.plan.metric,
            storage=self.storage,
            listener=self.listener,
            wait=wait,
        )
        write_search(study, result)
        return result

    def _space(self, contestant: Candidate) -> Space:
        fixed = {*self.plan.fixed}
        if isinstance(contestant, Trained):
            fixed |= self.plan.options.get(contestant.config.loss.name, {}).keys()
        return named_space(contestant, self.plan.space, fixed=fixed)


def _final_cells(
    contestants: Sequence[Candidate],
    chosen: Sequence[TuningResult],
    plan: ComparisonPlan,
    first_seed: int,
) -> list[list[Cell]]:
    groups = []
    for contestant, result in zip(contestants, chosen, strict=True):
        # What draws nothing at random is the same cell with every seed.
        group: dict[str, Cell] = {}
        for seed in range(first_seed, first_seed + plan.n_seeds):
            cell = contestant.seeded(result.settings, seed)
            shown = {"contestant": contestant.name, "seed": seed}
            group.setdefault(cell.key, Cell(cell.key, shown, cell.task))
        groups.append(list(group.values()))
    return groups
