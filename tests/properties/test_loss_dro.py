"""PSL as robust BPR (theorem 4.2): the worst case over a KL ball around the uniform negatives against its dual forms.

l_j = log σ(d_j) are the terms of BPR, P is uniform over n items, η the radius. The worst case is found as the constrained
maximum it is, by a solver that knows nothing of the dual.
"""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import brentq, minimize, minimize_scalar

from pslrec.losses import SURROGATES, PairwiseSoftmaxLoss

N_ITEMS = 6
CASES = [
    (surrogate, seed, radius)
    for surrogate in ("tanh", "atan", "relu", "softplus", "exp")
    for seed, radius in ((0, 0.05), (1, 0.3), (2, 0.8))
]
every_case = pytest.mark.parametrize(("surrogate", "seed", "radius"), CASES)


def draw_scores(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    positive = torch.rand(1, generator=generator, dtype=torch.float64) - 0.5
    return positive, torch.rand(1, N_ITEMS, generator=generator, dtype=torch.float64) - 0.5


def bpr_terms(surrogate: str, positive: torch.Tensor, items: torch.Tensor) -> np.ndarray:
    return SURROGATES[surrogate]().log_value(items - positive.unsqueeze(1))[0].numpy()


def divergence(weights: np.ndarray) -> float:
    return float(np.sum(weights * np.log(weights * len(weights))))


def worst_case(terms: np.ndarray, radius: float) -> float:
    """sup of E_Q[l] over all Q with KL(Q || P) <= η; Q = softmax(z) keeps the solver inside the simplex."""

    def weights(logits):
        powers = np.exp(logits - logits.max())
        return powers / powers.sum()

    result = minimize(
        lambda logits: -weights(logits) @ terms,
        np.linspace(-0.01, 0.01, len(terms)),
        constraints={"type": "ineq", "fun": lambda logits: radius - divergence(weights(logits))},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert divergence(weights(result.x)) <= radius + 1e-8
    return -result.fun


def dual(terms: np.ndarray, radius: float, temperature: float) -> float:
    """τ log E_P exp(l/τ) + τ η."""
    scaled = terms / temperature
    return temperature * (math.log(np.mean(np.exp(scaled - scaled.max()))) + scaled.max() + radius)


def best_temperature(terms: np.ndarray, radius: float) -> float:
    """τ(η): where Q ∝ exp(l/τ) has exactly the divergence η."""

    def excess(log_temperature):
        powers = np.exp((terms - terms.max()) / math.exp(log_temperature))
        return divergence(np.maximum(powers / powers.sum(), 1e-300)) - radius

    return math.exp(brentq(excess, -8, 8, xtol=1e-14))


@every_case
def test_worst_case_over_the_ball_equals_the_dual(surrogate, seed, radius):
    terms = bpr_terms(surrogate, *draw_scores(seed))
    result = minimize_scalar(
        lambda x: dual(terms, radius, math.exp(x)),
        bounds=(-8, 8),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert worst_case(terms, radius) == pytest.approx(result.fun, abs=1e-6)


@every_case
def test_psl_at_the_temperature_of_the_radius_gives_the_worst_case_of_bpr(surrogate, seed, radius):
    scores = draw_scores(seed)
    terms = bpr_terms(surrogate, *scores)
    temperature = best_temperature(terms, radius)
    mean_form = PairwiseSoftmaxLoss(surrogate, temperature)(*scores).item() - math.log(N_ITEMS)
    assert temperature * (mean_form + radius) == pytest.approx(worst_case(terms, radius), abs=1e-6)


@every_case
def test_minimising_psl_and_the_worst_case_go_the_same_way(surrogate, seed, radius):
    positive, items = draw_scores(seed)
    temperature = best_temperature(bpr_terms(surrogate, positive, items), radius)
    positive.requires_grad_()
    items.requires_grad_()
    PairwiseSoftmaxLoss(surrogate, temperature)(positive, items).backward()
    step = 1e-4
    for column in range(N_ITEMS):
        ends = []
        for shift in (step, -step):
            moved = items.detach().clone()
            moved[0, column] += shift
            terms = bpr_terms(surrogate, positive.detach(), moved)
            ends.append(dual(terms, radius, best_temperature(terms, radius)))
        slope = (ends[0] - ends[1]) / (2 * step)
        assert slope == pytest.approx(temperature * items.grad[0, column].item(), abs=1e-6)


@every_case
def test_no_distribution_of_the_ball_is_worse_than_the_dual(surrogate, seed, radius):
    terms = bpr_terms(surrogate, *draw_scores(seed))
    bound = dual(terms, radius, best_temperature(terms, radius))
    generator = np.random.default_rng(seed)
    inside = [
        weights
        for weights in generator.dirichlet(np.full(N_ITEMS, 2.0), 2000)
        if divergence(weights) <= radius
    ]
    assert len(inside) > 10
    assert max(float(weights @ terms) for weights in inside) <= bound + 1e-12


@every_case
def test_phi_divergence_theorem_holds_for_kl(surrogate, seed, radius):
    """inf over τ > 0 and μ of E_P[(τφ)*(l - μ)] + τη + μ, with φ(x) = x log x and its conjugate τ exp(y/τ - 1)."""
    terms = bpr_terms(surrogate, *draw_scores(seed))

    def objective(point):
        temperature, mu = math.exp(point[0]), point[1]
        exponents = np.minimum((terms - mu) / temperature - 1, 200)
        return float(np.mean(temperature * np.exp(exponents))) + temperature * radius + mu

    result = minimize(
        objective,
        [0.0, 0.0],
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 5000},
    )
    assert worst_case(terms, radius) == pytest.approx(result.fun, abs=1e-6)
    # The optimal multiplier of the theorem is the temperature of the loss.
    assert math.exp(result.x[0]) == pytest.approx(best_temperature(terms, radius), rel=1e-3)


@pytest.mark.parametrize("temperature", [0.05, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("slope", [-1.0, 0.0, 0.3])
def test_conjugate_of_kl_is_the_exponential(temperature, slope):
    peak = math.exp(slope / temperature - 1)
    result = minimize_scalar(
        lambda x: temperature * x * math.log(x) - slope * x,
        bounds=(1e-300, 4 * peak),
        method="bounded",
        options={"xatol": 1e-12 * peak},
    )
    assert -result.fun == pytest.approx(temperature * peak, rel=1e-8)
