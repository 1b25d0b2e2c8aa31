"""What the order of exact training is worth: pairs at random, as the paper draws them, instead of users with all their pairs.

    python reproductions/pair_order.py DATA sl psl-relu --out reproductions/pair-order/results.csv

The cells of Table 1 on MF with the whole catalogue, as `pslrec reproduce psl-neurips-2024 iid` runs them, but with steps of 1024
pairs that are drawn from all users. A step then scores the catalogue for nearly a thousand users instead of eighty, which takes
about ten times as long, so this is an experiment and not an option.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from _records import REPOSITORY, append

from pslrec.config import RunConfig
from pslrec.data import Dataset, load
from pslrec.experiment import run
from pslrec.reproduction import Choice, Grid
from pslrec.rows import Rows
from pslrec.sampling import CatalogBlock, UserBlocks
from pslrec.seeding import generator

PAPER = REPOSITORY / "reproductions" / "psl-neurips-2024"


class PairBlocks(UserBlocks):
    """All pairs in random order, cut into blocks; no item of a user's history is its negative, whatever is in the block."""

    def epoch(
        self, epoch: int, *, first_batch: int = 0, owned: range | None = None
    ) -> Iterator[CatalogBlock]:
        assert owned is None, "this experiment runs in one process"
        owners = np.repeat(np.arange(len(self._positives)), self._positives.lengths)
        random = generator(self.seed, "order of pairs", epoch)
        blocks = np.array_split(random.permutation(len(owners)), len(self))
        for block in blocks[first_batch:]:
            # Ascending, so that lists are ordered by owner and by item.
            pairs = np.sort(block)
            positives = Rows.from_pairs(
                owners[pairs], self._positives.items[pairs], n_owners=len(self._positives)
            )
            users = torch.from_numpy(np.unique(owners[pairs]))
            yield CatalogBlock(users, positives, self._pool)


def measure(dataset: Dataset, settings: dict[str, Any]) -> dict[str, Any]:
    """Train by pairs in random order; validation picks the epoch, as ever."""
    config = RunConfig.from_settings(settings).resolved()
    with mock.patch("pslrec.experiment._assembly.UserBlocks", PairBlocks):
        metrics = run(config, data=dataset).metrics
    return {
        "data": dataset.name,
        "loss": config.loss.name,
        "seed": config.training.seed,
        "epoch": metrics["best_epoch"],
        "recall20": round(metrics["test"]["recall@20"], 5),
        "ndcg20": round(metrics["test"]["ndcg@20"], 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="Amazon-Electronic in the published split")
    parser.add_argument("losses", nargs="+", help="such as sl and psl-relu")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write or add to")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    dataset = load(arguments.data)
    choice = Choice(
        datasets=["electronic"], backbones=["mf"], losses=arguments.losses, modes=["catalog"]
    )
    for cell in Grid(PAPER).cells("iid", choice):
        row = measure(dataset, dict(cell.settings))
        append(arguments.out, row)
        print(row, flush=True)


if __name__ == "__main__":
    main()
