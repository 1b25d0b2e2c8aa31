import numpy as np
import pytest
import torch

from pslrec.backbones import LightGCN
from pslrec.data import Interactions, Vocabulary
from pslrec.errors import ConfigError


@pytest.fixture(scope="module")
def train() -> Interactions:
    users, items = np.nonzero(np.random.default_rng(1).random((10, 8)) < 0.4)
    return Interactions(
        users, items, Vocabulary(np.arange(10), "user"), Vocabulary(np.arange(9), "item")
    )


def adjacency(train: Interactions) -> torch.Tensor:
    """The whole square matrix of users and items, written out."""
    square = torch.zeros(19, 19, dtype=torch.float64)
    for user, item in zip(train.users, train.items, strict=True):
        square[user, 10 + item] = square[10 + item, user] = 1
    degrees = square.sum(dim=1)
    for row in range(19):
        for column in range(19):
            if square[row, column]:
                square[row, column] /= (degrees[row] * degrees[column]).sqrt()
    return square


@pytest.mark.parametrize("layers", [1, 2, 3, 5])
def test_representation_is_the_mean_of_all_layers(train, layers):
    backbone = LightGCN(train, layers=layers, dimension=7).double()
    table = torch.cat([backbone.user_table, backbone.item_table])
    powers = [table]
    for _ in range(layers):
        powers.append(adjacency(train) @ powers[-1])
    users, items, *_ = backbone()
    # The graph's weights are kept in single precision.
    torch.testing.assert_close(
        torch.cat([users, items]), sum(powers) / (layers + 1), rtol=1e-6, atol=1e-6
    )


def test_isolated_item_keeps_a_share_of_its_own_row(train):
    backbone = LightGCN(train, layers=2)
    torch.testing.assert_close(backbone().items[8], backbone.item_table[8] / 3)


def test_two_layers_by_default_as_in_the_paper(train):
    assert LightGCN(train).layers == 2


def test_no_layer_is_refused(train):
    with pytest.raises(ConfigError, match="`layers` must be a whole number of at least 1, got 0"):
        LightGCN(train, layers=0)


def test_backbone_has_no_loss_of_its_own(train):
    backbone = LightGCN(train)
    assert backbone.auxiliary_loss(backbone(), torch.tensor([0]), torch.tensor([0])) is None


def test_training_lowers_the_loss_of_the_batch(train):
    backbone = LightGCN(train, dimension=8)
    optimiser = torch.optim.Adam(backbone.parameters(), lr=0.05)
    labels = torch.from_numpy(train.matrix().toarray())
    values = []
    for _ in range(60):
        users, items, *_ = backbone()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(users @ items.T, labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        values.append(loss.item())
    assert values[-1] < values[0] / 2
