"""`python -m benchmarks._training_step fused|naive STEPS`: time and memory of training steps on the same pairs and negatives.

Both start from the same tables, so they have the same losses, which are printed as well.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks._data import published
from benchmarks._memory import memory_growth
from pslrec.config import RunConfig
from pslrec.experiment import TrainingData, build_batches, build_model
from pslrec.sampling import PairBatch
from pslrec.training import build_step

TEMPERATURE = 0.1
NEGATIVES = 1000
Step = Callable[[PairBatch], float]


def fused_step(config: RunConfig, train: Any, batches: Any) -> Step:
    """The step that pslrec takes."""
    step = build_step(
        *build_model(config, train), batches, config.training.trainer_options(len(batches))
    )

    def take(batch: PairBatch) -> float:
        loss = step.loss_of(batch, "model", torch.Generator)
        step.move(loss, "model")
        return float(loss.detach())

    return take


def naive_step(config: RunConfig, train: Any, batches: Any) -> Step:  # noqa: ARG001
    """The step that is usually written: a vector for every negative, then the formula."""
    backbone, _ = build_model(config, train)
    users, items = backbone.user_table, backbone.item_table
    optimizer = torch.optim.Adam([users, items], lr=config.training.learning_rate)

    def take(batch: PairBatch) -> float:
        optimizer.zero_grad()
        loss = _naive_loss(users[batch.users], items[batch.candidates.long()])
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return take


def _naive_loss(users: Tensor, candidates: Tensor) -> Tensor:
    directions = functional.normalize(users, dim=-1).unsqueeze(1)
    scores = (directions * functional.normalize(candidates, dim=-1)).sum(dim=-1) / 2
    differences = scores[:, 1:] - scores[:, :1]
    return torch.logsumexp((1 + differences).clamp(min=1e-7).log() / TEMPERATURE, dim=1).mean()


def measure(name: str, n_steps: int) -> dict[str, Any]:
    """Seconds of each step but the first, by how much memory grew from the first on, and the losses."""
    dataset = published("electronic")
    settings = {
        "loss.name": "psl-relu",
        "loss.temperature": TEMPERATURE,
        "sampling.negatives": NEGATIVES,
        "backbone.dimension": 64,
    }
    config = RunConfig.from_settings(settings).resolved()
    batches = build_batches(config, TrainingData(dataset, dataset.train))
    take = {"fused": fused_step, "naive": naive_step}[name](config, dataset.train, batches)
    seconds: list[float] = []
    losses: list[float] = []

    def steps() -> None:
        drawn: Iterator[PairBatch] = batches.epoch(0)  # type: ignore[assignment]
        for _ in range(1 + n_steps):
            started = time.perf_counter()
            losses.append(take(next(drawn)))
            seconds.append(time.perf_counter() - started)

    grown = memory_growth(steps)
    return {"seconds": seconds[1:], "losses": losses, "grown": grown}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
