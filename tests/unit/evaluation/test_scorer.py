import numpy as np
import pytest
import torch

from pslrec.evaluation import EmbeddingScorer, Scorer, VectorScorer


def test_embedding_scorer_is_both_kinds_of_scorer() -> None:
    scorer = EmbeddingScorer(torch.ones(3, 2), torch.ones(4, 2))
    assert isinstance(scorer, Scorer)
    assert isinstance(scorer, VectorScorer)
    assert (scorer.n_users, scorer.n_items) == (3, 4)


def test_scores_are_inner_products_without_gradient() -> None:
    users = torch.tensor([[1.0, 2.0], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    scores = EmbeddingScorer(users, torch.tensor([[3.0, 4.0]])).score(np.array([1, 0, 1]))
    assert scores.tolist() == [[4.0], [1 * 3.0 + 2 * 4.0], [4.0]]
    assert scores.dtype == torch.float32
    assert not scores.requires_grad


def test_vectors_of_different_width_raise() -> None:
    with pytest.raises(ValueError, match="same width"):
        EmbeddingScorer(torch.ones(3, 2), torch.ones(4, 3))
