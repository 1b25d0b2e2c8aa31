import numpy as np
import pytest
import torch

from matrices import interactions_of
from pslrec.baselines import ImplicitALS, ials
from pslrec.data import Interactions

N_USERS, N_ITEMS = 25, 18


@pytest.fixture(scope="module")
def log() -> Interactions:
    pairs = (
        np.random.default_rng(0).random((N_USERS, N_ITEMS))
        < np.linspace(0.02, 0.7, N_USERS)[:, None]
    )
    return interactions_of(pairs)


def objective(baseline: ImplicitALS, log: Interactions) -> float:
    matrix = torch.from_numpy(log.matrix().toarray())
    users, items = baseline.user_vectors, baseline.item_vectors
    scores = users @ items.T
    fit = (matrix * (1 - scores) ** 2).sum() + baseline.unobserved_weight * (scores**2).sum()
    penalty = 0.0
    for vectors, counts, others in (
        (users, matrix.sum(1), N_ITEMS),
        (items, matrix.sum(0), N_USERS),
    ):
        effect = (counts + baseline.unobserved_weight * others) ** baseline.exponent
        penalty += float(effect @ (vectors**2).sum(1))
    return float(fit) + baseline.regularization * penalty


@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_item_vectors_are_the_minimum_for_the_user_vectors(
    log: Interactions, exponent: float
) -> None:
    baseline = ImplicitALS(
        dimension=4, unobserved_weight=0.2, regularization=0.05, exponent=exponent, epochs=3
    ).fit(log)
    users = baseline.user_vectors.double()
    matrix = torch.from_numpy(log.matrix().toarray()).double()
    for item in range(N_ITEMS):
        taken = users[matrix[:, item] > 0]
        effect = (len(taken) + 0.2 * N_USERS) ** exponent
        system = (
            taken.T @ taken
            + 0.2 * users.T @ users
            + 0.05 * effect * torch.eye(4, dtype=torch.float64)
        )
        expected = torch.linalg.solve(system, taken.sum(0))
        torch.testing.assert_close(
            baseline.item_vectors[item].double(), expected, rtol=1e-4, atol=1e-5
        )


def test_objective_falls_with_every_round(log: Interactions) -> None:
    options = {"dimension": 5, "unobserved_weight": 0.3, "regularization": 0.02}
    values = [
        objective(ImplicitALS(**options, epochs=epochs).fit(log), log) for epochs in range(1, 6)
    ]
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


def test_vectors_do_not_depend_on_the_batches(
    monkeypatch: pytest.MonkeyPatch, log: Interactions
) -> None:
    together = ImplicitALS(dimension=4, epochs=3).fit(log)
    monkeypatch.setattr(ials, "_BATCH_BYTES", 1)
    one_by_one = ImplicitALS(dimension=4, epochs=3).fit(log)
    torch.testing.assert_close(one_by_one.user_vectors, together.user_vectors, rtol=1e-3, atol=1e-5)


def test_another_seed_starts_elsewhere(log: Interactions) -> None:
    first, second = (
        ImplicitALS(dimension=4, epochs=1, seed=seed).fit(log).user_vectors for seed in (0, 1)
    )
    assert not torch.allclose(first, second)


@pytest.mark.parametrize(
    "options",
    [{"unobserved_weight": 0.0}, {"regularization": -1.0}, {"dimension": 0}, {"epochs": 0}],
)
def test_impossible_options_raise(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"`{next(iter(options))}`"):
        ImplicitALS(**options)
