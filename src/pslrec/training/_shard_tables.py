"""The tables of a step with divided items: vectors for all users of a step, and back to own rows."""

import torch
from torch import Tensor
from torch.nn import functional

from pslrec.backbones import Backbone
from pslrec.losses import Loss
from pslrec.sampling import CatalogBlock, PairBatch
from pslrec.training._history_adam import HistoryAdam
from pslrec.training._layout import Layout
from pslrec.training._lookup_adam import LookupAdam
from pslrec.training._optimizer import build_optimizers


class OwnTables:
    """Adam on the rows of this process, as `LookupStep` has it.

    Args:
        backbone: whose tables are trained, in place.
        loss: tells how they are scored.
        layout: which rows these are.
        rates: learning rate and weight decay.
    """

    def __init__(
        self, backbone: Backbone, loss: Loss, layout: Layout, rates: dict[str, float]
    ) -> None:
        self._layout = layout
        make_tables = LookupAdam
        if backbone.sums_histories:
            make_tables = HistoryAdam
        self.optimizer = make_tables(backbone, loss, layout, **rates)
        self._has_rows = backbone.is_lookup
        self._users = torch.empty(0, dtype=torch.int64)
        self._is_own = torch.empty(0, dtype=torch.bool)

    def fetch(self, block: CatalogBlock) -> tuple[Tensor, Tensor]:
        """Vectors of all users of the block, and of the items of this process."""
        self._users = block.users
        if not self._has_rows:
            # Their histories are spread over all processes, and the backbone combines them.
            return self.optimizer.fetch(block.users, block.visible)
        own = self._layout.own_users
        self._is_own = (block.users >= own.start) & (block.users < own.stop)
        vectors, items = self.optimizer.fetch(block.users[self._is_own])
        whole = torch.zeros((len(block.users), items.shape[1]), dtype=items.dtype)
        whole[self._is_own] = vectors
        self._layout.group.sum(whole)
        return whole, items

    def step(self, user_gradient: Tensor, item_gradient: Tensor) -> None:
        """Move the users and items of this process."""
        users = self._users
        if self._has_rows:
            users = users[self._is_own]
            user_gradient = user_gradient[self._is_own]
        self.optimizer.step(users, user_gradient, item_gradient)

    def settle(self) -> None:
        """See `ModelStep`."""
        self.optimizer.settle()

    def scale_rate(self, factor: float) -> None:
        """See `ModelStep`."""
        self.optimizer.scale_rate(factor)


class DenseTables:
    """Dense Adam on the rows of this process, with gradients by autograd, as `DenseStep` has it.

    Arguments as in `OwnTables`.
    """

    def __init__(
        self, backbone: Backbone, loss: Loss, layout: Layout, rates: dict[str, float]
    ) -> None:
        self._backbone = backbone
        self._layout = layout
        self._is_normalized = loss.similarity == "half-cosine"
        self.optimizer = build_optimizers(backbone, loss, **rates)["model"]
        self._rate = rates["learning_rate"]
        self._is_own = torch.empty(0, dtype=torch.bool)
        self._own: tuple[Tensor, Tensor] | None = None

    def fetch(self, batch: PairBatch | CatalogBlock) -> tuple[Tensor, Tensor]:
        """Vectors of all users of the batch, and of the items of this process."""
        self.optimizer.zero_grad()
        backbone = self._backbone
        own = self._layout.own_users
        self._is_own = (batch.users >= own.start) & (batch.users < own.stop)
        if backbone.sums_histories:
            self._is_own = torch.ones(len(batch.users), dtype=torch.bool)
        with torch.enable_grad():
            tables = backbone.step_tables()
            own_users = batch.users[self._is_own].to(tables.items.device)
            users = backbone.users_of(tables, own_users, batch.visible)
            items = tables.items
            if self._is_normalized:
                users = functional.normalize(users, dim=1)
                items = functional.normalize(items, dim=1)
        self._own = (users, items)
        if backbone.sums_histories:
            return users.detach(), items.detach()
        whole = items.new_zeros((len(batch.users), items.shape[1]))
        whole[self._own_places(items.device)] = users.detach()
        self._layout.group.sum(whole)
        return whole, items.detach()

    def step(self, user_gradient: Tensor, item_gradient: Tensor) -> None:
        """Move the users and items of this process."""
        if self._own is None:
            return
        places = self._own_places(user_gradient.device)
        torch.autograd.backward(self._own, [user_gradient[places], item_gradient])
        self._own = None
        self.optimizer.step()

    def _own_places(self, device: torch.device) -> Tensor:
        """Where the users of this process are in the batch."""
        return torch.nonzero(self._is_own).squeeze(1).to(device)

    def settle(self) -> None:
        """Everything always is up to date."""

    def scale_rate(self, factor: float) -> None:
        """See `ModelStep`."""
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate * factor
