import torch

from pslrec.backbones import MatrixFactorization
from pslrec.data import Interactions


def test_representations_share_memory_with_the_tables():
    backbone = MatrixFactorization(Interactions.from_ids([1, 2, 2], [5, 5, 6]), dimension=4)
    representations = backbone()
    with torch.no_grad():
        backbone.user_table[0] = 3.0
    assert representations.users[0].tolist() == [3.0] * 4
    assert representations.contrast_users is None


def test_gradient_of_one_user_touches_its_row_alone():
    backbone = MatrixFactorization(Interactions.from_ids([1, 2, 2], [5, 5, 6]), dimension=4)
    users, items, *_ = backbone()
    (users[0] @ items[1]).backward()
    assert torch.equal(backbone.user_table.grad[0], backbone.item_table[1])
    assert backbone.user_table.grad[1].abs().sum() == 0
