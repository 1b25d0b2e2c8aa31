"""Walks: a part of a model that counts which items people have together, beside its vectors.

Vectors of a few dimensions tell which region of a large catalogue somebody likes, but not which of a
hundred similar items. Walks tell just that. A regression may stand beside them, which also knows what an
item adds to what the others say already.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from pslrec.artifacts._format import FORMAT_WITH_WALKS, ArtifactError
from pslrec.baselines import walk_matrix
from pslrec.data import Interactions
from pslrec.evaluation import EmbeddingScorer
from pslrec.files import read_tensors, read_text, write_tensors
from pslrec.kernels import add_sparse_product
from pslrec.rows import Rows

WALKS_FILE = "walks.safetensors"
LARGEST_WEIGHT = 1e6
# What a file's matrix is made of.
_WALKS, _WITH_REGRESSION = "walks", "walks and a regression"
# Of scores of all items, where only those of some pairs are asked for.
BYTES_AT_ONCE = 64 * 2**20


# Without `eq`: comparing matrices gives no single truth value.
@dataclass(frozen=True, eq=False)
class Walks:
    """Adds to the score of each item what the items of the history say about it.

    This is the probability that a random walk from the history ends there.

    A walk starts at one of the user's items, goes to somebody who has it, and on to another item of
    theirs; `pslrec.baselines.walk_matrix` says how steps are weighed. The probabilities of a user
    sum up to 1. A regression may stand beside them: then the mean of its weights over all items of
    the history is added as well, and walks are the mean over all items, too.

    Args:
        matrix: from item to item, each row with a sum of 1, or empty where a walk cannot go on; with
            a regression, the weighted sum of both.
        weight: what a probability of 1 adds to a score; 1 with a regression, as `matrix` has the
            weights then.
        columns: the item that each column of scores stands for, where these are not all items in
            order.
        has_regression: whether there is a regression in `matrix`.

    >>> matrix = csr_matrix([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> scores = torch.zeros(1, 3)
    >>> Walks(matrix, weight=8.0).add_to(scores, Rows.from_lists([[0, 1]]))
    >>> scores
    tensor([[4., 2., 2.]])
    """

    matrix: csr_matrix
    weight: float
    columns: np.ndarray | None = None
    has_regression: bool = False

    @classmethod
    def fit(
        cls,
        interactions: Interactions,
        *,
        weight: float,
        neighbours: int,
        transition_exponent: float,
        popularity_exponent: float,
    ) -> Self:
        """Count walks.

        Args:
            interactions: the training pairs.
            weight: what a probability of 1 adds to a score.
            neighbours: items that a walk can lead to from each item, the likeliest ones.
            transition_exponent: below 1, rare and frequent steps are evened out.
            popularity_exponent: how much popular items count less as the end of a walk.
        """
        matrix = walk_matrix(
            interactions,
            neighbours=neighbours,
            transition_exponent=transition_exponent,
            popularity_exponent=popularity_exponent,
            normalize=True,
        )
        return cls(matrix.astype(np.float32), weight)

    @classmethod
    def none(cls, n_items: int) -> Self:
        """No walks, to which a regression may be added.

        Args:
            n_items: of the catalogue.
        """
        return cls(csr_matrix((n_items, n_items), dtype=np.float32), 0.0)

    def beside(self, regression: csr_matrix, weight: float) -> "Walks":
        """These walks, whose own weight may be 0, and a regression.

        Args:
            regression: its weights from item to item, as of `pslrec.baselines.regression_matrix`.
            weight: what a mean of 1 over the history adds to a score.
        """
        both = self.weight * self.matrix + weight * regression
        both = both.astype(np.float32)
        both.eliminate_zeros()
        return replace(self, matrix=both, weight=1.0, has_regression=True)

    def add_to(self, scores: Tensor, histories: Rows, *, chosen: np.ndarray | None = None) -> None:
        """Add what the histories say to scores, in place.

        Args:
            scores: one row per history, float32.
            histories: the items that walks start from.
            chosen: which columns these scores are of; all by default.
        """
        columns = self.columns
        if columns is None:
            columns = chosen
        elif chosen is not None:
            columns = columns[chosen]
        add_sparse_product(scores.numpy(), self._started(histories), self.matrix, columns=columns)

    def of_pairs(self, histories: Rows, owners: np.ndarray, items: np.ndarray) -> Tensor:
        """What is added to the score of each pair.

        Args:
            histories: the items that walks start from, one list per user.
            owners: the place of each pair's user among the histories.
            items: the item of each pair.
        """
        if self.columns is not None:
            items = self.columns[items]
        n_items = self.matrix.shape[1]
        added = np.zeros(len(items), dtype=np.float32)
        n_rows = max(BYTES_AT_ONCE // (4 * n_items), 1)
        for first in range(0, len(histories), n_rows):
            some = histories.select(np.arange(first, min(first + n_rows, len(histories))))
            ends = np.zeros((len(some), n_items), dtype=np.float32)
            add_sparse_product(ends, self._started(some), self.matrix)
            is_here = (owners >= first) & (owners < first + len(some))
            added[is_here] = ends[owners[is_here] - first, items[is_here]]
        return torch.from_numpy(added)

    def _started(self, histories: Rows) -> csr_matrix:
        """Where walks begin: the weight of each history, divided among its items."""
        # A regression is a mean over all items, so that a weight is the same whatever stands beside it.
        goes_on = (np.diff(self.matrix.indptr) > 0) | self.has_regression
        lengths = np.diff(histories.offsets)
        owners = np.repeat(np.arange(len(histories)), lengths)
        # Not the number of items: from some of them no walk goes on.
        n_starts = np.bincount(owners[goes_on[histories.items]], minlength=len(histories))
        shares = (self.weight / np.maximum(n_starts, 1)).astype(np.float32)
        parts = (np.repeat(shares, lengths), histories.items, histories.offsets)
        return csr_matrix(parts, shape=(len(histories), self.matrix.shape[0]))

    def of_items(self, items: np.ndarray) -> "Walks":
        """The same walks for scores with other columns, several of which may be the same item.

        Args:
            items: the item that each column stands for.
        """
        return replace(self, columns=items)

    def write(self, path: Path) -> None:
        """Write `walks.safetensors`.

        Args:
            path: directory of the run.
        """
        tensors = {
            "offsets": torch.from_numpy(self.matrix.indptr.astype(np.int64)),
            "items": torch.from_numpy(self.matrix.indices.astype(np.int32)),
            "probabilities": torch.from_numpy(self.matrix.data),
        }
        kind = _WITH_REGRESSION if self.has_regression else _WALKS
        metadata = {"weight": repr(self.weight), "kind": kind}
        write_tensors(path / WALKS_FILE, tensors, metadata, error=ArtifactError)

    @classmethod
    def read(cls, path: Path, *, n_items: int) -> Self | None:
        """Read the walks of a run; `None` if it has none.

        Args:
            path: directory of the run.
            n_items: of its catalogue.
        """
        file = path / WALKS_FILE
        if not file.exists():
            if read_text(path / "format", error=ArtifactError).strip() == FORMAT_WITH_WALKS:
                raise ArtifactError(
                    f"the run in {path} has walks, and {WALKS_FILE} is missing; copy it from where "
                    "the run was trained, or train again"
                )
            return None
        tensors, metadata = read_tensors(file, error=ArtifactError)
        try:
            weight = float(metadata["weight"])
            # Of runs that were written before there were regressions.
            kind = metadata.get("kind", _WALKS)
            parts = (
                tensors["probabilities"].numpy(),
                tensors["items"].numpy(),
                tensors["offsets"].numpy(),
            )
            matrix = csr_matrix(parts, shape=(n_items, n_items))
            matrix.check_format(full_check=True)
            matrix.eliminate_zeros()
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"{file} must hold walks over {n_items} items: {error}") from error
        has_regression = kind == _WITH_REGRESSION
        is_sound = np.isfinite(matrix.data).all()
        if not has_regression:
            is_sound &= _has_probabilities(matrix)
        if not is_sound or not 0 < weight <= LARGEST_WEIGHT:
            raise ArtifactError(
                f"{file} must hold probabilities that sum up to 1, or a regression of finite numbers, "
                f"and a weight above 0 of at most {LARGEST_WEIGHT:g}"
            )
        return cls(matrix.astype(np.float32), weight, has_regression=has_regression)


def _has_probabilities(matrix: csr_matrix) -> bool:
    sums = matrix.sum(axis=1).A1
    are_whole = np.isclose(sums, 1.0, atol=1e-3) | (sums == 0)
    return bool((matrix.data >= 0).all() and are_whole.all())


class WalkingScorer:
    """Inner products of vectors, and walks from the users' histories added to them.

    Args:
        vectors: scores without walks.
        walks: what is added.
        histories: the items of each user.
    """

    # Not one of vectors: whoever computes its scores from vectors alone would leave the walks out.

    def __init__(self, vectors: EmbeddingScorer, walks: Walks, histories: Rows) -> None:
        self.vectors = vectors
        self.walks = walks
        self.histories = histories

    @property
    def n_users(self) -> int:
        """Users that can be scored."""
        return self.vectors.n_users

    @property
    def n_items(self) -> int:
        """Items of the catalogue."""
        return self.vectors.n_items

    def score(self, users: np.ndarray) -> Tensor:
        """Scores of the users, one row each."""
        scores = self.vectors.score(users)
        self.add_to(scores, users)
        return scores

    def add_to(self, scores: Tensor, users: np.ndarray) -> None:
        """Add the walks of some users to the inner products of their vectors, in place."""
        self.walks.add_to(scores, self.histories.select(np.asarray(users)))
