"""One worker of `benchmarks.processes`, started by torchrun: an epoch on a log, and what memory it left resident.

`torchrun --nproc-per-node N -m benchmarks._process_memory LOG OUT_OF_CORE`, where OUT_OF_CORE is `auto`, as a person gets it,
or `off`, where every process holds the whole log. The first process prints the numbers of all.
"""

import json
import sys
from pathlib import Path

import torch

from pslrec.config import RunConfig
from pslrec.distributed import Group, Partition, process_group
from pslrec.experiment import TrainingData, build_batches, build_model, load_training_data
from pslrec.training import Layout, build_step

MEGABYTE = 1e6


def settings(log: str, out_of_core: str) -> RunConfig:
    """One epoch of MF with few columns, so that the interactions are what counts."""
    return RunConfig.from_settings(
        {
            "data.source": log,
            "data.out_of_core": out_of_core,
            "data.validation": "none",
            "backbone.name": "mf",
            "backbone.dimension": 4,
            "backbone.initialization": "normal",
            "loss.name": "psl-relu",
            "sampling.negatives": "shared:256",
            "sampling.batch_pairs": 8192,
        }
    ).resolved()


def resident() -> dict[str, float]:
    """Megabytes of this process that are in memory: its own, and those of mapped files."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    found = {}
    for name in ("RssAnon", "RssFile"):
        found[name] = int(lines[name].split()[0]) * 1024 / MEGABYTE
    return found


def measure(group: Group, log: str, out_of_core: str) -> dict[str, float]:
    """By how much an epoch on the own users made this process grow."""
    config = settings(log, out_of_core)
    before = resident()
    data = load_training_data(config, is_shared=not group.is_single)
    _train(group, config, data)
    after = resident()
    return {name: after[name] - before[name] for name in after}


def _train(group: Group, config: RunConfig, data: TrainingData) -> None:
    batches = build_batches(config, data)
    backbone, loss = build_model(config, data.train)
    layout = Layout(backbone, loss, batches, group)
    if layout.batch_users is not None:
        batches.keep(layout.batch_users)
    options = config.training.trainer_options(len(batches))
    step = build_step(backbone, loss, batches, options, layout)
    for batch in batches.epoch(0, owned=layout.batch_users):
        value = step.loss_of(batch, "model", torch.Generator)
        step.move(value, "model")


def main() -> None:
    log, out_of_core = sys.argv[1:]
    torch.set_num_threads(1)
    with process_group(timeout=120) as group:
        found = measure(group, log, out_of_core)
        own = torch.tensor([[found["RssAnon"], found["RssFile"]]])
        everybody = group.whole(own, Partition.even(group.size, group.size))
        if group.is_first:
            print(json.dumps(everybody.tolist()))


if __name__ == "__main__":
    main()
