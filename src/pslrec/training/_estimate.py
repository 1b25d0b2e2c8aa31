"""What a run is going to need: memory by arithmetic, time from its first steps."""

import time
from collections.abc import Mapping

from torch import nn

from pslrec.backbones import Backbone
from pslrec.kernels import TorchPass
from pslrec.losses import Loss
from pslrec.sampling import PairBatches, UserBlocks
from pslrec.training._operations import Kernels, operation_for

# Bytes per candidate of a batch: its row, its score, the gradient of that, and the copy sorted by
# item.
CANDIDATE_BYTES = 4 + 4 + 4 + 8
# Of exact training: the score, which becomes its gradient in place, and room for blocks with more
# users.
SCORE_BYTES = 5
# What autograd keeps in addition where a loss is computed as it is written, and what row numbers of
# 8 bytes cost.
PLAIN_BYTES = 4 * 4
EXTRA_INPUT_BYTES = 8 + 3 * 4
# Per user of a batch and column: sum, vector of length 1, what autograd keeps, and gradients.
VECTOR_BYTES = 6 * 4
# Per pair whose history is divided: keys, their order, and both parts. Measured.
DIVIDED_BYTES = 48
# What the matrix library packs its operands into, whatever the size of the data: by how much a
# process grew beyond all else.
LIBRARY_BYTES = 4 * 2**20


def memory_estimate(
    backbone: Backbone,
    loss: Loss,
    batches: PairBatches | UserBlocks,
    kernels: Kernels = "auto",
    torch_pass: TorchPass | None = None,
) -> dict[str, int]:
    """Bytes by what they are for, at the peak of a training step.

    Evaluation has a budget of its own.

    Args:
        backbone: what is trained.
        loss: what it is trained for, built.
        batches: what it is trained on.
        kernels: as in `TrainingOptions`.
        torch_pass: as in `operation_for`.
    """
    tables = _bytes(backbone) + _bytes(loss)
    if isinstance(batches, UserBlocks):
        operation = operation_for(loss, "catalog", backbone.user_table, kernels, torch_pass)
        per_candidate = SCORE_BYTES
    else:
        operation = operation_for(loss, "sampled", backbone.user_table, kernels)
        per_candidate = CANDIDATE_BYTES
        if loss.needs:
            per_candidate += EXTRA_INPUT_BYTES
    if not operation.is_fused:
        per_candidate += PLAIN_BYTES
    return {
        "tables": tables,
        "gradients": tables,
        "moments": 2 * tables,
        "representations": _representations(backbone, loss, batches),
        "histories": DIVIDED_BYTES * batches.n_divided,
        "batch": operation.held_bytes(per_candidate * batches.n_candidates, backbone.user_table),
        "libraries": LIBRARY_BYTES,
    }


def _representations(backbone: Backbone, loss: Loss, batches: PairBatches | UserBlocks) -> int:
    total = 0
    if backbone.sums_histories:
        # Only the users of the batch have vectors. The gradient of the summed table is made anew in
        # every step, while the memory of the last one is not given back yet.
        total += VECTOR_BYTES * batches.n_users * backbone.dimension
        total += backbone.user_table.nbytes
    elif not backbone.is_lookup:
        # A backbone that propagates holds every layer, its input among them, and its gradient.
        n_layers = int(getattr(backbone, "layers", 1)) + 1
        total += 2 * n_layers * _bytes(backbone)
    if loss.similarity != "inner-product":
        # Vectors of length 1 and their gradient.
        total += 2 * backbone.item_table.nbytes
    return total


def _bytes(module: nn.Module) -> int:
    return sum(parameter.nbytes for parameter in module.parameters())


def described_memory(memory: Mapping[str, int]) -> str:
    """Memory in words.

    >>> described_memory({"tables": 6_000_000, "moments": 12_000_000, "batch": 41_200_000})
    '59 MB (tables 6, moments 12, batch 41)'
    """
    total = f"{sum(memory.values()) / 1e6:.0f} MB"
    # What would be rounded to 0 is left out.
    parts = [f"{name} {size / 1e6:.0f}" for name, size in memory.items() if size >= 5e5]
    if not parts:
        return total
    return f"{total} ({', '.join(parts)})"


class Pace:
    """Tells how long a step takes, once enough of them were made to know.

    Args:
        least_steps: to be measured after the first one, which is slower than the others.
        least_seconds: over which they are measured.
    """

    def __init__(self, *, least_steps: int = 3, least_seconds: float = 1.0) -> None:
        self._least_steps = least_steps
        self._least_seconds = least_seconds
        self._started: float | None = None
        self._steps = 0
        self._is_told = False

    def step(self, *, is_last: bool = False) -> float | None:
        """Count a finished step; returns the seconds of one, once, as soon as they are known.

        Args:
            is_last: no step follows before something else takes time, so what is known must do.
        """
        now = time.perf_counter()
        if self._started is None:
            # The first step warms caches and libraries up and is not counted.
            self._started = now
            return None
        self._steps += 1
        is_known = self._steps >= self._least_steps and now - self._started >= self._least_seconds
        if self._is_told or not (is_known or is_last):
            return None
        self._is_told = True
        return (now - self._started) / self._steps
