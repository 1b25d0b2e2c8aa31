"""One elastic net per item over the counts of common users, for all items at once."""

from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch.nn import functional

from pslrec.kernels._native import native

# A build from before this kernel has none.
_compiled: Callable[..., None] | None = getattr(native, "elastic_nets", None)
# Sweeps over the weights end when none moves by more than this, or after so many: hundreds are needed where
# everybody has much in common.
_TOLERANCE = 1e-4
_MOST_SWEEPS = 5_000
# The plain twin solves items together up to this many bytes of matrices: its steps are short, and many
# items share the price of calling them.
_BATCH_BYTES = 64 * 2**20


def elastic_nets(
    counts: csr_matrix,
    candidates: csr_matrix,
    *,
    l1: float,
    l2: float,
    non_negative: bool,
) -> np.ndarray:
    """The weights w of some other items that explain each item x best, by coordinate descent.

    They minimise `1/2 |x - X w|^2 + l2 / 2 |w|^2 + l1 |w|_1`, where X has the candidates of x in its
    columns. What an item gets depends on nothing but its own candidates.

    Args:
        counts: X^T X of all items, symmetric; float32.
        candidates: in row i the items that may explain item i, never i itself; its values are not
            used.
        l1: strength of the absolute penalty.
        l2: strength of the squared penalty; above 0, so that the answer is unique.
        non_negative: whether weights below 0 are ruled out.

    Returns:
        A weight for each candidate, in the order of `candidates.data`, float32.

    >>> counts = csr_matrix([[2.0, 1.0], [1.0, 1.0]], dtype=np.float32)
    >>> others = csr_matrix([[0.0, 1.0], [1.0, 0.0]])
    >>> elastic_nets(counts, others, l1=0.5, l2=1.0, non_negative=True)
    array([0.25      , 0.16666667], dtype=float32)
    """
    _check(counts, candidates)
    if _compiled is None:
        return elastic_nets_plainly(counts, candidates, l1=l1, l2=l2, non_negative=non_negative)
    weights = np.empty(candidates.nnz, dtype=np.float32)
    _compiled(
        np.ascontiguousarray(counts.indptr, dtype=np.int64),
        np.ascontiguousarray(counts.indices, dtype=np.int32),
        np.ascontiguousarray(counts.data, dtype=np.float32),
        np.ascontiguousarray(counts.diagonal(), dtype=np.float32),
        np.ascontiguousarray(candidates.indptr, dtype=np.int64),
        np.ascontiguousarray(candidates.indices, dtype=np.int32),
        l1,
        l2,
        non_negative,
        _TOLERANCE,
        _MOST_SWEEPS,
        weights,
    )
    return weights


def elastic_nets_plainly(
    counts: csr_matrix,
    candidates: csr_matrix,
    *,
    l1: float,
    l2: float,
    non_negative: bool,
) -> np.ndarray:
    """The plain twin: dense systems of many items, a candidate of every item per step."""
    weights = np.zeros(candidates.nnz, dtype=np.float32)
    lengths = np.diff(candidates.indptr)
    # Items with lists of similar length together: the shorter ones are padded.
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(order):
        widths = lengths[order[start:]].astype(np.int64)
        sizes = 4 * np.arange(1, len(widths) + 1) * widths**2
        n_batch = int(np.searchsorted(sizes, _BATCH_BYTES))
        items = order[start : start + max(1, n_batch)]
        systems, targets = _systems_of(counts, candidates, items)
        found = _descend(systems, targets, l1, l2, non_negative=non_negative).numpy()
        for position, item in enumerate(items):
            place = slice(candidates.indptr[item], candidates.indptr[item + 1])
            weights[place] = found[position, : lengths[item]]
        start += len(items)
    return weights


def _systems_of(
    counts: csr_matrix, candidates: csr_matrix, items: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor]:
    """What candidates have in common with each other, and with the item they explain."""
    starts = candidates.indptr[items]
    stops = candidates.indptr[items + 1]
    width = int((stops - starts).max())
    # Candidate, item, candidate: a step of the descent takes one candidate of every item.
    systems = np.zeros((width, len(items), width), dtype=np.float32)
    targets = np.zeros((len(items), width), dtype=np.float32)
    for position, item in enumerate(items):
        chosen = candidates.indices[starts[position] : stops[position]]
        here = slice(0, len(chosen))
        among_chosen = counts[chosen][:, chosen]
        with_item = counts[item, chosen]
        systems[here, position, here] = among_chosen.toarray()
        targets[position, here] = with_item.toarray()[0]
    return torch.from_numpy(systems), torch.from_numpy(targets)


def _descend(
    systems: torch.Tensor, targets: torch.Tensor, l1: float, l2: float, *, non_negative: bool
) -> torch.Tensor:
    """Coordinate descent for many items at once: exact in one weight of each per step."""
    weights = torch.zeros_like(targets)
    # X^T (x - X w), kept up to date.
    slopes = targets.clone()
    for _ in range(_MOST_SWEEPS):
        before = weights.clone()
        for candidate, rows in enumerate(systems):
            squares = rows[:, candidate]
            old = weights[:, candidate]
            pull = slopes[:, candidate] + squares * old
            if non_negative:
                shrunk = (pull - l1).clamp_(min=0.0)
            else:
                shrunk = functional.softshrink(pull, l1)
            new = shrunk / (squares + l2)
            fall = old - new
            slopes.addcmul_(rows, fall[:, None])
            weights[:, candidate] = new
        moves = (weights - before).abs()
        # Without candidates there is nothing to move, nor a largest move.
        if not moves.numel() or float(moves.max()) < _TOLERANCE:
            break
    return weights


def _check(counts: csr_matrix, candidates: csr_matrix) -> None:
    n_items = counts.shape[0]
    for name, matrix in (("counts", counts), ("candidates", candidates)):
        if matrix.format != "csr" or matrix.shape != (n_items, n_items):
            raise ValueError(
                f"`{name}` must be in compressed rows (csr) of shape {(n_items, n_items)}, got "
                f"{matrix.format} of shape {matrix.shape}"
            )
