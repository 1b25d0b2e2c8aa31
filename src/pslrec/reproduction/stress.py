"""Stress tests of losses on any data set: how they bear a shift of popularity, and false negatives."""

import hashlib
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import polars as pl

from pslrec.artifacts import read_metrics
from pslrec.config import RunConfig
from pslrec.data import Interactions, Preparation, load_interactions, prepare, write_dataset
from pslrec.errors import ConfigError
from pslrec.experiment import run
from pslrec.files import make_directory
from pslrec.losses import LOSSES
from pslrec.reproduction.shifting import shifted_split
from pslrec.training import Listener

Test = Literal["shift", "noise"]
NOISE_LEVELS = (0.05, 0.1, 0.2, 0.3, 0.5)
SHIFT_LEVELS = (0.0, 0.5, 1.0)
METRICS = ("ndcg@20", "recall@20")


@dataclass(frozen=True)
class StressPlan:
    """What to test.

    Args:
        losses: names; the first is what the others are compared with.
        noise: probabilities of drawing a false negative, besides 0, for which all training pairs stay positives.
        shift: how strongly the test part turns to unpopular items, see `shifted_split`.
        seeds: of training; each level is run with all of them.
        options: settings of single losses, by loss and dotted name.
    """

    losses: Sequence[str] = ("sl", "psl-relu")
    noise: Sequence[float] = NOISE_LEVELS
    shift: Sequence[float] = SHIFT_LEVELS
    seeds: Sequence[int] = (2024,)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.losses or not self.seeds:
            raise ConfigError("a stress test needs at least one loss and one seed")
        for loss in (*self.losses, *self.options):
            LOSSES[loss]
        for loss in self.options:
            if loss not in self.losses:
                raise ConfigError(
                    f"there are settings for `{loss}`, which is not among the losses to test"
                )
        for level in self.noise:
            if not 0 < level <= 1:
                raise ConfigError(
                    f"`noise` must hold probabilities above 0 and up to 1, got {level}"
                )


@dataclass(frozen=True)
class StressCell:
    """One run of a stress test."""

    test: Test
    level: float
    loss: str
    seed: int

    def described(self) -> str:
        """In words."""
        return f"{self.test} {self.level:g}, {self.loss}, seed {self.seed}"


@dataclass(frozen=True)
class StressProgress:
    """After a run, or before the first one.

    Args:
        n_done: runs that are finished.
        n_cells: runs in all.
        cell: the run that was finished.
        value: its NDCG@20 on the test part.
        seconds_left: at the pace so far.
    """

    n_done: int
    n_cells: int
    cell: StressCell
    value: float
    seconds_left: float


def stress(
    config: RunConfig,
    plan: StressPlan,
    *,
    out: Path,
    watch: Callable[[StressProgress], None] = lambda _: None,
    listeners: Sequence[Listener] = (),
) -> pl.DataFrame:
    """Train every loss at every level, and give one row per run; finished runs in `out` are not made again.

    Args:
        config: backbone, data and training; the loss in it does not count.
        plan: what to test.
        out: directory of runs and results.
        watch: is told after each run.
        listeners: are told what happens inside runs.
    """
    make_directory(out)
    cells = _cells(plan)
    levels = sorted({cell.level for cell in cells if cell.test == "shift"})
    sources = {level: _shifted_source(config, level, out) for level in levels}
    # All of them first: a setting that a loss does not take must not show after an hour.
    configs = [_cell_config(config, cell, plan, sources) for cell in cells]
    rows, seconds, n_run = [], 0.0, 0
    for n_done, (cell, cell_config) in enumerate(zip(cells, configs, strict=True), 1):
        path = out / "runs" / _directory_name(cell, cell_config)
        started, is_new = time.monotonic(), not (path / "metrics.json").exists()
        metrics = _metrics(cell_config, path, listeners)
        if is_new:
            seconds, n_run = seconds + time.monotonic() - started, n_run + 1
        rows.append(_row(cell, cell_config, metrics))
        left = (len(cells) - n_done) * seconds / n_run if n_run else 0.0
        watch(StressProgress(n_done, len(cells), cell, metrics["test"]["ndcg@20"], left))
    return pl.DataFrame(rows)


def _cells(plan: StressPlan) -> list[StressCell]:
    levels: list[tuple[Test, float]] = [("shift", level) for level in plan.shift]
    if plan.noise:
        levels += [("noise", 0.0), *(("noise", level) for level in plan.noise)]
    return [
        StressCell(test, level, loss, seed)
        for test, level in levels
        for loss in plan.losses
        for seed in plan.seeds
    ]


def _cell_config(
    config: RunConfig, cell: StressCell, plan: StressPlan, sources: Mapping[float, Path]
) -> RunConfig:
    tree = config.model_dump(exclude_none=True)
    # Options of the loss in the configuration hold for those losses that take them.
    shared = {
        name: value for name, value in config.loss.options().items() if _takes(cell.loss, name)
    }
    tree["loss"] = {"name": cell.loss, **shared}
    settings: dict[str, Any] = {"training.seed": cell.seed, **plan.options.get(cell.loss, {})}
    if cell.test == "noise" and cell.level:
        settings["sampling.noise.probability"] = cell.level
    if cell.test == "shift":
        tree["data"] = {
            "source": str(sources[cell.level]),
            "validation": config.data.validation or "fraction",
            "validation_seed": config.data.validation_seed,
        }
    return RunConfig.from_settings(settings, base=RunConfig.checked(tree)).resolved()


def _takes(loss: str, option: str) -> bool:
    import inspect

    return option in inspect.signature(LOSSES[loss]).parameters


def _shifted_source(config: RunConfig, level: float, out: Path) -> Path:
    """A directory with the data split anew; it is made once."""
    section = config.data
    parts: list[Any] = [
        section.source,
        section.minimum_rating,
        section.k_core,
        section.train_fraction,
        section.split_seed,
    ]
    columns = section.columns.model_dump(exclude_none=True)
    if columns:
        parts.append(columns)
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]
    path = out / "data" / f"shift-{level:g}-{digest}"
    if not path.exists():
        whole: Interactions = load_interactions(section.source, **section.reading())
        if section.minimum_rating is not None or section.k_core:
            whole = prepare(whole, Preparation(section.minimum_rating, section.k_core))
        fraction = 0.8 if section.train_fraction is None else section.train_fraction
        write_dataset(
            shifted_split(whole, level, train_fraction=fraction, seed=section.split_seed), path
        )
    return path


def _directory_name(cell: StressCell, config: RunConfig) -> str:
    tree = config.model_dump(mode="json", exclude_defaults=True)
    if cell.test == "shift":
        # The name of the directory holds what the data depend on; where it lies is of no consequence.
        tree["data"]["source"] = Path(config.data.source).name
    digest = hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:8]
    return f"{cell.test}-{cell.level:g}-{cell.loss}-{cell.seed}-{digest}"


def _metrics(config: RunConfig, path: Path, listeners: Sequence[Listener]) -> dict[str, Any]:
    if (path / "metrics.json").exists():
        return read_metrics(path)
    return run(config, out=path, resume=True, listeners=listeners).metrics


def _row(cell: StressCell, config: RunConfig, metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "test": cell.test,
        "level": float(cell.level),
        "loss": cell.loss,
        "backbone": config.backbone.name,
        "negatives": str(config.sampling.negatives),
        "protocol": metrics["protocol"],
        "seed": cell.seed,
        **{name: float(metrics["test"][name]) for name in METRICS},
        "best_epoch": metrics["best_epoch"],
        "seconds_per_epoch": float(metrics["seconds_per_epoch"]),
    }


def summarize(runs: pl.DataFrame, base: str) -> pl.DataFrame:
    """Means over seeds, their deviations, and the relative improvement over a loss at the same level.

    Args:
        runs: from `stress`.
        base: the loss that the others are compared with.

    >>> rows = [("noise", 0.1, "sl", 0.2, 0.4), ("noise", 0.1, "psl-relu", 0.3, 0.4)]
    >>> runs = pl.DataFrame(rows, schema=["test", "level", "loss", "ndcg@20", "recall@20"], orient="row")
    >>> summarize(runs, "sl")["ndcg@20_improvement"].round(6).to_list()
    [0.0, 0.5]
    """
    rows: dict[tuple[str, float, str], dict[str, Any]] = {}
    for (test, level, loss), group in runs.group_by("test", "level", "loss", maintain_order=True):
        row: dict[str, Any] = {"test": test, "level": level, "loss": loss, "n_seeds": len(group)}
        for name in METRICS:
            values = group[name].to_list()
            row[name] = statistics.fmean(values)
            row[f"{name}_deviation"] = statistics.stdev(values) if len(values) > 1 else None
        rows[str(test), float(str(level)), str(loss)] = row
    for (test, level, _), row in rows.items():
        reference = rows.get((test, level, base))
        for name in METRICS:
            is_known = reference is not None and reference[name] > 0
            row[f"{name}_improvement"] = (
                row[name] / reference[name] - 1 if is_known and reference else None
            )
    return pl.DataFrame(list(rows.values()), infer_schema_length=None)
