"""One worker of `benchmarks.processes`, started by torchrun; the first one prints what all measured.

`torchrun --nproc-per-node N -m benchmarks._process_step MODE ITEMS OVERLAP N_USERS N_ITEMS STEPS`, where MODE is `catalog`
or `shared:N`, ITEMS `replicated` or `sharded`, and OVERLAP `yes`, or `no` to wait for every sum at once.
"""

import json
import statistics
import sys
import time
from typing import Any

import torch
from torch import Tensor

from benchmarks._data import made_up
from pslrec.config import RunConfig
from pslrec.distributed import Group, Pending, process_group
from pslrec.experiment import TrainingData, build_batches, build_model
from pslrec.training import Layout, build_step

PAIRS_PER_USER = 17
DIMENSION = 64


def without_overlap(group: Group) -> None:
    """From now on every sum is waited for where it begins."""
    start = group.start_sum

    def start_and_wait(tensor: Tensor) -> Pending:
        start(tensor).wait()
        return Pending()

    group.start_sum = start_and_wait  # type: ignore[method-assign]


def measure(group: Group, mode: str, items: str, sizes: tuple[int, int], n_steps: int) -> Any:
    """Median seconds of a step, and what a process puts into collectives at each."""
    n_users, n_items = sizes
    dataset = made_up(n_users, n_items, n_users * PAIRS_PER_USER)
    settings = {
        "loss.name": "psl-relu",
        "backbone.name": "mf",
        "backbone.dimension": DIMENSION,
        "sampling.negatives": mode,
        "sampling.batch_pairs": 4096,
    }
    config = RunConfig.from_settings(settings).resolved()
    batches = build_batches(config, TrainingData(dataset, dataset.train))
    backbone, loss = build_model(config, dataset.train)
    layout = Layout(backbone, loss, batches, group, shard_items=items == "sharded")
    step = build_step(
        backbone, loss, batches, config.training.trainer_options(len(batches)), layout
    )
    seconds: list[float] = []
    for number, batch in enumerate(batches.epoch(0, owned=layout.batch_users)):
        if number > n_steps:
            break
        if number == 1:
            # The first step warms up.
            group.n_bytes = 0
            group.n_collectives = 0
        started = time.perf_counter()
        value = step.loss_of(batch, "model", torch.Generator)
        group.sum(torch.tensor([float(value.detach())], dtype=torch.float64))
        step.move(value, "model")
        seconds.append(time.perf_counter() - started)
    n_measured = len(seconds) - 1
    return {
        "seconds": statistics.median(seconds[1:]),
        "bytes": group.n_bytes / n_measured,
        "collectives": group.n_collectives / n_measured,
        "pairs": batches.n_pairs / len(batches),
        "scores": batches.n_candidates,
        "steps": n_measured,
    }


def main() -> None:
    mode, items, overlap, n_users, n_items, n_steps = sys.argv[1:]
    torch.set_num_threads(1)
    with process_group(timeout=120) as group:
        if overlap == "no":
            without_overlap(group)
        found = measure(group, mode, items, (int(n_users), int(n_items)), int(n_steps))
        if group.is_first:
            print(json.dumps(found))


if __name__ == "__main__":
    main()
