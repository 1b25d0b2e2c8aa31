"""Stress tests of losses on any data set: how they bear a shift of popularity, and false negatives."""

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import polars as pl

from pslrec.config import RunConfig
from pslrec.data import Interactions, Preparation, load_interactions, prepare, write_dataset
from pslrec.errors import ConfigError
from pslrec.files import make_directory, write_text
from pslrec.losses import LOSSES
from pslrec.reporting import STRESS_SAYS, stress_chart, stress_tables, study_report, write_chart
from pslrec.studies._candidates import key_of, with_parts
from pslrec.studies._cells import Cell
from pslrec.studies._shifting import shifted_split
from pslrec.studies._study import Study
from pslrec.studies._working import Listener, run_cells
from pslrec.studies._works import run_cell

logger = logging.getLogger(__name__)
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


def stress(
    config: RunConfig,
    plan: StressPlan,
    *,
    out: Path,
    workers: int = 1,
    storage: str | None = None,
    listener: Listener | None = None,
) -> pl.DataFrame:
    """Train every loss at every level, and give one row per run.

    Finished runs in `out` are not made again.

    Args:
        config: backbone, data and training; the loss in it does not count.
        plan: what to test.
        out: directory of the study.
        workers: processes that share the runs.
        storage: address of a database for the books.
        listener: is told what happens.
    """
    make_directory(out)
    # All of them first: a setting that a loss does not take must not show after an hour.
    cells = []
    for (test, level), base in _levels(config, plan, out).items():
        for loss, seed in itertools.product(plan.losses, plan.seeds):
            settings = {"test": test, "level": level, "loss": loss, "seed": seed}
            own = {"training.seed": seed, **plan.options.get(loss, {})}
            if test == "noise" and level:
                own["sampling.noise.probability"] = level
            task = RunConfig.from_settings(own, base=with_parts(base, loss=loss)).resolved()
            cells.append(Cell(_key(settings, task), settings, task))
    trials = run_cells(
        Study(out, kind="stress", storage=storage),
        cells,
        run_cell,
        workers=workers,
        keeps_going=False,
        listener=listener,
    )
    rows = []
    for cell, trial in zip(cells, trials, strict=True):
        if trial.state == "finished":
            rows.append(_row(cell, trial.found))
        else:
            logger.warning("%s is left out: %s", cell.described(), trial.reason)
    if not rows:
        raise ConfigError(f"no run could be made; the first: {trials[0].reason}")
    return pl.DataFrame(rows)


def _levels(config: RunConfig, plan: StressPlan, out: Path) -> dict[tuple[Test, float], RunConfig]:
    """What all runs of a test and a level have in common."""
    levels: dict[tuple[Test, float], RunConfig] = {}
    for level in plan.shift:
        data = {
            "source": str(_shifted_source(config, level, out)),
            "validation": config.data.validation or "fraction",
            "validation_seed": config.data.validation_seed,
        }
        shifted = {**config.model_dump(exclude_none=True), "data": data}
        levels["shift", float(level)] = RunConfig.checked(shifted)
    if plan.noise:
        for level in (0.0, *plan.noise):
            levels["noise", float(level)] = config
    return levels


def _shifted_source(config: RunConfig, level: float, out: Path) -> Path:
    """A directory with the data split anew; it is made once."""
    section = config.data
    names = ("source", "minimum_rating", "k_core", "train_fraction", "split_seed")
    parts: list[Any] = [getattr(section, name) for name in names]
    reading = section.reading()
    columns = section.columns.model_dump(exclude_none=True)
    if columns:
        parts.append(columns)
    digest = key_of(parts)[:8]
    path = out / "data" / f"shift-{level:g}-{digest}"
    if not path.exists():
        whole: Interactions = load_interactions(section.source, **reading)
        if section.minimum_rating is not None or section.k_core:
            whole = prepare(whole, Preparation(section.minimum_rating, section.k_core))
        fraction = 0.8 if section.train_fraction is None else section.train_fraction
        split = shifted_split(whole, level, train_fraction=fraction, seed=section.split_seed)
        write_dataset(split, path)
    return path


def _key(cell: Mapping[str, Any], config: RunConfig) -> str:
    tree = config.model_dump(mode="json", exclude_defaults=True)
    if cell["test"] == "shift":
        # The name of the directory holds what the data depend on; where it lies is of no matter.
        tree["data"]["source"] = Path(config.data.source).name
    return f"{cell['test']}-{cell['level']:g}-{cell['loss']}-{cell['seed']}-{key_of(tree)[:8]}"


def _row(cell: Cell, metrics: Mapping[str, Any]) -> dict[str, Any]:
    config: RunConfig = cell.task
    return {
        "test": cell.settings["test"],
        "level": cell.settings["level"],
        "loss": cell.settings["loss"],
        "backbone": config.backbone.name,
        "negatives": str(config.sampling.negatives),
        "protocol": metrics["protocol"],
        "seed": cell.settings["seed"],
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
    cell = ["test", "level"]
    measures = [pl.len().alias("n_seeds")]
    for name in METRICS:
        measures += [pl.mean(name), pl.std(name).alias(f"{name}_deviation")]
    summary = runs.group_by(*cell, "loss", maintain_order=True).agg(measures)
    is_base = pl.all_horizontal(pl.col("loss") == base, *(pl.col(name) > 0 for name in METRICS))
    gains = []
    for name in METRICS:
        reference = pl.col(name).filter(is_base).first().over(cell)
        gains.append((pl.col(name) / reference - 1).alias(f"{name}_improvement"))
    return summary.with_columns(gains)


def write_stress(runs: pl.DataFrame, out: Path, *, base: str, name: str = "data") -> list[Path]:
    """Write `runs.csv`, `summary.csv`, a curve per test, and two pages; give what was written.

    Args:
        runs: from `stress`.
        out: directory.
        base: the loss that the others are compared with.
        name: of the data, for titles.
    """
    make_directory(out)
    summary = summarize(runs, base)
    page = [f"# Stress tests of losses: {name}"]
    written = []
    for test, table in stress_tables(summary, base).items():
        written += write_chart(stress_chart(summary, test, base=base, name=name), out / test)
        page += [table.markdown(level=2), STRESS_SAYS[test], f"![{table.title}]({test}.svg)"]
    texts = {
        "runs.csv": runs.write_csv(),
        "summary.csv": summary.write_csv(),
        "README.md": "\n\n".join(page) + "\n",
    }
    for file, text in texts.items():
        write_text(out / file, text)
        written.append(out / file)
    if (out / "results.json").exists():
        written.append(study_report(out, out / "stress.html"))
    return written
