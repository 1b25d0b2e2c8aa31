"""SL@K as it was when it had a formula of its own, before top-K weighting took its place.

The numbers were computed by commit 1bf0bd4 from inputs that are written out here. Runs that are stored, and the published
reproduction, were made by that code.
"""

import pytest
import torch

from pslrec.backbones import BACKBONES
from pslrec.data import planted_tastes
from pslrec.losses import LOSSES, CatalogView, Loss, Setup
from pslrec.rows import Rows
from pslrec.sampling import PairBatches, UserBlocks
from pslrec.training import Trainer, TrainingOptions

NAMES = ["sl@k", "sl@3"]
each_name = pytest.mark.parametrize("name", NAMES)
each_weight = pytest.mark.parametrize("is_detached", [False, True])

# Values, and gradients with respect to the positives and to the first one's negatives.
SAMPLED = {
    False: [
        [1.596440159, 0.02446423863, 1.82502843, 2.228984579],
        [-0.9035598412, -2.96975694, -0.4541193224, 0.5947454968],
        [0.1026336337, 1.224548789, 0.05418005968, 0.01014142973, 0.3529932981, 0.7555027901],
    ],
    True: [
        [1.596440159, 0.02446423863, 1.82502843, 2.228984579],
        [-2.5, -2.989431748, -2.372340581, -2.042311408],
        [0.1026336337, 1.224548789, 0.05418005968, 0.01014142973, 0.3529932981, 0.7555027901],
    ],
}
# Values of three positives, and the gradient of two users' scores for six items.
CATALOG = {
    False: [
        [3.910160559, 4.079791364, 2.480454486],
        [
            1.730401769,
            -1.173635652,
            0.1663701126,
            0.03114117659,
            1.083932633,
            4.639828195,
            0.01888141192,
            2.317379095,
            0.9305438478,
            0.2928662715,
            0.009819507133,
            0.07484109228,
        ],
    ],
    True: [
        [3.910160559, 4.079791364, 2.480454486],
        [
            -2.375104061,
            -3.546168056,
            0.1663701126,
            0.03114117659,
            1.083932633,
            4.639828195,
            0.01888141192,
            -1.326952131,
            0.9305438478,
            0.2928662715,
            0.009819507133,
            0.07484109228,
        ],
    ],
}
# First rows of the tables and the first thresholds after four epochs.
TRAINED = {
    "sampled": [
        [-0.06070415, 1.831125, -0.1988339, -0.3321491],
        [1.114299, -0.239422, -0.5739726, 0.4973836],
        [0.3910259, 0.4579872, 0.4822442, 0.4951293],
    ],
    "catalog": [
        [-0.1835639, 1.262139, -0.1688826, -0.6516111],
        [1.43165, 0.01407091, -0.6628091, 0.2440501],
        [0.4587934, 0.4710436, 0.4709766, 0.484136],
    ],
    "shared": [
        [0.04364935, 1.232941, -0.2892403, -0.6933963],
        [1.017255, 0.05415372, -1.007476, 0.2053964],
        [0.437389, 0.4691631, 0.4789456, 0.4978244],
    ],
}


def waves(*shape: int) -> torch.Tensor:
    """Numbers between -1 and 1 that no generator has to give."""
    numbers = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return torch.sin(1.7 * numbers).reshape(shape)


def made(name: str, **options: float | bool) -> Loss:
    if name == "sl@k":
        options["k"] = 3
    return LOSSES[name](temperature=0.2, weight_temperature=0.5, **options)


def assert_same(found: list[torch.Tensor], expected: list[list[float]], rtol: float) -> None:
    for ours, numbers in zip(found, expected, strict=True):
        wanted = torch.tensor(numbers, dtype=torch.float64)
        torch.testing.assert_close(ours.detach().double(), wanted, rtol=rtol, atol=rtol)


@each_name
@each_weight
def test_sampled_values_are_as_before(name, is_detached):
    loss = made(name, detach_weight=is_detached)
    positives = (0.5 * waves(4)).requires_grad_()
    negatives = (0.5 * waves(4, 6)).requires_grad_()
    values = loss.pairwise_values(positives, negatives, threshold=0.3 * waves(4))
    values.sum().backward()
    found = [values, positives.grad, negatives.grad[0]]
    assert_same(found, SAMPLED[is_detached], rtol=1e-8)


@each_name
@each_weight
def test_values_over_the_catalogue_are_as_before(name, is_detached):
    loss = made(name, detach_weight=is_detached)
    history = Rows.from_lists([[0], [1], [2]])
    loss.build(Setup(n_users=3, n_items=6, dimension=4, history=history))
    loss.double()
    loss.thresholds.values.copy_(torch.tensor([0.2, -0.1, 0.05]))
    scores = (0.5 * waves(2, 6)).requires_grad_()
    view = CatalogView(
        scores=scores,
        weights=torch.tensor([[0, 0, 1, 1, 1, 2], [1, 0, 1, 1, 1, 1]], dtype=torch.float64),
        users=torch.tensor([2, 0]),
        owners=torch.tensor([0, 0, 1]),
        items=torch.tensor([0, 1, 1]),
    )
    values = loss.catalog_values(view)
    values.sum().backward()
    assert_same([values, scores.grad.flatten()], CATALOG[is_detached], rtol=1e-8)


class NoStore:
    """Keeps nothing."""

    def load_checkpoint(self) -> None:
        return None

    def save_checkpoint(self, checkpoint: object) -> None: ...

    def save_best(self, backbone: object, epoch: int) -> None: ...


@each_name
@pytest.mark.parametrize("kernels", ["auto", "plain"])
@pytest.mark.parametrize("mode", TRAINED)
def test_training_ends_where_it_did_before(name, mode, kernels):
    train = planted_tastes(30, 40, seed=5).interactions
    backbone = BACKBONES["mf"](train, dimension=4)
    backbone.user_table.data.copy_(waves(30, 4))
    backbone.item_table.data.copy_(waves(40, 4).flip(0))
    loss = made(name, update_every=2)
    loss.build(Setup(train.n_users, train.n_items, dimension=4, history=train.rows))
    if mode == "sampled":
        batches = PairBatches(train, n_negatives=8, batch_pairs=40, seed=1)
    elif mode == "catalog":
        batches = UserBlocks(train, batch_pairs=40, seed=1)
    else:
        batches = UserBlocks(train, batch_pairs=40, n_shared=10, seed=1)
    options = TrainingOptions(epochs=4, learning_rate=0.02, kernels=kernels)
    Trainer(backbone, loss, batches, options=options, store=NoStore()).fit()
    found = [backbone.user_table[0], backbone.item_table[0], loss.thresholds.values[:4]]
    # Rounding alone, which Adam magnifies where a gradient is nearly 0.
    assert_same(found, TRAINED[mode], rtol=1e-4)
