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


def best_rows(matrix: np.ndarray, fixed: np.ndarray, options: dict[str, float]) -> np.ndarray:
    """What a side's vectors are to be, each by a dense system of its own in float64."""
    weight = options["unobserved_weight"]
    n_rows = len(matrix)
    n_others, dimension = fixed.shape
    solved = np.empty((n_rows, dimension))
    for row in range(n_rows):
        taken = fixed[matrix[row] > 0]
        effect = len(taken) + weight * n_others
        penalty = options["regularization"] * effect ** options["exponent"]
        system = taken.T @ taken + weight * fixed.T @ fixed + penalty * np.eye(dimension)
        solved[row] = np.linalg.solve(system, taken.sum(axis=0))
    return solved


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    # Most rows are longer than 2, some are longer than 6, none is longer than 40.
    "dimension",
    [2, 6, 40],
)
def test_vectors_are_those_of_dense_systems(
    log: Interactions, dimension: int, exponent: float
) -> None:
    options = {"unobserved_weight": 0.2, "regularization": 0.05, "exponent": exponent}
    matrix = log.matrix().toarray()
    first, second = (
        ImplicitALS(dimension=dimension, epochs=epochs, **options).fit(log) for epochs in (1, 2)
    )
    users = best_rows(matrix, first.item_vectors.double().numpy(), options)
    items = best_rows(matrix.T, users, options)
    np.testing.assert_allclose(second.user_vectors.numpy(), users, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(second.item_vectors.numpy(), items, rtol=1e-3, atol=1e-5)


def test_a_user_without_interactions_has_no_preference() -> None:
    pairs = np.eye(3, dtype=bool)
    pairs[1] = False
    baseline = ImplicitALS(dimension=4, epochs=2).fit(interactions_of(pairs))
    assert not baseline.user_vectors[1].any()
    assert not baseline.item_vectors[1].any()
    assert baseline.user_vectors[0].any()


@pytest.mark.parametrize("dimension", [5, 40])
def test_objective_falls_with_every_round(log: Interactions, dimension: int) -> None:
    options = {"dimension": dimension, "unobserved_weight": 0.3, "regularization": 0.02}
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


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.5])
def test_a_reference_exponent_keeps_the_sum_of_all_penalties(
    log: Interactions, exponent: float
) -> None:
    options = {"dimension": 4, "unobserved_weight": 0.2, "epochs": 2, "exponent": exponent}
    scaled = ImplicitALS(regularization=0.3, reference_exponent=0.5, **options).fit(log)
    effects = []
    for counts, others in ((log.user_counts(), log.n_items), (log.item_counts(), log.n_users)):
        effects.extend(counts + 0.2 * others)
    factor = sum(effect**0.5 for effect in effects) / sum(effect**exponent for effect in effects)
    plain = ImplicitALS(regularization=0.3 * factor, **options).fit(log)
    torch.testing.assert_close(scaled.item_vectors, plain.item_vectors)
