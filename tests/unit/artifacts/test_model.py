"""A model as a value: its vectors score as the loss asked, whatever tables it has."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from pslrec.artifacts import Model, trained_tables
from pslrec.backbones import BACKBONES
from pslrec.data._synthetic import checkerboard


@pytest.fixture
def tables() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        "users": torch.randn(5, 3, generator=generator),
        "items": torch.randn(7, 3, generator=generator),
    }


def test_inner_products_of_the_vectors_are_half_cosines(tables: dict[str, torch.Tensor]) -> None:
    model = Model(tables, "half-cosine")
    cosines = functional.cosine_similarity(tables["users"][:, None], tables["items"][None], dim=2)
    torch.testing.assert_close(model.user_vectors @ model.item_vectors.T, cosines / 2)


def test_inner_products_of_the_vectors_are_those_of_the_tables(
    tables: dict[str, torch.Tensor],
) -> None:
    model = Model(tables, "inner-product")
    assert torch.equal(model.user_vectors, tables["users"])
    assert torch.equal(model.item_vectors, tables["items"])


def test_the_scorer_scores_by_the_vectors(tables: dict[str, torch.Tensor]) -> None:
    model = Model(tables, "half-cosine")
    scores = model.scorer().score(np.array([4, 0]))
    torch.testing.assert_close(scores, model.user_vectors[[4, 0]] @ model.item_vectors.T)


@pytest.mark.parametrize("name", BACKBONES)
def test_a_model_of_a_backbone_has_its_tables_and_leaves_its_mode(name: str) -> None:
    backbone = BACKBONES[name](checkerboard(8, 8).train, dimension=4)
    backbone.train()
    model = Model.of(backbone, "half-cosine")
    assert backbone.training
    for table, expected in trained_tables(backbone).items():
        assert torch.equal(model.tables[table], expected)
        assert not model.tables[table].requires_grad
