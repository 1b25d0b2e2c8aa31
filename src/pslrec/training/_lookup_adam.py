"""Dense Adam on the tables of a lookup backbone, at the cost of the rows that a step touches."""

from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam

from pslrec.backbones import Backbone
from pslrec.kernels import AdamRule, AdamTable
from pslrec.losses import Loss
from pslrec.rows import Rows
from pslrec.training._layout import Layout


class LookupAdam:
    """Adam for a backbone whose representations are its tables, in steps over a few users.

    A step moves all items. The same numbers as `torch.optim.Adam` to rounding: users that a step
    leaves out are brought up to date when they are next asked for, and by `settle`.

    Args:
        backbone: whose tables are trained, in place.
        loss: tells how the tables are scored, and may have parameters of its own.
        layout: which rows of the tables this process holds; what all hold moves by the sum of
            their gradients.
        learning_rate: of the tables.
        weight_decay: coupled into the gradient.
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
        self._layout = layout
        self._first_user = backbone.first_user
        self._learning_rate = learning_rate
        self._rule = AdamRule(learning_rate, weight_decay)
        is_normalized = loss.similarity == "half-cosine"
        # A row that is a part of a sum has no direction that counts; only the sum has.
        has_directions = is_normalized and not backbone.sums_histories
        self._users = AdamTable(backbone.user_table.detach(), is_normalized=has_directions)
        self._items = AdamTable(backbone.item_table.detach(), is_normalized=is_normalized)
        self._directions: Tensor | None = None
        self._step = 0
        self.of_loss: Adam | None = None
        groups = loss.parameter_groups(learning_rate, "model")
        if groups:
            self.of_loss = Adam(groups, lr=learning_rate, weight_decay=weight_decay)

    def fetch(
        self,
        users: Tensor,
        visible: Rows | None = None,  # noqa: ARG002
    ) -> tuple[Tensor, Tensor]:
        """Vectors of some users and of all items as the loss sees them; items are not copied.

        Args:
            users: their rows.
            visible: as in `Backbone.users_of`; rows of a table have no history.
        """
        vectors = self._users.fetch(self._rows(users), self._rule, self._step)
        return vectors, self._item_vectors()

    def _rows(self, users: Tensor) -> Tensor:
        if self._first_user:
            return users - self._first_user
        return users

    def _item_vectors(self) -> Tensor:
        if not self._items.is_normalized:
            return self._items.table
        # Kept from step to step: the update writes them along with the table.
        if self._directions is None:
            everything = torch.arange(len(self._items.table))
            self._directions = self._items.fetch(everything, self._rule, self._step)
        return self._directions

    def step(self, users: Tensor, user_gradient: Tensor, item_gradient: Tensor) -> None:
        """Move users that were fetched, and all items; the gradients are overwritten."""
        self._step += 1
        # The users of other processes pulled at the items, too; while their sum is on its way,
        # the users move.
        summed = self._layout.start_item_sum(item_gradient)
        self._users.update(self._rows(users), user_gradient, self._rule, self._step)
        summed.wait()
        self._move_items(item_gradient)

    def _move_items(self, gradient: Tensor) -> None:
        self._items.update_all(gradient, self._rule, self._step, out=self._directions)
        if self.of_loss is not None:
            self._layout.sum_gradients(self.of_loss)
            self.of_loss.step()

    def zero_grad(self) -> None:
        """Clear the gradients of the loss's own parameters; those of the tables are never kept."""
        if self.of_loss is not None:
            self.of_loss.zero_grad()

    def settle(self) -> None:
        """Bring all users up to date."""
        # Items are, always: every step moves all of them.
        self._users.catch_up(self._rule, self._step)

    def scale_rate(self, factor: float) -> None:
        """Continue with this part of the learning rate; all rows must be up to date."""
        self._rule = AdamRule(self._learning_rate * factor, self._rule.weight_decay)

    def named_state(self) -> dict[str, Tensor]:
        """Everything beside the tables; nothing is copied."""
        named = {"step": torch.tensor(self._step)}
        for name, table in (("users", self._users), ("items", self._items)):
            for key in ("first_moments", "second_moments", "last_steps"):
                named[f"{name}/{key}"] = getattr(table, key)
        return named

    def load_named_state(self, state: dict[str, Tensor]) -> None:
        """The inverse of `named_state`; the tables must have been put back before."""
        step = int(state["step"])
        of_items = state["items/last_steps"]
        of_users = state["users/last_steps"]
        # A step moves all items; a row that is too far behind would be brought up to date forever.
        items_are_right = bool((of_items == step).all())
        users_are_right = bool(((of_users >= 0) & (of_users <= step)).all())
        if not (items_are_right and users_are_right):
            raise ValueError(f"its rows must be at step {step} or behind it")
        self._step = step
        self._directions = None
        for name, table in (("users", self._users), ("items", self._items)):
            for key in ("first_moments", "second_moments", "last_steps"):
                values: Any = getattr(table, key)
                values.copy_(state[f"{name}/{key}"])
