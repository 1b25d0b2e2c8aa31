"""Whether PSL differs from SL by more than chance: paired over users, and paired over seeds."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from scipy import stats

from pslrec.artifacts import read_tensors
from pslrec.evaluation import compare
from pslrec.reporting import ENOUGH_SEEDS
from pslrec.reproduction.cells import Cell, identity_of
from pslrec.reproduction.execution import PER_USER
from pslrec.reproduction.results import Results, Row
from pslrec.reproduction.summaries import METRICS, Sample, Summary, summarize

NAME = "significance"
GROUP = ("table", "dataset", "backbone", "setting", "noise", "mode", "protocol", "negatives")
KEY = (*GROUP, "first", "second", "metric")
COLUMNS = (
    *KEY,
    "difference",
    "n_users",
    "users_t_test",
    "users_wilcoxon",
    "n_seeds",
    "seeds_t_test",
)
FIRST = "SL"
_COLUMN = {"recall20": "recall@20", "ndcg20": "ndcg@20"}


def update(results: Results, table: str, cells: Iterable[Cell], runs: Path) -> None:
    """Compare every PSL of a table with SL and write it down; what needs run directories stays where these are gone.

    Args:
        results: the directory of CSVs.
        table: which one.
        cells: whose run directories may be there.
        runs: where they live.
    """
    directories = {cell.identity: cell.directory(runs) for cell in cells}
    before = {tuple(row[name] for name in KEY): row for row in results.rows(NAME)}
    by_group: dict[tuple[str, ...], dict[str, Summary]] = {}
    for summary in summarize(results.rows(table)):
        if summary["form"] != "inside":
            by_group.setdefault(tuple(summary[name] for name in GROUP), {})[summary["loss"]] = (
                summary
            )
    rows = []
    for group, losses in by_group.items():
        for loss in losses.keys() - {FIRST}:
            if FIRST in losses and loss.startswith("PSL"):
                pair = (losses[FIRST], losses[loss])
                rows += [_row(group, pair, metric, directories, before) for metric in METRICS]
    results.merge(NAME, rows, columns=COLUMNS, key=lambda row: tuple(row[name] for name in KEY))


def _row(
    group: tuple[str, ...],
    pair: tuple[Summary, Summary],
    metric: str,
    directories: Mapping[tuple[str, ...], Path],
    before: Mapping[tuple[str, ...], Row],
) -> Row:
    first, second = pair
    key = (*group, first["loss"], second["loss"], metric)
    old = before.get(key, {})
    row = dict(zip(KEY, key, strict=True)) | {
        name: old.get(name, "") for name in COLUMNS if name not in KEY
    }
    common = _common(first.ours(metric), second.ours(metric))
    differences = [b - a for a, b in common.values()]
    row["difference"] = f"{np.mean(differences):.5f}" if differences else ""
    row["n_seeds"] = str(len(common))
    row["seeds_t_test"] = _over_seeds(differences)
    files = [_files(summary, common, directories) for summary in pair]
    seeds = sorted(files[0].keys() & files[1].keys())
    if seeds:
        values = [
            np.mean([_values(of_loss[seed], metric) for seed in seeds], axis=0) for of_loss in files
        ]
        found = compare(values[0], values[1])
        row |= {
            "n_users": str(found.n_users),
            "users_t_test": f"{found.t_test:.2g}",
            "users_wilcoxon": f"{found.wilcoxon:.2g}",
        }
    return row


def _common(first: Sample, second: Sample) -> dict[int, tuple[float, float]]:
    return {
        seed: (value, second.by_seed[seed])
        for seed, value in first.by_seed.items()
        if seed in second.by_seed
    }


def _over_seeds(differences: list[float]) -> str:
    if len(differences) < ENOUGH_SEEDS:
        return ""
    if np.ptp(differences) == 0:
        return "1" if differences[0] == 0 else "0"
    return f"{float(stats.ttest_1samp(differences, 0.0).pvalue):.2g}"


def _files(
    summary: Summary, seeds: Iterable[int], directories: Mapping[tuple[str, ...], Path]
) -> dict[int, Path]:
    """The values of single users by seed, where run directories are there."""
    places = {
        seed: directories.get(identity_of(summary.columns | {"seed": str(seed)})) for seed in seeds
    }
    return {
        seed: place / PER_USER
        for seed, place in places.items()
        if place and (place / PER_USER).exists()
    }


def _values(path: Path, metric: str) -> np.ndarray:
    values: np.ndarray = read_tensors(path)[0][_COLUMN[metric]].double().numpy()
    return values
