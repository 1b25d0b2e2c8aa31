"""How good the vectors of new users are: people held out of training against the same people trained in.

A tenth of the users (at least 1,000) lose all their training interactions; a model is trained on the others, and the
held-out are folded in from the histories they lost. The other model is trained on everybody. Both are asked for the held-out
users' test items. The backbone `history` encodes the held-out as it encodes everybody else, without any step of training.

    python reproductions/fold_in.py amazon2014-electronic.zip --choose --out reproductions/fold-in/choice.csv
    python reproductions/fold_in.py amazon2014-electronic.zip --out reproductions/fold-in/results.csv

The first command finds the number of steps and their length, by the validation items of other people, without the test part;
`history` takes no steps, so it has no part in that.
"""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _records import append, publish, read, table

from pslrec.backbones import BACKBONES as KNOWN_BACKBONES
from pslrec.config import RunConfig, preset_settings
from pslrec.data import Dataset, load
from pslrec.data.splits import carve_validation
from pslrec.evaluation import EmbeddingScorer, Split, evaluate
from pslrec.experiment import run
from pslrec.inference import DEFAULT_MEMORY_BUDGET, FoldIn, StepPlan, TrainedModel
from pslrec.losses import LOSSES

SHARE, AT_LEAST = 0.1, 1000
# The number of steps and their length are chosen by the people of one draw; those of another, without the first, are judged.
CHOSEN_BY, SEED = 0, 1
# MF by the preset, SL with its temperature. Graphs by a start of their own; their steps cost as much for few pairs as for many.
# Both trainings of a comparison, on more people and on fewer, have the same number of epochs.
EPOCHS = {"training.epochs": 10}
GRAPH = {"sampling.negatives": "catalog", "sampling.batch_pairs": 4096, **EPOCHS}
# Without the start of the preset: `history` has one of its own.
HISTORY = {
    name: value
    for name, value in preset_settings("fixed").items()
    if name != "backbone.initialization"
}
BPR = {"sampling.negatives": "catalog", **EPOCHS, "training.learning_rate": 0.01}
SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    ("mf", "psl-relu"): {**preset_settings("fixed"), **EPOCHS},
    ("mf", "sl"): {
        **preset_settings("fixed", loss="sl"),
        **EPOCHS,
        "loss.temperature": preset_settings("fixed")["loss.temperature"],
    },
    ("mf", "bpr"): BPR,
    ("lightgcn", "psl-relu"): {**GRAPH, "loss.temperature": 1 / 7, "training.learning_rate": 0.1},
    ("lightgcn", "sl"): {**GRAPH, "loss.temperature": 0.1, "training.learning_rate": 0.1},
    ("lightgcn", "bpr"): {**GRAPH, **BPR},
    ("history", "psl-relu"): {**HISTORY, **EPOCHS},
    ("history", "sl"): {**HISTORY, **EPOCHS},
    ("history", "bpr"): BPR,
}
BACKBONES, LOSS_NAMES = ("mf", "lightgcn", "history"), ("psl-relu", "sl", "bpr")
STEPS, TURNS = (3, 5, 10, 20), (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
# Steps are what an answer costs: the fewest are taken that reach this share of the best.
CLOSE = 0.99


def sums_histories(backbone: str) -> bool:
    """Whether new people are encoded, so that there are no steps to choose."""
    return KNOWN_BACKBONES[backbone].sums_histories


def held_out_users(dataset: Dataset, seed: int = SEED) -> np.ndarray:
    """Some of the users; those of `SEED` had no say in how people are folded in."""
    users = np.unique(dataset.train.users)
    count = max(AT_LEAST, int(SHARE * len(users)))
    for each in (CHOSEN_BY, SEED):
        drawn = np.random.default_rng(each).choice(
            users, size=min(count, len(users)), replace=False
        )
        users = np.setdiff1d(users, drawn)
        if each == seed:
            break
    return np.sort(drawn)


def quality(
    dataset: Dataset,
    model: TrainedModel,
    held_out: np.ndarray,
    vectors: torch.Tensor | None = None,
    *,
    split: Split,
) -> float:
    """NDCG@20 of the held-out users on a part of the data; `vectors` takes the place of their own."""
    users = model.user_vectors.clone()
    if vectors is not None:
        users[torch.from_numpy(held_out)] = vectors
    part = dataset.parts()[split]
    judged = replace(dataset, **{split: part.select(np.isin(part.users, held_out))})
    return evaluate(
        EmbeddingScorer(users, model.item_vectors), judged, split=split, k=[20], metrics=["ndcg"]
    )["ndcg@20"]


def configured(backbone: str, loss: str, epochs: int | None = None) -> RunConfig:
    """Settings of a training, in which nothing is left to choose."""
    settings = SETTINGS[backbone, loss] | {
        "data.validation": "none",
        "loss.name": loss,
        "backbone.name": backbone,
    }
    return RunConfig.from_settings(
        settings | ({} if epochs is None else {"training.epochs": epochs})
    )


def measure(
    dataset: Dataset, backbone: str, loss: str, *, epochs: int | None = None
) -> dict[str, object]:
    """Train with and without the held-out users, and compare."""
    config = configured(backbone, loss, epochs)
    held_out = held_out_users(dataset)
    everybody, without = _trained(config, dataset), _trained(config, _without(dataset, held_out))
    vectors = _folded_in(without, dataset, held_out)
    before = quality(dataset, everybody, held_out, split="test")
    after = quality(dataset, without, held_out, vectors, split="test")
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


def try_plans(
    dataset: Dataset, backbone: str, loss: str, *, epochs: int | None = None
) -> Iterator[dict[str, object]]:
    """Train without people held out, fold them in by every plan of the grid, look for their validation items."""
    nothing = dataset.train.select(np.zeros(0, dtype=np.int64))
    dataset = replace(
        carve_validation(dataset, "fraction"), test=nothing
    )  # a choice must not know test items
    held_out = held_out_users(dataset, CHOSEN_BY)
    others = replace(_without(dataset, held_out), validation=None)
    model = _trained(configured(backbone, loss, epochs), others)
    for n_steps in STEPS:
        for turn in TURNS:
            vectors = _folded_in(model, dataset, held_out, StepPlan(n_steps, turn))
            yield {
                "data": dataset.name,
                "backbone": backbone,
                "loss": loss,
                "similarity": LOSSES[loss].similarity,
                "held_out": len(held_out),
                "steps": n_steps,
                "turn": turn,
                "validation_ndcg20": round(
                    quality(dataset, model, held_out, vectors, split="validation"), 5
                ),
                "seed": CHOSEN_BY,
            }


def chosen_plans(rows: Iterable[Mapping[str, Any]]) -> dict[str, StepPlan]:
    """The plan for each similarity: by the mean over models of the share that it reaches of the model's best."""
    best: dict[tuple[str, str], float] = defaultdict(float)
    rows = list(rows)
    for row in rows:
        model = row["backbone"], row["loss"]
        best[model] = max(best[model], float(row["validation_ndcg20"]))
    shares: dict[str, dict[StepPlan, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        share = float(row["validation_ndcg20"]) / best[row["backbone"], row["loss"]]
        shares[row["similarity"]][StepPlan(int(row["steps"]), float(row["turn"]))].append(share)
    means = {
        similarity: {plan: np.mean(found) for plan, found in plans.items()}
        for similarity, plans in shares.items()
    }
    return {similarity: _fewest_steps(plans) for similarity, plans in means.items()}


def _fewest_steps(means: Mapping[StepPlan, float]) -> StepPlan:
    close = [plan for plan, mean in means.items() if mean >= CLOSE * max(means.values())]
    return min(close, key=lambda plan: (plan.n_steps, -means[plan]))


def _without(dataset: Dataset, users: np.ndarray) -> Dataset:
    return replace(dataset, train=dataset.train.select(~np.isin(dataset.train.users, users)))


def _trained(config: RunConfig, dataset: Dataset) -> TrainedModel:
    with tempfile.TemporaryDirectory() as directory:
        run(config, data=dataset, out=Path(directory) / "run")
        return TrainedModel.load(Path(directory) / "run")


def _folded_in(
    model: TrainedModel, dataset: Dataset, users: np.ndarray, plan: StepPlan | None = None
) -> torch.Tensor:
    fold_in = FoldIn(model.frozen(), memory_budget=DEFAULT_MEMORY_BUDGET, plan=plan)
    return fold_in.vectors(dataset.train.rows.select(users))


def markdown(rows: Iterable[Mapping[str, Any]]) -> str:
    """The results for the documentation."""
    headings = {
        "backbone": "---",
        "loss": "---",
        "trained in": "---:",
        "held out": "---:",
        "ratio": "---:",
    }
    return table(
        headings,
        [
            (
                row["backbone"],
                row["loss"],
                f"{float(row['trained_in']):.4f}",
                f"{float(row['folded_in']):.4f}",
                f"{float(row['ratio']):.2f}",
            )
            for row in rows
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a data set that comes split")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write or add to")
    parser.add_argument(
        "--choose", action="store_true", help="try all plans on validation items, and tell the best"
    )
    parser.add_argument("--backbone", choices=BACKBONES, action="append", help="all if not given")
    parser.add_argument("--loss", choices=LOSS_NAMES, action="append", help="all if not given")
    arguments = parser.parse_args()
    dataset = load(arguments.data)
    for backbone in arguments.backbone or BACKBONES:
        if arguments.choose and sums_histories(backbone):
            continue
        for loss in arguments.loss or LOSS_NAMES:
            rows = (
                try_plans(dataset, backbone, loss)
                if arguments.choose
                else [measure(dataset, backbone, loss)]
            )
            for row in rows:
                append(arguments.out, row)
                print(row, flush=True)
    if arguments.choose:
        print(chosen_plans(read(arguments.out)))
    else:
        publish("fold-in", markdown(read(arguments.out)))


if __name__ == "__main__":
    main()
