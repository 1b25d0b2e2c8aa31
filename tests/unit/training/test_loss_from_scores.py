"""A loss that knows nothing but scores trains in catalogue mode, or falls back to sampled negatives."""

import logging
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from pslrec.backbones import BACKBONES
from pslrec.config import RunConfig
from pslrec.data import Interactions
from pslrec.data._synthetic import planted_tastes
from pslrec.errors import ConfigError
from pslrec.experiment import run
from pslrec.losses import LOSSES, Loss, register_loss
from pslrec.losses import _catalog as catalog_module
from pslrec.sampling import UserBlocks
from pslrec.training import CatalogObjective, scored_tables


class Hinge(Loss):
    """The example of the documentation, with a parameter of its own."""

    reference = "an example"

    def __init__(self, margin: float = 0.1) -> None:
        super().__init__()
        self.margin = margin
        self.slope = torch.nn.Parameter(torch.tensor(1.0))

    def _pairwise_values(self, positives, negatives, _extras, /) -> Tensor:
        difference = negatives - positives.unsqueeze(1)
        return self.slope * (difference + self.margin).clamp(min=0).mean(dim=1)


class NeedyHinge(Hinge):
    """The same with something that only a batch of pairs has."""

    needs = frozenset({"offsets"})
    default_negatives = 7

    def extra_inputs(self, users, positives, negatives) -> dict[str, Tensor]:
        return {"offsets": torch.zeros(len(users))}

    def _pairwise_values(self, positives, negatives, extras, /) -> Tensor:
        return super()._pairwise_values(positives + extras["offsets"], negatives, {})


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register_loss("test-hinge")(Hinge)
    register_loss("test-needy-hinge")(NeedyHinge)
    yield
    for name in ("test-hinge", "test-needy-hinge"):
        del LOSSES._parts[name]


@pytest.fixture(scope="module")
def train() -> Interactions:
    return planted_tastes(60, 80, seed=5).interactions


SMALL = {"training.epochs": 2, "backbone.dimension": 8, "loss.margin": 0.2}


def written_out(loss: Loss, block, users: Tensor, items: Tensor) -> Tensor:
    owners, pair_items = block.pairs()
    weights, values = block.weights(), []
    for owner, item in zip(owners.tolist(), pair_items.tolist(), strict=True):
        scores = 0.5 * items @ users[owner]
        negatives = scores[weights[owner] > 0].unsqueeze(0)
        values.append(loss.pairwise_values(scores[item].unsqueeze(0), negatives))
    return torch.cat(values).mean()


@pytest.mark.parametrize("largest_piece", [2**24, 200])
@pytest.mark.parametrize("include_positives", [False, True])
def test_values_and_gradients_are_those_of_every_pair(
    train, include_positives, largest_piece, monkeypatch
) -> None:
    monkeypatch.setattr(catalog_module, "LARGEST_PIECE", largest_piece)
    loss = Hinge()
    backbone = BACKBONES["mf"](train, dimension=8)
    blocks = UserBlocks(train, batch_pairs=100, include_positives=include_positives)
    block = next(blocks.epoch(0))
    parameters = [backbone.user_table, backbone.item_table, loss.slope]
    value = CatalogObjective(backbone, loss)(backbone(), block)
    gradients = torch.autograd.grad(value, parameters)
    users, items, _ = scored_tables(backbone(), "half-cosine")
    expected = written_out(loss, block, users[block.users], items)
    truth = torch.autograd.grad(expected, parameters)
    torch.testing.assert_close(value, expected)
    for ours, true in zip(gradients, truth, strict=True):
        torch.testing.assert_close(ours, true, rtol=1e-4, atol=1e-6)


def test_no_more_than_a_piece_is_kept_for_the_way_back(train, monkeypatch) -> None:
    monkeypatch.setattr(catalog_module, "LARGEST_PIECE", 2 * train.n_items)
    loss = Hinge()
    backbone = BACKBONES["mf"](train, dimension=8)
    (block,) = UserBlocks(train, batch_pairs=len(train)).epoch(0)
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        CatalogObjective(backbone, loss)(backbone(), block)
    all_pairs = 4 * len(train) * train.n_items
    assert 0 < sum(kept.values()) < all_pairs / 2


def test_shared_negatives_are_those_that_were_drawn(train) -> None:
    loss = Hinge()
    backbone = BACKBONES["mf"](train, dimension=8)
    block = next(UserBlocks(train, batch_pairs=100, n_shared=20).epoch(0))
    value = CatalogObjective(backbone, loss)(backbone(), block)
    reduced = block.reduced()
    users, items, _ = scored_tables(backbone(), "half-cosine")
    expected = written_out(loss, reduced.block, users[block.users], items[reduced.columns])
    torch.testing.assert_close(value, expected)


def test_it_trains_with_the_defaults_on_the_whole_catalogue(train) -> None:
    config = RunConfig.from_settings({"loss.name": "test-hinge", **SMALL})
    assert config.resolved().sampling.negatives == "auto"
    result = run(config, data=train)
    assert result.config.sampling.negatives == "auto"
    assert torch.isfinite(result.model.user_vectors).all()


def test_what_needs_more_than_scores_falls_back_and_says_so(train, caplog) -> None:
    config = RunConfig.from_settings({"loss.name": "test-needy-hinge", **SMALL})
    with caplog.at_level(logging.INFO):
        result = run(config, data=train)
    assert result.config.sampling.negatives == 7
    (note,) = [record.message for record in caplog.records if "sampled negatives" in record.message]
    assert "needs `offsets` beside the scores and defines no `catalog_values`" in note
    assert "trained with 7 sampled negatives per positive" in note


def test_weighted_negatives_fall_back_and_say_so(train, caplog) -> None:
    settings = {"loss.name": "test-hinge", "sampling.noise.probability": 0.2, **SMALL}
    with caplog.at_level(logging.INFO):
        result = run(RunConfig.from_settings(settings), data=train)
    assert result.config.sampling.negatives == Hinge.default_negatives
    assert "negatives then have weights" in caplog.text


@pytest.mark.parametrize("negatives", ["catalog", "shared:20"])
def test_the_catalogue_is_refused_where_it_was_asked_for(train, negatives) -> None:
    asked = {"sampling.negatives": negatives, **SMALL}
    needy = RunConfig.from_settings({"loss.name": "test-needy-hinge", **asked})
    with pytest.raises(ConfigError, match=r"set `sampling\.negatives` to a number"):
        run(needy, data=train)
    noisy = {"loss.name": "test-hinge", "sampling.noise.probability": 0.2, **asked}
    with pytest.raises(ConfigError, match=r"set `sampling\.negatives` to a number"):
        run(RunConfig.from_settings(noisy), data=train)


def test_equal_weights_are_no_reason_to_refuse() -> None:
    view = catalog_module.CatalogView(
        scores=torch.tensor([[0.5, 0.1, 0.3]]),
        weights=torch.tensor([[0.0, 2.5, 2.5]]),
        users=torch.tensor([4]),
        owners=torch.tensor([0, 0]),
        items=torch.tensor([0, 1]),
    )
    values = view.by_pairs(lambda positives, negatives: negatives.sum(dim=1) - positives)
    np.testing.assert_allclose(values, [-0.1, 0.3], rtol=1e-5)
