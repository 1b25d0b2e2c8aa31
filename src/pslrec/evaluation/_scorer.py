"""What evaluation and inference ask of a model: scores over all items for some users."""

from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from pslrec.kernels import times_transposed


# Checkable at run time: evaluation asks which of the kinds it was given.
@runtime_checkable
class Scorer(Protocol):
    """Anything that scores every item for a user; higher is better, and only the order counts."""

    @property
    def n_users(self) -> int:
        """Users that can be scored."""

    @property
    def n_items(self) -> int:
        """Items of the catalogue."""

    def score(self, users: np.ndarray) -> Tensor:
        """Scores of every item for some users.

        Args:
            users: their row numbers.

        Returns:
            Shape (len(users), n_items), float32, in a fresh tensor that the caller may overwrite.
        """


@runtime_checkable
class VectorScorer(Scorer, Protocol):
    """A scorer whose scores are inner products, so that callers can compute them in blocks."""

    @property
    def user_vectors(self) -> Tensor:
        """One row per user."""

    @property
    def item_vectors(self) -> Tensor:
        """One row per item."""


@runtime_checkable
class AddingScorer(Scorer, Protocol):
    """A scorer that adds something to inner products, which callers can compute in blocks."""

    @property
    def vectors(self) -> VectorScorer:
        """What gives the inner products."""

    def add_to(self, scores: Tensor, users: np.ndarray) -> None:
        """Add the rest to the inner products of some users, in place.

        Args:
            scores: one row per user, float32.
            users: their row numbers.
        """


class EmbeddingScorer:
    """Inner products of user and item vectors.

    For cosine scores pass vectors of length 1: the order is the same, and so is every metric.

    Args:
        user_vectors: one row per user.
        item_vectors: one row per item, as wide as those of the users.

    >>> items = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    >>> scorer = EmbeddingScorer(torch.eye(2), items)
    >>> scorer.score(np.array([1]))
    tensor([[0.0000, 0.5000, 1.0000]])
    """

    def __init__(self, user_vectors: Tensor, item_vectors: Tensor) -> None:
        are_matrices = user_vectors.ndim == 2 and item_vectors.ndim == 2
        if not are_matrices or user_vectors.shape[1] != item_vectors.shape[1]:
            raise ValueError(
                "`user_vectors` and `item_vectors` must be matrices of the same width, "
                f"got shapes {tuple(user_vectors.shape)} and {tuple(item_vectors.shape)}"
            )
        # Contiguous once, rather than copied by every product.
        self.user_vectors = user_vectors.detach().to(torch.float32).contiguous()
        self.item_vectors = item_vectors.detach().to(torch.float32).contiguous()

    @property
    def n_users(self) -> int:
        """Users that can be scored."""
        return len(self.user_vectors)

    @property
    def n_items(self) -> int:
        """Items of the catalogue."""
        return len(self.item_vectors)

    def score(self, users: np.ndarray) -> Tensor:
        """Scores of the users, one row each."""
        rows = torch.from_numpy(np.asarray(users, dtype=np.int64))
        vectors = self.user_vectors[rows]
        scores = vectors.new_empty((len(vectors), len(self.item_vectors)))
        return times_transposed(vectors, self.item_vectors, out=scores)
