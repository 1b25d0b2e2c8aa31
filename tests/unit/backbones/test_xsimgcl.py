import math

import numpy as np
import pytest
import torch

from pslrec.backbones import Representations, XSimGCL
from pslrec.backbones.xsimgcl import info_nce, perturbed
from pslrec.data import Interactions, Vocabulary
from pslrec.errors import ConfigError
from pslrec.kernels._row_noise import row_noise_plainly

N_USERS, N_ITEMS = 10, 9


@pytest.fixture(scope="module")
def train() -> Interactions:
    users, items = np.nonzero(np.random.default_rng(1).random((N_USERS, N_ITEMS - 1)) < 0.4)
    return Interactions(
        users, items, Vocabulary(np.arange(N_USERS), "user"), Vocabulary(np.arange(N_ITEMS), "item")
    )


def naive_layers(
    backbone: XSimGCL, train: Interactions, seed: int | None
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The formula written out with a dense matrix, one entry at a time for the noise."""
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    ratings = torch.from_numpy(train.matrix().toarray())
    matrix = (
        ratings / (ratings.sum(1, keepdim=True) * ratings.sum(0, keepdim=True)).clamp_min(1).sqrt()
    )
    users, items = backbone.user_table.detach(), backbone.item_table.detach()
    layers = []
    for _ in range(backbone.layers):
        users, items = matrix @ items, matrix.T @ users
        if generator is not None:
            for table in (users, items):
                noise = row_noise_plainly(
                    table, int(torch.randint(2**63 - 1, (), generator=generator)), backbone.noise
                )
                for row in range(len(table)):
                    for column in range(table.shape[1]):
                        sign = float(table[row, column] > 0) - float(table[row, column] < 0)
                        table[row, column] += sign * noise[row, column]
        layers.append((users.clone(), items.clone()))
    return layers


def naive_info_nce(first: torch.Tensor, second: torch.Tensor, temperature: float) -> float:
    def cosine(left: torch.Tensor, right: torch.Tensor) -> float:
        return float(left @ right / (left.norm() * right.norm()))

    terms = []
    for anchor in range(len(first)):
        scores = [math.exp(cosine(first[anchor], other) / temperature) for other in second]
        terms.append(-math.log(scores[anchor] / sum(scores)))
    return sum(terms) / len(terms)


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize(("layers", "contrast_layer"), [(3, 1), (2, 2), (1, 1)])
def test_layers_follow_the_formula(train, seed, layers, contrast_layer):
    backbone = XSimGCL(train, dimension=6, layers=layers, contrast_layer=contrast_layer, noise=0.3)
    expected = naive_layers(backbone, train, seed)
    representations = backbone(None if seed is None else torch.Generator().manual_seed(seed))
    for side, (mean, contrast) in enumerate(
        zip(representations[:2], representations[2:], strict=True)
    ):
        torch.testing.assert_close(
            mean, sum(layer[side] for layer in expected) / layers, rtol=1e-4, atol=1e-5
        )
        torch.testing.assert_close(
            contrast, expected[contrast_layer - 1][side], rtol=1e-4, atol=1e-5
        )


def test_layer_zero_is_not_in_the_mean(train):
    backbone = XSimGCL(train, layers=1)
    assert (
        backbone().items[N_ITEMS - 1].abs().sum() == 0
    )  # an item without pairs has only its layer 0


@pytest.mark.parametrize("unique", [False, True])
def test_contrast_equals_a_naive_loop(train, unique):
    backbone = XSimGCL(train, dimension=6, unique_contrast=unique)
    with torch.no_grad():
        representations = backbone(torch.Generator().manual_seed(0))
    users, items = torch.tensor([3, 1, 3, 0, 3]), torch.tensor([2, 2, 0, 1, 4])
    loss = backbone.auxiliary_loss(representations, users, items)
    kept_users, kept_items = (
        sorted(set(rows.tolist())) if unique else rows for rows in (users, items)
    )
    expected = 0.2 * (
        naive_info_nce(
            representations.users[kept_users], representations.contrast_users[kept_users], 0.1
        )
        + naive_info_nce(
            representations.items[kept_items], representations.contrast_items[kept_items], 0.1
        )
    )
    assert loss.item() == pytest.approx(expected, rel=1e-4)


def test_duplicates_in_the_batch_are_negatives_of_each_other(train):
    backbone = XSimGCL(train, dimension=6)
    view = torch.randn(4, 6)
    rows = torch.tensor([1, 1])
    loss = backbone.auxiliary_loss(Representations(view, view, view, view), rows, rows)
    assert loss.item() == pytest.approx(0.2 * 2 * math.log(2), rel=1e-5)


def test_contrast_gradient_passes_the_numerical_check():
    first, second = (torch.randn(5, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(
        lambda left, right: info_nce(left, right, temperature=0.3), (first, second)
    )


def test_noise_has_the_length_asked_for_and_follows_gaussian_directions():
    table = torch.randn(4000, 16).sign()
    noise = (
        perturbed(table.clone(), 0.1, torch.Generator().manual_seed(0)) - table
    ) * table  # the signs are undone
    torch.testing.assert_close(noise.norm(dim=1), torch.full((4000,), 0.1), rtol=1e-4, atol=1e-4)
    assert noise.mean().abs() < 1e-3
    # On the sphere of radius r in d dimensions an entry has variance r^2 / d.
    torch.testing.assert_close(noise.var(), torch.tensor(0.01 / 16), rtol=0.02, atol=0)


def test_noise_has_no_gradient_of_its_own(train):
    table = torch.randn(5, 4, requires_grad=True)
    weights = torch.randn(5, 4)
    (perturbed(table.clone(), 0.1, torch.Generator().manual_seed(0)) * weights).sum().backward()
    torch.testing.assert_close(table.grad, weights)


def test_noise_moves_the_representations_and_differs_between_steps(train):
    backbone = XSimGCL(train)
    generator = torch.Generator().manual_seed(0)
    plain, first, second = backbone(), backbone(generator), backbone(generator)
    assert not torch.equal(plain.users, first.users)
    assert not torch.equal(first.users, second.users)


def test_magnitude_zero_switches_the_noise_off(train):
    backbone = XSimGCL(train, noise=0.0)
    assert torch.equal(backbone().users, backbone(torch.Generator().manual_seed(0)).users)


def test_defaults_are_those_of_the_paper(train):
    options = XSimGCL(train).options()
    assert options == {
        "dimension": 64,
        "initialization": None,
        "layers": 3,
        "noise": 0.1,
        "contrast_layer": 1,
        "contrast_temperature": 0.1,
        "contrast_weight": 0.2,
        "unique_contrast": False,
    }


def test_table_starts_xavier_uniform_by_default(train):
    bound = math.sqrt(6 / (N_USERS + 64))
    table = XSimGCL(train).user_table
    assert 0.9 * bound < table.abs().max() <= bound


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": 0}, "`layers`"),
        ({"noise": -0.1}, "`noise` must be a finite number of at least 0"),
        ({"noise": math.nan}, "`noise`"),
        ({"contrast_layer": 4}, "`contrast_layer` must be a whole number of at most 3, got 4"),
        ({"contrast_layer": 0}, "`contrast_layer`"),
        (
            {"contrast_temperature": 0.0},
            "`contrast_temperature` must be positive, got 0.0",
        ),
        ({"contrast_weight": -1.0}, "`contrast_weight`"),
    ],
)
def test_impossible_options_are_refused(train, options, message):
    with pytest.raises(ConfigError, match=message):
        XSimGCL(train, **options)


def test_contrast_without_views_is_refused(train):
    backbone = XSimGCL(train)
    with pytest.raises(ValueError, match="`representations` must hold contrast views"):
        backbone.auxiliary_loss(
            Representations(*backbone()[:2]), torch.tensor([0]), torch.tensor([0])
        )
