"""Exact training as a step sees it: the compiled path against the loss written out, on every backbone."""

import pytest
import torch

from pslrec.backbones import BACKBONES
from pslrec.data.synthetic import planted_tastes
from pslrec.errors import ConfigError
from pslrec.losses import LOSSES, BPRLoss, Loss
from pslrec.sampling import UserBlocks
from pslrec.training.catalog_objective import CatalogObjective

EXACT = ("sl", "bsl", "psl-tanh", "psl-atan", "psl-relu", "psl-softplus")


@pytest.fixture(scope="module")
def train():
    return planted_tastes(60, 80, seed=5).interactions


def value_and_gradients(backbone, loss, block):
    backbone.zero_grad()
    noise = torch.Generator().manual_seed(0)
    value = CatalogObjective(backbone, loss)(backbone(noise), block)
    value.backward()
    return float(value.detach()), backbone.user_table.grad.clone(), backbone.item_table.grad.clone()


@pytest.mark.parametrize("backbone", ["mf", "lightgcn", "xsimgcl"])
@pytest.mark.parametrize("loss", EXACT)
def test_compiled_and_plain_path_agree(train, loss, backbone, monkeypatch):
    model, criterion = BACKBONES[backbone](train, dimension=8), LOSSES[loss]()
    block = next(UserBlocks(train, batch_pairs=300).epoch(0))
    compiled = value_and_gradients(model, criterion, block)
    monkeypatch.setattr("pslrec.training.catalog_objective.takes", lambda *_: False)
    plain = value_and_gradients(model, criterion, block)
    assert compiled[0] == pytest.approx(plain[0], rel=1e-5, abs=1e-5)
    for ours, truth in zip(compiled[1:], plain[1:], strict=True):
        torch.testing.assert_close(ours, truth, rtol=1e-3, atol=1e-5 * float(truth.abs().max() + 1))


def test_value_is_the_mean_loss_over_all_negatives(train):
    model, loss = BACKBONES["mf"](train, dimension=8), LOSSES["psl-relu"](temperature=0.25)
    block = next(UserBlocks(train, batch_pairs=200).epoch(0))
    users = torch.nn.functional.normalize(model.user_table.detach()[block.users], dim=1)
    scores = users @ torch.nn.functional.normalize(model.item_table.detach(), dim=1).T / 2
    weights = block.weights()
    each = [
        loss(scores[owner, item].reshape(1), scores[owner, weights[owner] > 0].reshape(1, -1))
        for owner, item in zip(*(part.tolist() for part in block.pairs()), strict=True)
    ]
    value = CatalogObjective(model, loss)(model(), block)
    assert float(value.detach()) == pytest.approx(float(torch.stack(each).mean()), rel=1e-5)


def test_loss_without_a_form_for_the_catalogue_is_refused(train):
    class Unfinished(BPRLoss):
        catalog_values = Loss.catalog_values

        def catalog_form(self):
            return None

    with pytest.raises(ConfigError, match="it defines no `catalog_values`"):
        CatalogObjective(BACKBONES["mf"](train, dimension=8), Unfinished())
