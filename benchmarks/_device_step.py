"""`python -m benchmarks._device_step LOSS KERNELS PAIRS PRODUCTS`: the memory of one step, printed as JSON."""

import json
import sys
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks._data import published
from benchmarks._memory import MEBIBYTE, memory_growth
from pslrec.config import RunConfig
from pslrec.experiment import TrainingData, build_batches, build_model
from pslrec.kernels import TorchPass
from pslrec.losses import Loss
from pslrec.sampling import CatalogBlock
from pslrec.training import operation_for

TEMPERATURE = 0.1


def first_block(loss_name: str, batch_pairs: int) -> tuple[Loss, Tensor, Tensor, CatalogBlock]:
    """A loss, the vectors of a block's users and of all items, and the block, on Electronic."""
    dataset = published("electronic")
    config = RunConfig.from_settings(
        {
            "loss.name": loss_name,
            "loss.temperature": TEMPERATURE,
            "sampling.negatives": "catalog",
            "sampling.batch_pairs": batch_pairs,
            # Where training begins to be about something: scores of noise are all alike.
            "backbone.initialization": "spectral",
        }
    ).resolved()
    backbone, loss = build_model(config, dataset.train)
    batches = build_batches(config, TrainingData(dataset, dataset.train, None))
    block = next(iter(batches.epoch(0)))
    users = functional.normalize(backbone.user_table.detach()[block.users], dim=1)
    items = functional.normalize(backbone.item_table.detach(), dim=1)
    return loss, users, items, block


def value_and_gradients(
    loss: Loss, users: Tensor, items: Tensor, block: CatalogBlock, kernels: Any, products: Any
) -> list[Tensor]:
    """The mean loss of the block and its gradients in both tables."""
    tables = [table.detach().requires_grad_() for table in (users, items)]
    operation = operation_for(loss, "catalog", users, kernels, TorchPass(products))
    value = operation.value(*tables, block)
    return [value.detach(), *torch.autograd.grad(value, tables)]


def main(loss_name: str, kernels: str, batch_pairs: str, products: str) -> None:
    parts = first_block(loss_name, int(batch_pairs))
    # A small block first, so that what the libraries allocate once is there already.
    value_and_gradients(*first_block(loss_name, 200), kernels, products)
    growth = memory_growth(lambda: value_and_gradients(*parts, kernels, products))
    print(json.dumps({"MB": growth / MEBIBYTE}))


if __name__ == "__main__":
    main(*sys.argv[1:])
