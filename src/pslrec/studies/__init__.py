"""Many runs as one study, shared by any number of processes.

A study is a directory. `study.json` says what is asked, `trials/KEY` is the run directory of each
trial, `results.csv` and `results.json` are the table of what came out. Optuna keeps the books, in
`journal.jsonl` or in a database. Processes that open the same directory share the work: nothing is
made twice, and what a killed process left is resumed by the next one that looks for work.

A fixed list of cells is run like this; `run_cell` is a ready work function for cells whose task is
a `RunConfig`, and any function of an `Attempt` will do:

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> from pslrec.config import RunConfig
>>> settings = {"data.source": "synthetic", "training.epochs": 1, "sampling.negatives": 5}
>>> cells = []
>>> for seed in (1, 2):
...     config = RunConfig.from_settings({**settings, "training.seed": seed}).resolved()
...     cells.append(Cell(key=f"mf-{seed}", settings={"seed": seed}, task=config))
>>> directory = TemporaryDirectory()
>>> study = Study(Path(directory.name), kind="reproduction", asked={"paper": "example"})
>>> trials = run_cells(study, cells, run_cell)
>>> [(trial.key, trial.state, "test" in trial.found) for trial in trials]
[('mf-1', 'finished', True), ('mf-2', 'finished', True)]

A work function of your own gets an `Attempt`: `attempt.cell` with its `task`, `attempt.directory`,
which may hold a run to be resumed, and three functions to hand on to `run` or
`train_on_validation`: `listen` for progress and pruning, `pause` for work that can pause, and
`stop_when_due` for work that cannot. It returns what is to be kept. If it raises
`TrainingDivergedError` the trial has failed for good; after any other error of pslrec the other
cells are made all the same, the trial stays open with its `reason`, and the next call tries again.

>>> def double(attempt):
...     return {"result": 2 * attempt.cell.task}
>>> [trial] = run_cells(study, [Cell("two", {"n": 2}, task=2)], double)
>>> trial.found["result"], trial.is_over
(4, True)
>>> directory.cleanup()
"""

from pslrec.studies._attempt import Attempt, Clock
from pslrec.studies._candidates import Trained, named_space
from pslrec.studies._cells import (
    BudgetSpent,
    Cell,
    StageStarted,
    State,
    Trial,
    TrialEnded,
    TrialStarted,
)
from pslrec.studies._comparing import ComparisonPlan, compare_contestants
from pslrec.studies._comparison_files import write_comparison
from pslrec.studies._searching import Effort, TuningResult
from pslrec.studies._space import PRUNERS, SAMPLERS, Range, Space, read_space
from pslrec.studies._stress import StressPlan, stress, summarize, write_stress
from pslrec.studies._study import Study
from pslrec.studies._tuning import tune
from pslrec.studies._working import Listener, StudyEvent, Work, run_cells
from pslrec.studies._works import PER_USER, run_cell, train_cell

__all__ = [
    "PER_USER",
    "PRUNERS",
    "SAMPLERS",
    "Attempt",
    "BudgetSpent",
    "Cell",
    "Clock",
    "ComparisonPlan",
    "Effort",
    "Listener",
    "Range",
    "Space",
    "StageStarted",
    "State",
    "StressPlan",
    "Study",
    "StudyEvent",
    "Trained",
    "Trial",
    "TrialEnded",
    "TrialStarted",
    "TuningResult",
    "Work",
    "compare_contestants",
    "named_space",
    "read_space",
    "run_cell",
    "run_cells",
    "stress",
    "summarize",
    "train_cell",
    "tune",
    "write_comparison",
    "write_stress",
]
