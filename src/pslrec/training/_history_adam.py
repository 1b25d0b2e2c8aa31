"""Dense Adam on the two tables of a backbone that is made of histories."""

import torch
from torch import Tensor

from pslrec.backbones import Backbone
from pslrec.losses import Loss
from pslrec.rows import Rows
from pslrec.training._layout import Layout
from pslrec.training._lookup_adam import LookupAdam


class HistoryAdam(LookupAdam):
    """Adam for a backbone whose users are sums over histories; a step moves all rows of both tables.

    The vectors of users are what the backbone makes them, so that any such backbone can be trained
    this way. The gradient goes back through it.

    Arguments as in `LookupAdam`.
    """

    def __init__(
        self,
        backbone: Backbone,
        loss: Loss,
        layout: Layout,
        *,
        learning_rate: float,
        weight_decay: float,
    ) -> None:
        rates = {"learning_rate": learning_rate, "weight_decay": weight_decay}
        super().__init__(backbone, loss, layout, **rates)
        self._backbone = backbone
        self._vectors = torch.empty(0)

    def fetch(self, users: Tensor, visible: Rows | None = None) -> tuple[Tensor, Tensor]:
        """Vectors of some users and of all items as the loss sees them; items are not copied."""
        with torch.enable_grad():
            tables = self._backbone.step_tables()
            self._vectors = self._backbone.users_of(tables, users, visible)
        return self._vectors.detach(), self._item_vectors()

    def step(self, users: Tensor, user_gradient: Tensor, item_gradient: Tensor) -> None:  # noqa: ARG002
        """Move all rows of both tables; the gradients are overwritten."""
        self._step += 1
        # The sum over processes is on its way while the other gradient is made.
        items_summed = self._layout.start_item_sum(item_gradient)
        table = self._backbone.user_table
        # The gradient of this sum by the vectors is `user_gradient`, to the bit. Given as such, torch
        # would check its shape with a symbolic algebra whose import takes half a second.
        pull = (self._vectors * user_gradient).sum()
        (gradient,) = torch.autograd.grad(pull, table)
        gradient = gradient.contiguous()
        users_summed = self._layout.start_item_sum(gradient)
        items_summed.wait()
        self._move_items(item_gradient)
        users_summed.wait()
        self._users.update_all(gradient, self._rule, self._step)

    def settle(self) -> None:
        """Everything always is up to date."""
