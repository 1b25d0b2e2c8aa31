"""The collectives of a group of processes, which are identities where there is one process."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
import torch.distributed
from torch import Tensor

from pslrec.distributed._failures import Notes, PeerError
from pslrec.distributed._partition import Partition

Anything = TypeVar("Anything")


class Pending:
    """A sum that is on its way; `wait` before the tensor is used.

    Args:
        finish: waits for it; `None` if there is nothing to wait for.
    """

    def __init__(self, finish: Callable[[], None] | None = None) -> None:
        self._finish = finish

    def wait(self) -> None:
        """Return once the tensor holds the sum."""
        if self._finish is not None:
            self._finish()


class Group:
    """The processes that train one model together, and the rank of this one among them.

    Args:
        rank: of this process, from 0.
        size: how many processes there are.
        notes: where ranks say why they stopped; needed where there are several.
        timeout: seconds after which a rank that does not answer is given up.
        local_rank: of this process among those of its machine, from 0.
        local_size: how many processes there are on its machine.

    >>> alone = Group()
    >>> numbers = torch.ones(2)
    >>> alone.sum(numbers)
    >>> numbers, alone.is_first, alone.from_first("settings")
    (tensor([1., 1.]), True, 'settings')
    """

    def __init__(
        self,
        rank: int = 0,
        size: int = 1,
        *,
        notes: Notes | None = None,
        timeout: float = 0.0,
        local_rank: int = 0,
        local_size: int = 1,
    ) -> None:
        self.rank = rank
        self.size = size
        self.local_rank = local_rank
        self.local_size = local_size
        self._notes = notes
        self._timeout = timeout
        # What this process put into collectives; benchmarks read it.
        self.n_bytes = 0
        self.n_collectives = 0

    @property
    def is_single(self) -> bool:
        """Whether this process is alone."""
        return self.size == 1

    @property
    def is_first(self) -> bool:
        """Whether this is the one process that prints and writes files."""
        return self.rank == 0

    def sum(self, tensor: Tensor) -> None:
        """Replace a tensor by the sum over all processes, the same to the bit on each.

        Args:
            tensor: of the same shape everywhere.
        """
        self.start_sum(tensor).wait()

    def start_sum(self, tensor: Tensor) -> Pending:
        """Begin what `sum` does, and return at once.

        Args:
            tensor: must be left alone until the sum has been waited for.
        """
        if self.is_single:
            return Pending()
        self._count(tensor)
        work = self._guarded(lambda: torch.distributed.all_reduce(tensor, async_op=True))

        def finish() -> None:
            self._guarded(work.wait)

        return Pending(finish)

    def maximum(self, tensor: Tensor) -> None:
        """Replace a tensor by the largest value of each entry over all processes.

        Args:
            tensor: of the same shape everywhere.
        """
        if self.is_single:
            return
        self._count(tensor)
        largest = torch.distributed.ReduceOp.MAX
        self._guarded(lambda: torch.distributed.all_reduce(tensor, op=largest))

    def from_first(self, value: Anything) -> Anything:
        """What the first process has, on all of them.

        Args:
            value: anything small that can be pickled; read on the first process alone.
        """
        held = [value]
        if not self.is_single:
            self._guarded(lambda: torch.distributed.broadcast_object_list(held, src=0))
        return held[0]

    def tensor_from(self, rank: int, tensor: Tensor) -> None:
        """Fill a tensor with what one process has in it.

        Args:
            rank: of that process.
            tensor: of the same shape everywhere.
        """
        # Nothing cannot be sent.
        if self.is_single or tensor.numel() == 0:
            return
        self._count(tensor)
        self._guarded(lambda: torch.distributed.broadcast(tensor, src=rank))

    def whole(self, part: Tensor, partition: Partition) -> Tensor:
        """A table on every process, from the rows that each one holds.

        Args:
            part: the rows of this process.
            partition: who holds which rows.
        """
        if self.is_single:
            return part
        table = part.new_empty((len(partition), *part.shape[1:]))
        for rank in range(self.size):
            rows = partition.of(rank)
            piece = table[rows.start : rows.stop]
            if rank == self.rank:
                piece.copy_(part)
            self.tensor_from(rank, piece)
        return table

    def whole_on_first(self, part: Tensor, partition: Partition) -> Tensor | None:
        """The same on the first process alone; `None` on all others.

        Args:
            part: the rows of this process.
            partition: who holds which rows.
        """
        if not self.is_first:
            if part.numel():
                self._count(part)
                sent = part.contiguous()
                self._guarded(lambda: torch.distributed.send(sent, dst=0))
            return None
        table = part.new_empty((len(partition), *part.shape[1:]))
        own = partition.of(0)
        table[own.start : own.stop] = part
        for rank in range(1, self.size):
            rows = partition.of(rank)
            piece = table[rows.start : rows.stop]
            if piece.numel():
                self._receive(piece, rank)
        return table

    def _receive(self, tensor: Tensor, rank: int) -> None:
        self._guarded(lambda: torch.distributed.recv(tensor, src=rank))

    def in_turn(self, n_parts: int, make: Callable[[int], Anything]) -> Iterator[Anything]:
        """What `make` gives for 0, 1, 2, ..., in this order, on the first process.

        The processes make one part after the other in turn, and each waits with a finished one
        until the first process has come to it. All of them must go to the end of the iterator; it
        has nothing for the others.

        Args:
            n_parts: how many there are.
            make: gives a part, which can be pickled, by its number.
        """
        for number in range(n_parts):
            maker = number % self.size
            if maker == self.rank:
                part = make(number)
                if self.is_first:
                    yield part
                else:
                    self._send_to_first(part)
            elif self.is_first:
                yield self._received_from(maker)

    def _send_to_first(self, value: Any) -> None:
        self._guarded(lambda: torch.distributed.send_object_list([value], dst=0))

    def _received_from(self, rank: int) -> Any:
        held: list[Any] = [None]
        self._guarded(lambda: torch.distributed.recv_object_list(held, src=rank))
        return held[0]

    def check_same(self, what: str, value: object) -> None:
        """Raise unless all processes have the same value.

        Args:
            what: the value is of, for the message.
            value: small, such as a hash.
        """
        if self.is_single:
            return
        found: list[Any] = [None] * self.size
        self._guarded(lambda: torch.distributed.all_gather_object(found, value))
        for rank, other in enumerate(found):
            if other != found[0]:
                raise PeerError(
                    f"{what} must be the same for all processes, but rank 0 has {found[0]!r} "
                    f"and rank {rank} has {other!r}; give all of them the same files and options"
                )

    def _count(self, tensor: Tensor) -> None:
        self.n_bytes += tensor.nbytes
        self.n_collectives += 1

    def _guarded(self, collective: Callable[[], Any]) -> Any:
        try:
            return collective()
        except RuntimeError as failure:
            if self._notes is None:
                raise
            raise PeerError(self._notes.explanation(failure, self._timeout)) from failure
