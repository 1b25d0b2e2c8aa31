"""Rows of scores on any device: what their items are, and the sums that weights go into.

A row is a user of a block. Its positives are padded to the longest list of the rows at hand, and
padding weighs nothing; so no operation needs a loop over users.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pslrec.kernels._catalog import CatalogLists


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
        positive_scores: their scores, likewise.
        weights: what multiplies the loss of each positive, shape (rows, longest); 0 for padding.
        highest: score of a negative, shape (rows, 1).
        special: items that are not negatives of weight 1.
        totals: what all negatives of a row weigh together, shape (rows, 1).
    """

    scores: Tensor
    positives: Tensor
    positive_scores: Tensor
    weights: Tensor
    highest: Tensor
    special: Special
    totals: Tensor

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

    def select(self, chosen: Tensor) -> "TorchRows":
        """Some of the rows, their scores copied.

        Args:
            chosen: their positions, ascending.
        """
        places = torch.full((len(self.scores),), -1, device=chosen.device)
        places[chosen] = torch.arange(len(chosen), device=chosen.device)
        among = places[self.special.rows]
        is_there = among >= 0
        special = Special(
            among[is_there], self.special.items[is_there], self.special.weights[is_there]
        )
        return TorchRows(
            self.scores[chosen],
            self.positives[chosen],
            self.positive_scores[chosen],
            self.weights[chosen],
            self.highest[chosen],
            special,
            self.totals[chosen],
        )


class TorchLists:
    """The lists of a block on its device, rows in ascending order of their number of positives.

    Everything goes to the device at once; rows are then cut out there.

    Args:
        lists: what each row's items are.
        device: of the scores.
    """

    def __init__(self, lists: CatalogLists, device: torch.device) -> None:
        counts = lists.positives.lengths[lists.owners]
        order = np.argsort(counts, kind="stable")
        lists = lists._replace(owners=lists.owners[order])
        # On the host, too, where rows are cut: asking the device would mean waiting for it.
        self.counts = counts[order]
        # Rows without positives have no loss.
        self.n_without = int(np.searchsorted(self.counts, 1))
        _, positives = lists.positives.positions(lists.owners)
        starts = np.cumsum(self.counts) - self.counts
        self.order = torch.from_numpy(order).to(device)
        self._counts = torch.from_numpy(self.counts).to(device)
        self._starts = torch.from_numpy(starts).to(device)
        self._positives = torch.from_numpy(positives).to(device)
        # Single precision before it goes there: not every device has doubles.
        self._totals = lists.total_weights().float().to(device).unsqueeze(1)
        rows, items, weights = _special_items(lists)
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
        counts = self._counts[first:last]
        starts = self._starts[first:last]
        longest = int(self.counts[last - 1])
        steps = torch.arange(longest, device=scores.device)
        is_real = steps < counts.unsqueeze(1)
        # Padding repeats the first positive, so that intervals and gathers need no mask.
        places = starts.unsqueeze(1) + torch.where(is_real, steps, 0)
        begin = self._special_starts[first]
        end = self._special_starts[last]
        special = Special(
            self._special.rows[begin:end] - first,
            self._special.items[begin:end],
            self._special.weights[begin:end],
        )
        positives = self._positives[places]
        positive_scores = scores.gather(1, positives)
        highest = _hide(scores, special)
        return TorchRows(
            scores,
            positives,
            positive_scores,
            is_real.to(scores.dtype),
            highest,
            special,
            self._totals[first:last],
        )


def _hide(scores: Tensor, special: Special) -> Tensor:
    """The highest score of a negative by row, which the items that are none are given, too."""
    rows, items, weights = special
    kept = scores[rows, items]
    is_out = weights == 0
    scores[rows, items] = kept.masked_fill(is_out, -torch.inf)
    highest = scores.amax(dim=1, keepdim=True)
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
