"""The exact loss in torch against the formula in double precision, value and gradients."""

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pslrec.forms import FusedForm
from pslrec.kernels import CatalogLists, PositiveWeighting, TorchPass, torch_catalog_value
from pslrec.rows import Rows

N_ITEMS = 400
DIMENSION = 8
COUNTS = (0, 1, 2, 5, 8, 9, 12, 17, 30, 60, 90, 150)
# Of a gradient, relative to its length.
TOLERANCE = 2e-5

SURROGATES: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp,
    "tanh": lambda d: 2 * torch.sigmoid(2 * d),
    "atan": lambda d: (1 + torch.atan(d)).clamp(min=1e-7),
    "relu": lambda d: (1 + d).clamp(min=1e-7),
    "softplus": lambda d: 1 + torch.exp(d),
}


def ragged(random: np.random.Generator, counts: Any) -> Rows:
    return Rows.from_lists([random.choice(N_ITEMS, count, replace=False) for count in counts])


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(4)


@pytest.fixture(params=["taken", "include-positives", "noise"])
def lists(request: pytest.FixtureRequest, random: np.random.Generator) -> CatalogLists:
    positives = ragged(random, COUNTS)
    owners = random.permutation(len(COUNTS))
    if request.param == "include-positives":
        return CatalogLists(owners, positives, Rows.empty(len(COUNTS)), N_ITEMS)
    if request.param == "taken":
        return CatalogLists(owners, positives, positives, N_ITEMS)
    # All of them are taken, as in a `NegativePool`; one user has none.
    false_negatives = ragged(random, [0, *[3] * (len(COUNTS) - 1)])
    taken = positives.merged(false_negatives)
    return CatalogLists(owners, positives, taken, N_ITEMS, false_negatives, 0.3)


def vectors(random: np.random.Generator, spread: str) -> tuple[Tensor, Tensor]:
    """Users and items of length 1, all over the sphere or in two clusters that lie far apart."""
    users = random.standard_normal((len(COUNTS), DIMENSION))
    items = random.standard_normal((N_ITEMS, DIMENSION))
    if spread == "clusters":
        users[:, 0] += 8
        items[:, 0] += np.where(random.random(N_ITEMS) < 0.5, 20, -20)
    users /= np.linalg.norm(users, axis=1, keepdims=True)
    items /= np.linalg.norm(items, axis=1, keepdims=True)
    return torch.from_numpy(users), torch.from_numpy(items)


def dense_weights(lists: CatalogLists) -> Tensor:
    weights = torch.ones(len(lists.owners), N_ITEMS, dtype=torch.float64)
    weights[lists.taken.positions(lists.owners)] = 0
    if lists.false_negatives is not None:
        n_plain = weights.sum(dim=1)
        for row, owner in enumerate(lists.owners):
            own = lists.false_negatives.list_of(owner)
            share = lists.noise / (1 - lists.noise)
            weights[row, own] = share * n_plain[row] / max(len(own), 1)
    return weights


def truth(
    users: Tensor,
    items: Tensor,
    lists: CatalogLists,
    form: FusedForm,
    scale: float,
    weighting: PositiveWeighting | None = None,
) -> Tensor:
    """Every positive against every negative, as the formula says."""
    scores = scale * users @ items.T
    owners, columns = lists.positives.positions(lists.owners)
    weights = dense_weights(lists)[owners]
    own = scores[owners, columns]
    differences = scores[owners] - own.unsqueeze(1)
    if form.kind == "inside":
        inside = SURROGATES[form.surrogate](form.exponent * differences)
        return (weights * inside).sum(dim=1).log().sum()
    sigma = SURROGATES[form.surrogate](differences)
    if form.kind == "mean":
        return ((weights * sigma.log()).sum(dim=1) / weights.sum(dim=1)).sum()
    values = (weights * sigma**form.exponent).sum(dim=1).log()
    if weighting is None:
        return values.sum()
    values = values + np.log(weighting.draws) - weights.sum(dim=1).log()
    return (weighting.weigh(own, torch.from_numpy(owners)) * values).sum()


def with_gradients(value: Callable[..., Tensor], *tables: Tensor) -> list[Tensor]:
    leaves = [table.clone().requires_grad_() for table in tables]
    total = value(*leaves)
    return [total.detach(), *torch.autograd.grad(total, leaves)]


def assert_near(ours: list[Tensor], exact: list[Tensor], tolerance: float = TOLERANCE) -> None:
    for found, wanted in zip(ours, exact, strict=True):
        assert found.dtype == torch.float32
        assert (found - wanted).norm() <= tolerance * wanted.norm()


FORMS = [
    FusedForm("log-sum", "exp", 10.0),
    FusedForm("log-sum", "tanh", 10.0),
    FusedForm("log-sum", "tanh", 4.3),
    FusedForm("log-sum", "tanh", 200.0),
    FusedForm("log-sum", "atan", 1.0),
    FusedForm("log-sum", "atan", 10.0),
    FusedForm("log-sum", "softplus", 20.0),
    FusedForm("log-sum", "relu", 10.0),
    FusedForm("log-sum", "relu", 200.0),
    FusedForm("log-sum", "relu", 7.3),
    FusedForm("log-sum", "relu", 1.5),
    FusedForm("inside", "tanh", 40.0),
    FusedForm("inside", "softplus", 40.0),
    FusedForm("inside", "relu", 10.0),
    FusedForm("inside", "atan", 1.2),
    FusedForm("mean", "softplus"),
]


def scale_of(form: FusedForm) -> float:
    # BPR is for inner products, which are not bounded.
    return 9.0 if form.kind == "mean" else 0.5


@pytest.mark.parametrize("spread", ["sphere", "clusters"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_value_and_gradients_are_those_of_the_formula(
    form: FusedForm, spread: str, lists: CatalogLists, random: np.random.Generator
) -> None:
    users, items = vectors(random, spread)
    scale = scale_of(form)
    exact = with_gradients(lambda u, v: truth(u, v, lists, form, scale), users, items)
    ours = with_gradients(
        lambda u, v: torch_catalog_value(u, v, lists, form, scale=scale),
        users.float(),
        items.float(),
    )
    assert_near(ours, exact)


@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("form", [FORMS[0], FORMS[1], FORMS[7]], ids=lambda form: form.surrogate)
def test_weights_of_positives_and_their_own_gradient(
    form: FusedForm, detach: bool, lists: CatalogLists, random: np.random.Generator
) -> None:
    thresholds = torch.linspace(-0.1, 0.2, len(COUNTS), dtype=torch.float64)

    def weigh(scores: Tensor, owners: Tensor) -> Tensor:
        if detach:
            scores = scores.detach()
        return torch.sigmoid((scores - thresholds.to(scores.dtype)[owners]) / 0.3)

    weighting = PositiveWeighting(weigh, 1000)
    users, items = vectors(random, "sphere")
    exact = with_gradients(lambda u, v: truth(u, v, lists, form, 0.5, weighting), users, items)
    ours = with_gradients(
        lambda u, v: torch_catalog_value(u, v, lists, form, scale=0.5, weighting=weighting),
        users.float(),
        items.float(),
    )
    assert_near(ours, exact)


@pytest.mark.parametrize("form", [FORMS[0], FORMS[1], FORMS[7]], ids=lambda form: form.surrogate)
def test_the_budget_does_not_change_the_result(
    form: FusedForm, lists: CatalogLists, random: np.random.Generator
) -> None:
    users, items = (table.float() for table in vectors(random, "sphere"))
    results = []
    for budget in (1, 20 * 4 * N_ITEMS, 2**28):
        how = TorchPass(budget=budget)
        results.append(
            with_gradients(
                lambda u, v, how=how: torch_catalog_value(u, v, lists, form, scale=0.5, how=how),
                users,
                items,
            )
        )
    for other in results[1:]:
        assert_near(other, results[0], 1e-6)


@pytest.mark.parametrize("form", [FORMS[0], FORMS[1], FORMS[7]], ids=lambda form: form.surrogate)
def test_products_of_bfloat16_are_near_and_not_the_same(
    form: FusedForm, lists: CatalogLists, random: np.random.Generator
) -> None:
    users, items = vectors(random, "sphere")
    exact = with_gradients(lambda u, v: truth(u, v, lists, form, 0.5), users, items)
    how = TorchPass("bfloat16")
    ours = with_gradients(
        lambda u, v: torch_catalog_value(u, v, lists, form, scale=0.5, how=how),
        users.float(),
        items.float(),
    )
    assert_near(ours, exact, 0.03)
    assert (ours[1] - exact[1]).norm() > 1e-4 * exact[1].norm()


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_score_that_is_no_number_shows_in_the_value(
    form: FusedForm, random: np.random.Generator
) -> None:
    positives = ragged(random, COUNTS)
    lists = CatalogLists(np.arange(len(COUNTS)), positives, positives, N_ITEMS)
    users, items = (table.float() for table in vectors(random, "sphere"))
    users[-1] = torch.nan
    assert torch.isnan(torch_catalog_value(users, items, lists, form, scale=0.5))


def test_a_block_without_positives_has_no_loss() -> None:
    lists = CatalogLists(np.arange(2), Rows.empty(2), Rows.empty(2), 3)
    users = torch.ones(2, 4, requires_grad=True)
    value = torch_catalog_value(users, torch.ones(3, 4), lists, FORMS[0], scale=0.5)
    assert value == 0
    (gradient,) = torch.autograd.grad(value, users)
    assert not gradient.any()


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["tanh", "atan", "softplus"])
def test_compiled_terms_are_the_same(surrogate: str, random: np.random.Generator) -> None:
    if shutil.which("c++") is None:
        pytest.skip("torch.compile needs a C++ compiler for the processor")
    positives = ragged(random, COUNTS)
    lists = CatalogLists(np.arange(len(COUNTS)), positives, positives, N_ITEMS)
    form = FusedForm("log-sum", surrogate, 10.0)
    users, items = (table.float() for table in vectors(random, "sphere"))
    found = []
    for compiles in (False, True):
        how = TorchPass(compile=compiles)
        found.append(
            with_gradients(
                lambda u, v, how=how: torch_catalog_value(u, v, lists, form, scale=0.5, how=how),
                users,
                items,
            )
        )
    assert_near(found[1], found[0], 1e-6)
