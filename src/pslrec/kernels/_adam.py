"""Adam on a table of which each step reaches a few rows, with the numbers of dense Adam.

Dense Adam moves every row at every step, by its momentum if not by its gradient. Between two
gradients a row depends on nothing but itself, so what it missed can be made up for when the row is
next asked for, in one loop that stays in the registers. `torch.optim.Adam` is the twin.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pslrec.kernels._native import native
from pslrec.kernels._sampled import runs_compiled

# Stand for "no output" and "all rows": the compiled functions take arrays everywhere, and numpy's
# five times faster than torch's.
_NONE = np.empty((0, 1), dtype=np.float32)
_ALL = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class AdamRule:
    """The numbers of Adam, with weight decay coupled into the gradient.

    Args:
        learning_rate: of the steps to come.
        weight_decay: added to the gradient as `weight_decay * parameter`.
        first_keep: share of the mean gradient that a step keeps; beta 1.
        second_keep: share of the mean squared gradient that a step keeps; beta 2.
        epsilon: added to the root of the mean squared gradient.
    """

    learning_rate: float
    weight_decay: float = 0.0
    first_keep: float = 0.9
    second_keep: float = 0.999
    epsilon: float = 1e-8

    def numbers(self) -> tuple[float, float, float, float, float]:
        """The numbers in the order in which the compiled functions take them."""
        return (
            self.learning_rate,
            self.weight_decay,
            self.first_keep,
            self.second_keep,
            self.epsilon,
        )


class AdamTable:
    """A table with the moments of Adam, its rows up to date or behind.

    Args:
        table: the parameters, shape (rows, columns), float32; changed in place.
        is_normalized: whether the loss sees the rows divided by their lengths; gradients are then
            with respect to those.
    """

    def __init__(self, table: Tensor, *, is_normalized: bool) -> None:
        self.table = table
        self.is_normalized = is_normalized
        self.first_moments = torch.zeros_like(table)
        self.second_moments = torch.zeros_like(table)
        self.last_steps = torch.zeros(len(table), dtype=torch.int32)
        # Views of the same memory, made once: a step is called thousands of times.
        self._state = (
            self.table.numpy(),
            self.first_moments.numpy(),
            self.second_moments.numpy(),
            self.last_steps.numpy(),
        )

    def fetch(self, rows: Tensor, rule: AdamRule, step: int) -> Tensor:
        """Copies of rows as the loss sees them after this many steps."""
        vectors = torch.empty((len(rows), self.table.shape[1]))
        native.adam_fetch(
            *self._state,
            rows.numpy(),
            step,
            *rule.numbers(),
            self.is_normalized,
            vectors.numpy(),
        )
        return vectors

    def catch_up(self, rule: AdamRule, step: int) -> None:
        """Bring all rows up to date with a step."""
        rows = np.arange(len(self.table))
        native.adam_fetch(*self._state, rows, step, *rule.numbers(), False, _NONE)

    def update(self, rows: Tensor, gradient: Tensor, rule: AdamRule, step: int) -> None:
        """Make a step on rows that were fetched for it.

        Args:
            rows: each one once.
            gradient: with respect to what `fetch` returned; overwritten.
            rule: the numbers of this step.
            step: its number, from 1.
        """
        # No rows would mean all of them to the compiled function.
        if len(rows):
            self._update(rows.numpy(), gradient, rule, step, _NONE)

    def update_all(
        self, gradient: Tensor, rule: AdamRule, step: int, *, out: Tensor | None = None
    ) -> None:
        """Make a step on all rows, and write them, divided by their lengths, into `out`."""
        written = _NONE
        if out is not None:
            written = out.numpy()
        self._update(_ALL, gradient, rule, step, written)

    def _update(
        self, rows: np.ndarray, gradient: Tensor, rule: AdamRule, step: int, out: np.ndarray
    ) -> None:
        native.adam_update(
            *self._state,
            rows,
            gradient.numpy(),
            step,
            *rule.numbers(),
            self.is_normalized,
            out,
        )


def takes_adam(table: Tensor) -> bool:
    """Whether the compiled functions exist for this table."""
    return runs_compiled(table)
