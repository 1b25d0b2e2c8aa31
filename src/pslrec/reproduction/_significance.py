"""Whether two losses differ by more than chance: paired over users, and paired over seeds."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pslrec.artifacts import read_tensors
from pslrec.evaluation import compare, t_test
from pslrec.reporting import ENOUGH_SEEDS, Result, grouped, results_of
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
    cells = []
    for cell in results_of(results.rows(table)):
        # The form that a loss has by itself comes first in the grid.
        if cell["form"] == grid.paper.losses.get(cell["loss"], {}).get("form", ""):
            cells.append(cell)
    before = {tuple(row[name] for name in KEY): row for row in results.rows(NAME)}
    rows = []
    for group, members in grouped(cells, lambda cell: cell.named(TESTED)).items():
        losses = {cell["loss"]: cell for cell in members}
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
    first, second = (cell.ours[column] for cell in pair)
    seeds = sorted(first.keys() & second.keys())
    differences = [second[seed] - first[seed] for seed in seeds]
    row = {"difference": "", "n_seeds": str(len(seeds)), "seeds_t_test": ""}
    if differences:
        row["difference"] = f"{np.mean(differences):.5f}"
    if len(differences) >= ENOUGH_SEEDS:
        row["seeds_t_test"] = f"{t_test(differences):.2g}"
    values = []
    for seed in seeds:
        paths = [per_user.get(identity_of({**cell.key, "seed": seed})) for cell in pair]
        known = [path for path in paths if path is not None and path.exists()]
        if len(known) == len(pair):
            values.append([read_tensors(path)[0][metric].double().numpy() for path in known])
    if values:
        test = compare(*np.mean(values, axis=0))
        row["n_users"] = str(test.n_users)
        row["users_t_test"] = f"{test.t_test:.2g}"
        row["users_wilcoxon"] = f"{test.wilcoxon:.2g}"
    return row
