"""Rows of scores on any device: what their items are, and the sums that weights go into.

A row is a user of a block. Its positives are padded to the longest list of the rows at hand, and
padding weighs nothing; so no operation needs a loop over users.

The items may be divided over several processes, each of which has the same rows with the columns of
its own items. Whatever is a number per row, positive or node is then of all items, by `Across`;
whatever has a column per item is of the own ones.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from pslrec.kernels._catalog import CatalogLists


class Across(Protocol):
    """How the numbers of processes that have some of the items each become those of all items."""

    @property
    def size(self) -> int:
        """How many processes there are."""
        ...

    def sum(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all processes."""
        ...

    def maximum(self, tensor: Tensor) -> None:
        """Replace a tensor by the largest value of each entry over all processes."""
        ...


class Alone:
    """The one process that has all items, whose numbers are what they are."""

    size = 1

    def sum(self, tensor: Tensor) -> None:
        """See `Across`."""

    def maximum(self, tensor: Tensor) -> None:
        """See `Across`."""


ALONE = Alone()


class Special(NamedTuple):
    """Items whose weight as a negative is not 1, as triples.

    Args:
        rows: position of the row, ascending, int64.
        items: column, int64.
        weights: 0 for an item that is not a negative.
    """

    rows: Tensor
    items: Tensor
    weights: Tensor


@dataclass(frozen=True, eq=False)
class TorchRows:
    """Some rows of scores with all that a row operation reads.

    Args:
        scores: shape (rows, n_items), float32; an operation may overwrite them. An item that is
            not a negative has the highest score of a negative here, so that no term of what does
            not count is larger than those that do.
        positives: columns of the positives, shape (rows, longest), int64; padded with any column.
        is_here: 1 for positives that have a column here, 0 for those that another process has,
            shape (rows, longest).
        positive_scores: the scores of all positives, likewise.
        weights: what multiplies the loss of each positive, shape (rows, longest); 0 for padding.
        highest: score of a negative, shape (rows, 1).
        special: items that are not negatives of weight 1.
        totals: what all negatives of a row weigh together, shape (rows, 1).
        across: the processes that the items are divided over.
        is_compiled: take the compiled module for walks over the items, where it has them.
    """

    scores: Tensor
    positives: Tensor
    is_here: Tensor
    positive_scores: Tensor
    weights: Tensor
    highest: Tensor
    special: Special
    totals: Tensor
    across: Across = ALONE
    is_compiled: bool = False

    @property
    def precise(self) -> torch.dtype:
        """The type of the few numbers per user that must be exact; some devices have no double."""
        if self.scores.device.type == "mps":
            return torch.float32
        return torch.float64

    def weigh(self, terms: Tensor) -> None:
        """Multiply terms of items by their weights, in place.

        Args:
            terms: shape (rows, any, n_items).
        """
        rows, items, weights = self.special
        own = terms[rows, :, items]
        terms[rows, :, items] = own * weights.to(own.dtype).unsqueeze(1)

    def sums(self, *terms: Tensor) -> Tensor:
        """What terms of items add up to over all items, shape (number of terms, rows, any).

        Args:
            terms: each of shape (rows, any, n_items); multiplied by the weights, in place.
        """
        found = []
        for each in terms:
            self.weigh(each)
            found.append(each.sum(dim=2).to(self.precise))
        sums = torch.stack(found)
        self.across.sum(sums)
        return sums

    def add_at_positives(self, gradient: Tensor, values: Tensor) -> None:
        """Add a number of each positive to the column of its item, where that is here.

        Args:
            gradient: shape (rows, n_items).
            values: shape (rows, longest); 0 for padding.
        """
        gradient.scatter_add_(1, self.positives, self.is_here * values.to(gradient.dtype))

    def select(self, chosen: Tensor) -> "TorchRows":
        """Some of the rows, their scores copied.

        Args:
            chosen: their positions, ascending.
        """
        return TorchRows(
            self.scores[chosen],
            self.positives[chosen],
            self.is_here[chosen],
            self.positive_scores[chosen],
            self.weights[chosen],
            self.highest[chosen],
            self._special_of(chosen),
            self.totals[chosen],
            self.across,
            self.is_compiled,
        )

    def _special_of(self, chosen: Tensor) -> Special:
        rows, items, weights = self.special
        places = torch.full((len(self.scores),), -1, device=chosen.device)
        places[chosen] = torch.arange(len(chosen), device=chosen.device)
        among = places[rows]
        is_there = among >= 0
        return Special(among[is_there], items[is_there], weights[is_there])


def rows_of_candidates(
    scores: Tensor,
    is_here: Tensor,
    n_negatives: int,
    across: Across,
    *,
    is_compiled: bool = False,
) -> TorchRows:
    """Rows with a positive in column 0 and the sampled negatives of this process in the others.

    Args:
        scores: shape (rows, 1 or more).
        is_here: whether there is a candidate in a column; others stand for nothing.
        n_negatives: of each row, in all processes.
        across: the processes.
        is_compiled: as in `TorchRows`.
    """
    is_negative = is_here.clone()
    is_negative[:, 0] = False
    rows, items = torch.nonzero(~is_negative, as_tuple=True)
    special = Special(rows, items, torch.zeros_like(scores[rows, items]))
    own = is_here[:, :1].to(scores.dtype)
    positive_scores = scores[:, :1] * own
    across.sum(positive_scores)
    highest = _hide(scores, special, across)
    return TorchRows(
        scores,
        torch.zeros_like(own, dtype=torch.int64),
        own,
        positive_scores,
        torch.ones_like(own),
        highest,
        special,
        torch.full_like(own, float(n_negatives)),
        across,
        is_compiled,
    )


class TorchLists:
    """The lists of a block on its device, rows in ascending order of their number of positives.

    Everything goes to the device at once; rows are then cut out there.

    Args:
        lists: what each row's items are.
        device: of the scores.
        columns: the items of this process, which the scores have columns for.
        across: the processes that the items are divided over.
    """

    def __init__(
        self, lists: CatalogLists, device: torch.device, columns: range, across: Across
    ) -> None:
        counts = lists.positives.lengths[lists.owners]
        order = np.argsort(counts, kind="stable")
        lists = lists._replace(owners=lists.owners[order])
        # On the host, too, where rows are cut: asking the device would mean waiting for it.
        self.counts = counts[order]
        self._starts = np.zeros(len(order) + 1, dtype=np.int64)
        np.cumsum(self.counts, out=self._starts[1:])
        # Rows without positives have no loss.
        self.n_without = int(np.searchsorted(self.counts, 1))
        self._across = across
        pair_rows, positives = lists.positives.positions(lists.owners)
        is_here = (positives >= columns.start) & (positives < columns.stop)
        self.order = torch.from_numpy(order).to(device)
        self._counts_there = torch.from_numpy(self.counts).to(device)
        self._starts_there = torch.from_numpy(self._starts).to(device)
        self._pair_rows = torch.from_numpy(pair_rows).to(device)
        self._positives = torch.from_numpy(np.where(is_here, positives - columns.start, 0)).to(
            device
        )
        self._is_here = torch.from_numpy(is_here.astype(np.float32)).to(device)
        # Single precision before it goes there: not every device has doubles.
        self._totals = lists.total_weights().float().to(device).unsqueeze(1)
        rows, items, weights = _special_items(lists)
        is_own = (items >= columns.start) & (items < columns.stop)
        rows = rows[is_own]
        items = items[is_own] - columns.start
        weights = weights[is_own]
        if len(columns) == 0:
            # A process without items takes part with one column, which counts for nobody.
            rows = np.arange(len(order))
            items = np.zeros_like(rows)
            weights = np.zeros(len(rows), dtype=np.float32)
        self._special_starts = np.searchsorted(rows, np.arange(len(order) + 1))
        self._special = Special(
            torch.from_numpy(rows).to(device),
            torch.from_numpy(items).to(device),
            torch.from_numpy(weights).to(device),
        )

    def cut(self, scores: Tensor, first: int, last: int) -> TorchRows:
        """The rows `first` to `last`, without it, of the order of the lists.

        Args:
            scores: of these rows.
            first: the first of them, which has a positive.
            last: where they end.
        """
        begin = int(self._starts[first])
        end = int(self._starts[last])
        positives = self._positives[begin:end]
        is_here = self._is_here[begin:end]
        # Without the padding, as it may travel.
        positive_scores = scores[self._pair_rows[begin:end] - first, positives] * is_here
        self._across.sum(positive_scores)
        places, is_real = self._padded(first, last)
        begin = self._special_starts[first]
        end = self._special_starts[last]
        special = Special(
            self._special.rows[begin:end] - first,
            self._special.items[begin:end],
            self._special.weights[begin:end],
        )
        highest = _hide(scores, special, self._across)
        return TorchRows(
            scores,
            positives[places],
            is_here[places],
            positive_scores[places],
            is_real.to(scores.dtype),
            highest,
            special,
            self._totals[first:last],
            self._across,
        )

    def _padded(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        """Where the positives of some rows stand among these, by row, and which are no padding."""
        starts = self._starts_there[first:last] - self._starts_there[first]
        counts = self._counts_there[first:last]
        longest = int(self.counts[last - 1])
        steps = torch.arange(longest, device=starts.device)
        is_real = steps < counts.unsqueeze(1)
        # Padding repeats the first positive, so that intervals and gathers need no mask.
        return starts.unsqueeze(1) + torch.where(is_real, steps, 0), is_real


def _hide(scores: Tensor, special: Special, across: Across) -> Tensor:
    """The highest score of a negative by row, which the items that are none are given, too."""
    rows, items, weights = special
    kept = scores[rows, items]
    is_out = weights == 0
    scores[rows, items] = kept.masked_fill(is_out, -torch.inf)
    highest = scores.amax(dim=1, keepdim=True)
    across.maximum(highest)
    scores[rows, items] = torch.where(is_out, highest[rows, 0], kept)
    return highest


def _special_items(lists: CatalogLists) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, column and weight of every item that is not a negative of weight 1, by row."""
    rows, items = lists.taken.positions(lists.owners)
    keys = rows * lists.n_items + items
    weights = np.zeros(len(keys), dtype=np.float32)
    false_negatives = lists.false_negatives
    if false_negatives is not None and lists.noise > 0:
        rows, items = false_negatives.positions(lists.owners)
        n_plain = lists.n_items - lists.taken.lengths[lists.owners]
        n_false = np.maximum(false_negatives.lengths[lists.owners], 1)
        # All draws of the false negatives together are to those of the others as noise to
        # 1 - noise.
        each = lists.noise * n_plain / ((1.0 - lists.noise) * n_false)
        # An item that is taken and a false negative counts as the latter, which comes first here.
        keys = np.concatenate([rows * lists.n_items + items, keys])
        weights = np.concatenate([each[rows].astype(np.float32), weights])
        keys, first = np.unique(keys, return_index=True)
        weights = weights[first]
    rows, items = np.divmod(keys, lists.n_items)
    return rows, items, weights
