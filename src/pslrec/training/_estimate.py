"""What a run is going to need: memory by arithmetic, time from its first steps."""

import time
from collections.abc import Mapping

from torch import nn

from pslrec.backbones import Backbone
from pslrec.losses import Loss
from pslrec.sampling import PairBatches, UserBlocks

# Bytes per candidate of a batch: its row, its score, the gradient of that, and the copy sorted by item.
CANDIDATE_BYTES = 4 + 4 + 4 + 8
# Of exact training: the score, which becomes its gradient in place, and room for blocks with more users.
SCORE_BYTES = 5
# What autograd keeps in addition where a loss is computed as it is written, and what row numbers of 8 bytes cost.
PLAIN_BYTES = 4 * 4
EXTRA_INPUT_BYTES = 8 + 3 * 4
# What the matrix library packs its operands into, whatever the size of the data: by how much a process grew beyond all else.
LIBRARY_BYTES = 4 * 2**20


def memory_estimate(
    backbone: Backbone, loss: Loss, batches: PairBatches | UserBlocks
) -> dict[str, int]:
    """Bytes by what they are for, at the peak of a training step; evaluation has a budget of its own.

    Args:
        backbone: what is trained.
        loss: what it is trained for, built.
        batches: what it is trained on.
    """
    tables = _bytes(backbone) + _bytes(loss)
    is_exact = isinstance(batches, UserBlocks)
    is_fused = (loss.catalog_form() if is_exact else loss.log_sum_form()) is not None
    per_candidate = SCORE_BYTES if is_exact else CANDIDATE_BYTES
    per_candidate += 0 if is_fused else PLAIN_BYTES
    per_candidate += EXTRA_INPUT_BYTES if loss.needs and not is_exact else 0
    return {
        "tables": tables,
        "gradients": tables,
        "moments": 2 * tables,
        "representations": _representations(backbone, loss),
        "batch": per_candidate * batches.n_candidates,
        "libraries": LIBRARY_BYTES,
    }


def _representations(backbone: Backbone, loss: Loss) -> int:
    # Vectors of length 1 and their gradient; a backbone that propagates holds every layer and its gradient beside them.
    n_layers = 0 if backbone.is_lookup else int(getattr(backbone, "layers", 1)) + 1
    unit_items = 0 if loss.similarity == "inner-product" else 2 * backbone.item_table.nbytes
    return 2 * n_layers * _bytes(backbone) + unit_items


def _bytes(module: nn.Module) -> int:
    return sum(parameter.nbytes for parameter in module.parameters())


def described_memory(memory: Mapping[str, int]) -> str:
    """Memory in words.

    >>> described_memory({"tables": 6_000_000, "moments": 12_000_000, "batch": 41_200_000})
    '59 MB (tables 6, moments 12, batch 41)'
    """
    parts = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in memory.items() if size >= 5e5)
    return f"{sum(memory.values()) / 1e6:.0f} MB" + (f" ({parts})" if parts else "")


class Pace:
    """Tells how long a step takes, once enough of them were made to know.

    Args:
        least_steps: to be measured after the first one, which is slower than the others.
        least_seconds: over which they are measured.
    """

    def __init__(self, *, least_steps: int = 3, least_seconds: float = 1.0) -> None:
        self._least_steps, self._least_seconds = least_steps, least_seconds
        self._started: float | None = None
        self._steps = 0
        self._is_told = False

    def step(self, *, is_last: bool = False) -> float | None:
        """Count a finished step; the seconds of one, told once, as soon as they are known.

        Args:
            is_last: no step follows before something else takes time, so what is known must do.
        """
        now = time.perf_counter()
        if self._started is None:
            self._started = now
            return None
        self._steps += 1
        is_known = self._steps >= self._least_steps and now - self._started >= self._least_seconds
        if self._is_told or not (is_known or is_last):
            return None
        self._is_told = True
        return (now - self._started) / self._steps
