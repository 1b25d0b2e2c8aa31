"""How good the vectors of new users are: people held out of training against the same people trained in.

A tenth of the test users (at least 1,000) lose all their training interactions; a model is trained on the others, and the
held-out are folded in from the histories they lost. The other model is trained on everybody. Both are asked for the held-out
users' test items.

    python reproductions/fold_in.py amazon2014-electronic.zip --out reproductions/fold-in/results.csv
"""

import argparse
import csv
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from pslrec.config import RunConfig
from pslrec.data import Dataset, load
from pslrec.evaluation import EmbeddingScorer, evaluate
from pslrec.evaluation.task import RowLists
from pslrec.experiment import run
from pslrec.inference import TrainedModel

SHARE, AT_LEAST = 0.1, 1000
# The number of steps and their length were chosen by the people of one draw; those of another, without the first, are judged.
CHOSEN_BY, SEED = 0, 1
EXACT = {"sampling.negatives": "catalog", "backbone.initialization": "spectral", "training.learning_rate": 0.03}
SETTINGS = {
    "psl-relu": {**EXACT, "loss.temperature": 1 / 7, "training.epochs": 10},
    "sl": {**EXACT, "loss.temperature": 0.1, "training.epochs": 10},
    "bpr": {"sampling.negatives": "catalog", "training.learning_rate": 0.01, "training.epochs": 10},
}
# A step through the graph costs as much for few pairs as for many.
BACKBONES = {"mf": {}, "lightgcn": {"sampling.batch_pairs": 4096}}
FIELDS = (
    "data", "backbone", "loss", "held_out", "trained_in", "folded_in", "ratio", "epochs", "seed",
)  # fmt: skip


def held_out_users(dataset: Dataset) -> np.ndarray:
    """Some of the users that have test items, none of whom had a say in how people are folded in."""
    users = np.unique(dataset.test.users)
    for seed in (CHOSEN_BY, SEED):
        count = min(max(AT_LEAST, int(SHARE * len(np.unique(dataset.test.users)))), len(users))
        drawn = np.random.default_rng(seed).choice(users, size=count, replace=False)
        users = np.setdiff1d(users, drawn)
    return np.sort(drawn)


def quality(dataset: Dataset, model: TrainedModel, held_out: np.ndarray, vectors: torch.Tensor | None = None) -> float:
    """NDCG@20 of the held-out users; `vectors` takes the place of their own."""
    users = model.user_vectors.clone()
    if vectors is not None:
        users[torch.from_numpy(held_out)] = vectors
    judged = replace(dataset, test=dataset.test.select(np.isin(dataset.test.users, held_out)))
    return evaluate(EmbeddingScorer(users, model.item_vectors), judged, k=[20], metrics=["ndcg"])["ndcg@20"]


def measure(dataset: Dataset, backbone: str, loss: str, *, epochs: int | None = None) -> dict[str, object]:
    """Train with and without the held-out users, and compare."""
    settings = {"data.validation": "none", "loss.name": loss, "backbone.name": backbone}
    settings |= SETTINGS[loss] | BACKBONES[backbone] | ({} if epochs is None else {"training.epochs": epochs})
    config = RunConfig.from_settings(settings)
    held_out = held_out_users(dataset)
    others = replace(dataset, train=dataset.train.select(~np.isin(dataset.train.users, held_out)))
    with tempfile.TemporaryDirectory() as directory:
        everybody, without = (
            _trained(config, data, Path(directory) / name) for name, data in (("all", dataset), ("others", others))
        )
    lists = RowLists.of(dataset.train)
    histories = [
        torch.from_numpy(lists.items[lists.offsets[user] : lists.offsets[user + 1]].astype(np.int64))
        for user in held_out
    ]
    vectors = without.fold_in(histories)
    before, after = quality(dataset, everybody, held_out), quality(dataset, without, held_out, vectors)
    return {
        "data": dataset.name,
        "backbone": backbone,
        "loss": loss,
        "held_out": len(held_out),
        "trained_in": round(before, 5),
        "folded_in": round(after, 5),
        "ratio": round(after / before, 4),
        "epochs": config.training.epochs,
        "seed": SEED,
    }


def _trained(config: RunConfig, dataset: Dataset, path: Path) -> TrainedModel:
    run(config, data=dataset, out=path)
    return TrainedModel.load(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a data set that comes split")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write or add to")
    parser.add_argument("--backbone", choices=BACKBONES, action="append", help="all if not given")
    parser.add_argument("--loss", choices=SETTINGS, action="append", help="all if not given")
    arguments = parser.parse_args()
    dataset = load(arguments.data)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    for backbone in arguments.backbone or BACKBONES:
        for loss in arguments.loss or SETTINGS:
            row = measure(dataset, backbone, loss)
            is_new = not arguments.out.exists()
            with arguments.out.open("a", newline="") as file:
                writer = csv.DictWriter(file, FIELDS)
                if is_new:
                    writer.writeheader()
                writer.writerow(row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
