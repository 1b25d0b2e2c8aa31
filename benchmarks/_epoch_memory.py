"""`python -m benchmarks._epoch_memory USERS ITEMS PAIRS LOSS`: what an epoch of exact training grows by, and what was stated."""

import json
import sys

import torch

from benchmarks._data import made_up
from benchmarks._epochs import parts_of
from benchmarks._memory import memory_growth
from pslrec.data import Interactions
from pslrec.experiment import build_model
from pslrec.training import build_step, memory_estimate


def measure(train: Interactions, name: str) -> dict[str, int]:
    """Bytes of model, optimiser and all steps of an epoch, and the bytes that `pslrec train` tells beforehand."""
    config, batches = parts_of(train, {"loss.name": name, "loss.temperature": 0.1})
    stated = []

    def epoch() -> None:
        backbone, loss = build_model(config, train)
        step = build_step(backbone, loss, batches, config.training.trainer_options(len(batches)))
        for batch in batches.epoch(0):
            step.move(step.loss_of(batch, "model", torch.Generator), "model")
        stated.append(sum(memory_estimate(backbone, loss, batches).values()))

    return {"grown": memory_growth(epoch), "stated": stated[0]}


if __name__ == "__main__":
    # Libraries, threads and their stacks come in with the first step of anything.
    measure(made_up(100, 200, 1_000).train, sys.argv[4])
    print(json.dumps(measure(made_up(*map(int, sys.argv[1:4])).train, sys.argv[4])))
