"""Memory that is kept from step to step: fresh memory of a block's size costs as much as a matrix product."""

import torch
from torch import Tensor


class KeptMemory:
    """Single-precision matrices that are taken, given back, and taken again.

    Whoever takes one owns it until it is given back; what never comes back is freed as any tensor.

    >>> memory = KeptMemory()
    >>> first = memory.take(2, 3)
    >>> memory.give_back(first)
    >>> memory.take(3, 2).data_ptr() == first.data_ptr()
    True
    """

    def __init__(self) -> None:
        self._free: list[Tensor] = []

    def take(self, rows: int, columns: int) -> Tensor:
        """A matrix with anything in it."""
        kept = self._free.pop() if self._free else torch.empty(0)
        if kept.numel() < rows * columns:
            # A later block may be a little larger.
            kept = torch.empty(rows * columns + rows * columns // 4)
        return kept[: rows * columns].view(rows, columns)

    def give_back(self, matrix: Tensor) -> None:
        """Let others have it; nobody may use it any more."""
        whole = matrix._base
        self._free.append(matrix.flatten() if whole is None else whole)
