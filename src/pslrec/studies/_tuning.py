"""A search for settings: chosen on validation, and the test part opened for the chosen ones alone."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pslrec.artifacts import DirectoryInUseError, read_metrics
from pslrec.config import RunConfig
from pslrec.errors import ConfigError
from pslrec.evaluation import DEFAULT_METRICS
from pslrec.experiment import evaluate_chosen
from pslrec.files import write_text
from pslrec.studies._attempt import Clock
from pslrec.studies._candidates import Trained
from pslrec.studies._cells import Cell, Trial
from pslrec.studies._searching import Effort, TuningResult, search, seed_warnings, write_search
from pslrec.studies._space import Space
from pslrec.studies._study import Study
from pslrec.studies._working import WAIT_SECONDS, Listener, run_cells
from pslrec.studies._works import train_cell

BEST_FILE = "best.toml"
SELECTION_K = 20


def tune(
    config: RunConfig,
    space: Space | None = None,
    *,
    out: Path | None = None,
    metric: str | None = None,
    effort: Effort | None = None,
    seeds: int = 1,
    storage: str | None = None,
    listener: Listener | None = None,
) -> TuningResult:
    """Search a space for the settings that are best on validation, and evaluate them on test data.

    A search that was stopped is resumed by the same call, and several processes may make that call
    at the same time. Nothing that is finished in `out` is trained again.

    Args:
        config: what all trials have in common.
        space: values or ranges to try for each setting; the search space of the loss if not given.
        out: directory of the study; without it nothing is kept.
        metric: what trials are compared by; NDCG@20, or at the K that the loss aims at.
        effort: sampler, pruner, number of trials, budget, workers.
        seeds: train the two best with so many seeds, to warn if these cannot tell them apart.
        storage: address of a database for the books, such as `postgresql://host/name`.
        listener: is told what happens.

    >>> settings = {"data.source": "synthetic", "training.epochs": 1, "sampling.negatives": 5}
    >>> result = tune(RunConfig.from_settings(settings), {"training.learning_rate": [0.001, 0.1]})
    >>> len(result.trials), result.is_complete, "test" in result.metrics
    (2, True, True)
    """
    metric = metric or f"ndcg@{Trained(config).loss.selection_k or SELECTION_K}"
    candidate = Trained(_prepared(config, metric))
    searched = candidate.space() if space is None else space
    effort = (effort or Effort()).for_space(searched)
    with ExitStack() as stack:
        directory = out or Path(stack.enter_context(TemporaryDirectory(prefix="pslrec-tune-")))
        clock = Clock(effort.budget_seconds)
        study, result = search(
            candidate,
            searched,
            effort,
            directory,
            metric=metric,
            storage=storage,
            listener=listener,
        )
        best = result.best
        if result.is_complete and best is not None:
            warnings = list(result.warnings)
            if seeds > 1:
                left = replace(effort, budget_seconds=clock.left)
                compared = _seeded_trials(study, candidate, result.trials, seeds, left, listener)
                warnings += seed_warnings(compared, metric)
            metrics = _evaluated(best.directory)
            result = replace(result, metrics=metrics, warnings=warnings)
            write_text(directory / BEST_FILE, candidate.cell(best.settings).task.to_toml())
        write_search(study, result)
        return result


def _prepared(config: RunConfig, metric: str) -> RunConfig:
    """The configuration, such that the metric is computed and there is something to choose on."""
    name, _, k = metric.partition("@")
    if name not in DEFAULT_METRICS or not k.isdecimal() or int(k) < 1:
        listed = ", ".join(f"{each}@20" for each in DEFAULT_METRICS)
        raise ConfigError(f"`metric` must be one of {listed}, or of another length, got {metric!r}")
    if config.resolved().data.validation == "none":
        raise ConfigError(
            "there is no validation part to choose on, and a search never chooses on the test "
            "part; set `data.validation` to fraction"
        )
    if config.training.refit:
        raise ConfigError(
            "a search chooses on validation; leave out `training.refit`, and refit what it chose"
        )
    # Pruners compare trials by epoch, so all of them get the same number.
    settings = {
        "evaluation.k": sorted({*config.evaluation.k, int(k)}),
        "training.epochs": Trained(config).epochs,
    }
    return RunConfig.from_settings(settings, base=config)


def _seeded_trials(
    study: Study,
    candidate: Trained,
    trials: Sequence[Trial],
    n_seeds: int,
    effort: Effort,
    listener: Listener | None,
) -> list[list[Trial]]:
    """The two best with further seeds, on validation, in a study of their own."""
    finalists = [trial for trial in trials if trial.state == "finished"][:2]
    first = candidate.config.training.seed
    cells = []
    for place, finalist in enumerate(finalists, 1):
        for seed in range(first + 1, first + n_seeds):
            cell = candidate.seeded(finalist.settings, seed)
            cells.append(Cell(cell.key, {"rank": place, "seed": seed}, cell.task))
    seeds_study = Study(
        study.directory / "seeds", kind="seeds", metric=study.metric, storage=study.storage
    )
    found = run_cells(
        seeds_study,
        cells,
        train_cell,
        budget_seconds=effort.budget_seconds,
        workers=effort.workers,
        listener=listener,
    )
    groups = [[finalist] for finalist in finalists]
    for trial in found:
        if trial.state == "finished":
            groups[trial.settings["rank"] - 1].append(trial)
    return groups


def _evaluated(path: Path) -> dict[str, Any]:
    while not (path / "metrics.json").exists():
        try:
            return evaluate_chosen(path)
        except DirectoryInUseError:
            # Another process of the same search is doing it.
            time.sleep(WAIT_SECONDS)
    return read_metrics(path)
