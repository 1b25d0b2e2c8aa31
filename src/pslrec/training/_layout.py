"""Which rows of the tables each process of a group holds, and how they are put together again.

Users are divided among the processes, each of which keeps the rows, the moments and the
interactions of its own. Items are the same everywhere, or divided by rows as well.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam

from pslrec.backbones import Backbone, ItemPart
from pslrec.distributed import Group, Partition, Pending
from pslrec.errors import ConfigError
from pslrec.losses import Loss
from pslrec.sampling import PairBatches, UserBlocks

# Names in a checkpoint by the table whose rows they follow. A dense Adam counts its parameters,
# and the tables are the first two.
OF_USERS = ("backbone/user_table", "optimizer/model/users/", "optimizer/model/0/exp_")
OF_ITEMS = ("backbone/item_table", "optimizer/model/items/", "optimizer/model/1/exp_")


class Layout:
    """The tables of a run as its processes hold them.

    Args:
        backbone: whose tables are cut down to the rows of this process.
        loss: may keep something for every user.
        batches: tell how much work each user is.
        group: the processes.
        shard_items: divide the items as well.

    Raises:
        ConfigError: the backbone or the loss cannot be trained that way.
    """

    def __init__(
        self,
        backbone: Backbone,
        loss: Loss,
        batches: PairBatches | UserBlocks,
        group: Group,
        *,
        shard_items: bool = False,
    ) -> None:
        self.group = group
        self.shards_items = shard_items and not group.is_single
        self.users = Partition.balanced(batches.pair_counts, group.size)
        self.items = Partition.even(len(backbone.item_table), group.size)
        self._backbone = backbone
        self._loss = loss
        # Rows of the two tables, where these are divided.
        self._of_user_table: Partition | None = None
        self._of_item_table: Partition | None = None
        if group.is_single:
            return
        _check_loss(loss)
        if backbone.is_lookup:
            self._of_user_table = self.users
        if self.shards_items:
            self._divide_items(backbone)
        self._cut(backbone.user_table, self._of_user_table)
        self._cut(backbone.item_table, self._of_item_table)
        if backbone.is_lookup:
            backbone.first_user = self.own_users.start

    def _divide_items(self, backbone: Backbone) -> None:
        if not (backbone.is_lookup or backbone.takes_item_parts):
            raise ConfigError(
                f"`--shard-items` needs a backbone whose item vectors are rows of its table, such "
                f"as mf or history; `{backbone.name}` makes them from the whole graph. "
                "Leave `--shard-items` out"
            )
        self._of_item_table = self.items
        if backbone.sums_histories:
            self._of_user_table = self.items
        backbone.item_part = ItemPart(self.own_items, self._combined)

    def _combined(self, tensor: Tensor) -> Tensor:
        summed: Tensor = _Summed.apply(tensor, self.group)  # type: ignore[no-untyped-call]
        return summed

    @property
    def own_users(self) -> range:
        """Rows of the users of this process."""
        return self.users.of(self.group.rank)

    @property
    def own_items(self) -> range:
        """Rows of the items of this process, where they are divided."""
        return self.items.of(self.group.rank)

    @property
    def batch_users(self) -> range | None:
        """Whose pairs of a batch this process works on; `None` is everybody's.

        Where items are divided, every process works on all users and its own items.
        """
        if self.group.is_single or self.shards_items:
            return None
        return self.own_users

    def _cut(self, table: nn.Parameter, partition: Partition | None) -> None:
        if partition is None:
            return
        rows = partition.of(self.group.rank)
        # A copy, so that the memory of the other rows is given back.
        table.data = table.data[rows.start : rows.stop].clone()

    def sum_gradients(self, optimizer: Adam) -> None:
        """Add up the gradients of what all processes hold.

        Args:
            optimizer: of the parameters; those of divided tables are left as they are.
        """
        if self.group.is_single:
            return
        for parameter in _parameters(optimizer):
            if parameter.grad is None:
                # No pair of the step was here; the others have some.
                parameter.grad = torch.zeros_like(parameter)
            if not self._is_divided(parameter):
                self.group.sum(parameter.grad)

    def start_item_sum(self, gradient: Tensor) -> Pending:
        """Begin to add up the gradient of a table with a row per item, where all hold all rows.

        Args:
            gradient: must be left alone until the sum has been waited for.
        """
        if self.shards_items:
            return Pending()
        return self.group.start_sum(gradient)

    def _is_divided(self, parameter: nn.Parameter) -> bool:
        if parameter is self._backbone.user_table:
            return self._of_user_table is not None
        if parameter is self._backbone.item_table:
            return self._of_item_table is not None
        return False

    @contextmanager
    def whole(self) -> Iterator[None]:
        """The backbone with all rows of its tables, on every process, while this is entered."""
        if self.group.is_single:
            yield
            return
        backbone = self._backbone
        first_user = backbone.first_user
        item_part = backbone.item_part
        parts = (backbone.user_table.data, backbone.item_table.data)
        backbone.user_table.data = self._whole(parts[0], self._of_user_table)
        backbone.item_table.data = self._whole(parts[1], self._of_item_table)
        backbone.first_user = 0
        backbone.item_part = None
        try:
            yield
        finally:
            backbone.user_table.data, backbone.item_table.data = parts
            backbone.first_user = first_user
            backbone.item_part = item_part

    def _whole(self, part: Tensor, partition: Partition | None) -> Tensor:
        if partition is None:
            return part
        return self.group.whole(part, partition)

    def gathered(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of a checkpoint of the whole run; complete on the first process only.

        They are what a single process would have written, so that any number of processes can
        resume.

        Args:
            tensors: the state of this process, by name.
        """
        if self.group.is_single:
            return dict(tensors)
        whole: dict[str, Tensor] = {}
        for name, tensor in tensors.items():
            partition = self._partition_of(name)
            part = tensor
            if self._is_kept_by_user(name) and not self.shards_items:
                partition = self.users
                part = tensor[self.own_users.start : self.own_users.stop]
            found: Tensor | None = part
            if partition is not None:
                found = self.group.whole_on_first(part, partition)
            if found is not None:
                whole[name] = found
        return whole

    def received(self, tensors: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
        """The rows of this process, of a checkpoint that the first one has read.

        Args:
            tensors: of the whole run, by name; read on the first process only.
        """
        return tensors_from_first(tensors, self.group, keep=self._own_rows)

    def _own_rows(self, name: str, tensor: Tensor) -> Tensor:
        partition = self._partition_of(name)
        # A table of another size is refused by whoever restores it, with a message.
        if (
            self.group.is_single
            or partition is None
            or tensor.ndim == 0
            or len(tensor) != len(partition)
        ):
            return tensor
        rows = partition.of(self.group.rank)
        return tensor[rows.start : rows.stop].clone()

    def _partition_of(self, name: str) -> Partition | None:
        if name.startswith(OF_USERS):
            return self._of_user_table
        if name.startswith(OF_ITEMS):
            return self._of_item_table
        return None

    def _is_kept_by_user(self, name: str) -> bool:
        return name.removeprefix("loss/") in self._loss.user_state()


class _Summed(torch.autograd.Function):
    """A sum over processes, each of which is given the gradient of the whole sum."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Group) -> Tensor:  # noqa: ARG004
        summed = tensor.clone()
        group.sum(summed)
        return summed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:  # noqa: ARG004
        return gradients[0], None


def _check_loss(loss: Loss) -> None:
    """Raise for a loss whose steps cannot be divided among processes."""
    if type(loss).forward is not Loss.forward:
        raise ConfigError(
            f"loss `{loss.name}` cannot be trained by several processes: it must be the mean of "
            "its `pairwise_values`, and has a `forward` of its own; train it in one process"
        )
    known = {name for name, _ in loss.named_parameters()} | set(loss.user_state())
    unknown = sorted(set(loss.state_dict()) - known)
    if unknown and type(loss).after_step is not Loss.after_step:
        raise ConfigError(
            f"loss `{loss.name}` cannot be trained by several processes: a step changes "
            f"`{unknown[0]}`, and `user_state` does not say that it belongs to single users; "
            "train it in one process"
        )


def _parameters(optimizer: Adam) -> list[nn.Parameter]:
    parameters: list[nn.Parameter] = []
    for group in optimizer.param_groups:
        parameters += group["params"]
    return parameters


def tensors_from_first(
    tensors: Mapping[str, Tensor] | None,
    group: Group,
    *,
    keep: Callable[[str, Tensor], Tensor] | None = None,
) -> dict[str, Tensor]:
    """Tensors that the first rank has read, on all ranks, one after the other.

    Args:
        tensors: read on the first rank only.
        group: the processes.
        keep: gives what a rank keeps of a tensor, by its name; all of it by default.
    """
    described: list[tuple[str, tuple[int, ...], torch.dtype]] = []
    if tensors is not None:
        described = [(name, tuple(each.shape), each.dtype) for name, each in tensors.items()]
    found: dict[str, Tensor] = {}
    for name, shape, dtype in group.from_first(described):
        tensor = torch.empty(shape, dtype=dtype)
        if tensors is not None:
            tensor = tensors[name].contiguous()
        group.tensor_from(0, tensor)
        if keep is not None:
            tensor = keep(name, tensor)
        found[name] = tensor
    return found
