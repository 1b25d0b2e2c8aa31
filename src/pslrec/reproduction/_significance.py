"""Whether two losses differ by more than chance: paired over users, and paired over seeds."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from scipy import stats

from pslrec.artifacts import read_tensors
from pslrec.evaluation import compare
from pslrec.reporting import ENOUGH_SEEDS, Result, results_of
from pslrec.reproduction._cells import Identity, identity_of
from pslrec.reproduction._grid import Grid
from pslrec.reproduction._layouts import TESTED
from pslrec.reproduction._published import Row
from pslrec.reproduction._results import Results

NAME = "significance"
KEY = (*TESTED, "first", "second", "metric")
COLUMNS = (
    *KEY,
    "difference",
    "n_users",
    "users_t_test",
    "users_wilcoxon",
    "n_seeds",
    "seeds_t_test",
)


def update(grid: Grid, results: Results, table: str, per_user: Mapping[Identity, Path]) -> None:
    """Compare the losses of the paper's gain with the other, and write it down.

    What needs values of single users stays as it was where these are gone.

    Args:
        grid: of the paper.
        results: the directory of CSVs.
        table: which one.
        per_user: files with values of single users, by run.
    """
    gain = grid.paper.improvement
    if gain is None:
        return
    by_group: dict[tuple[str, ...], dict[str, Result]] = {}
    for summary in results_of(results.rows(table)):
        losses = by_group.setdefault(tuple(summary[name] for name in TESTED), {})
        # The form that a loss has by itself comes first in the grid.
        usual = grid.paper.losses.get(summary["loss"], {}).get("form", "")
        if summary["form"] == usual:
            losses[summary["loss"]] = summary
    before = {tuple(row[name] for name in KEY): row for row in results.rows(NAME)}
    rows = []
    for group, losses in by_group.items():
        for loss in gain.of:
            if loss in losses and gain.over in losses:
                for metric, column in zip(grid.paper.metrics, grid.metrics, strict=True):
                    key = (*group, gain.over, loss, column)
                    row = dict.fromkeys(COLUMNS, "") | before.get(key, {})
                    row |= dict(zip(KEY, key, strict=True))
                    pair = (losses[gain.over], losses[loss])
                    rows.append(row | _tested(pair, metric, column, per_user))
    results.merge(NAME, rows, columns=COLUMNS, key=lambda row: tuple(row[name] for name in KEY))


def _tested(
    pair: tuple[Result, Result], metric: str, column: str, per_user: Mapping[Identity, Path]
) -> Row:
    first, second = (summary.ours[column] for summary in pair)
    seeds = sorted(first.keys() & second.keys())
    differences = [second[seed] - first[seed] for seed in seeds]
    row = {"difference": "", "n_seeds": str(len(seeds)), "seeds_t_test": _over_seeds(differences)}
    if differences:
        row["difference"] = f"{np.mean(differences):.5f}"
    values: list[list[np.ndarray]] = [[], []]
    for seed in seeds:
        found = []
        for summary in pair:
            path = per_user.get(identity_of({**summary.key, "seed": seed}))
            if path is not None and path.exists():
                found.append(read_tensors(path)[0][metric].double().numpy())
        if len(found) == len(pair):
            for of_loss, of_seed in zip(values, found, strict=True):
                of_loss.append(of_seed)
    if values[0]:
        test = compare(np.mean(values[0], axis=0), np.mean(values[1], axis=0))
        row["n_users"] = str(test.n_users)
        row["users_t_test"] = f"{test.t_test:.2g}"
        row["users_wilcoxon"] = f"{test.wilcoxon:.2g}"
    return row


def _over_seeds(differences: Iterable[float]) -> str:
    values = list(differences)
    if len(values) < ENOUGH_SEEDS:
        return ""
    if np.ptp(values) == 0:
        # Exactly the same each time: no chance is left.
        return "1" if values[0] == 0 else "0"
    return f"{float(stats.ttest_1samp(values, 0.0).pvalue):.2g}"
