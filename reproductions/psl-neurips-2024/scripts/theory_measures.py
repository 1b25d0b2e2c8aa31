"""The paper's theory in numbers, on the scores of a trained model."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from model_scores import UserScores
from scipy.optimize import minimize_scalar
from torch import Tensor

from pslrec.losses import SURROGATES, Surrogate

# Tightest first where d is large; the last two lie above exp.
SHOWN = ("tanh", "atan", "relu", "exp", "softplus", "exp-exp")
HARDEST, ABOVE = "hardest 1 %", "above the positive"
NEGLIGIBLE = 1e-12


def loss_name(surrogate: str) -> str:
    """The name of the loss with this surrogate.

    >>> loss_name("exp"), loss_name("relu")
    ('SL', 'PSL-relu')
    """
    return "SL" if surrogate == "exp" else f"PSL-{surrogate}"


def bounds(user: UserScores, temperature: float) -> dict[str, float]:
    """-log DCG + log |P| of a user and everything that bounds it from above, sums over all items as the paper prints them.

    Args:
        user: the scores.
        temperature: τ of the losses.
    """
    activations = {name: SURROGATES[name]() for name in SHOWN}
    ranks: list[Tensor] = []
    sums = dict.fromkeys(SHOWN, 0.0)
    for differences in user.differences():
        ranks.append((differences >= 0).sum(dim=1))
        for name, activation in activations.items():
            sums[name] += float(
                torch.logsumexp(activation.log_value(differences) / temperature, dim=1).sum()
            )
    rank, n_positives = torch.cat(ranks).double(), len(user.positives)
    return {
        "dcg": -math.log(float((1 / torch.log2(1 + rank)).sum())) + math.log(n_positives),
        "mrr": -math.log(float((1 / rank).mean())),
        "mean_log_rank": float(rank.log().mean()),
        **{loss_name(name): total / n_positives for name, total in sums.items()},
    }


class Robustness(NamedTuple):
    """Theorem 4.2 for one positive: PSL at a temperature as the worst case of BPR over a ball of distributions.

    Args:
        radius: η, how far in KL the distribution that PSL weights by is from uniform, in nats.
        n_effective: as many negatives, all alike, would have that distribution's entropy.
        worst_case: the mean BPR term under that distribution.
        dual: the minimum over all temperatures of τ log E exp(l/τ) + τη, found without knowing the temperature.
        temperature: where that minimum is; the theorem says that it is the loss's own.
    """

    radius: float
    n_effective: float
    worst_case: float
    dual: float
    temperature: float


def robustness(differences: Tensor, surrogate: str, temperature: float) -> Robustness:
    """What the DRO theorem says about one positive, and what an independent minimisation finds.

    Args:
        differences: score of every item minus that of the positive.
        surrogate: name of σ.
        temperature: τ.
    """
    terms = SURROGATES[surrogate]().log_value(differences)
    n_items = len(terms)
    log_weights = torch.log_softmax(terms / temperature, dim=0)
    weights = log_weights.exp()
    radius = float((weights * (log_weights + math.log(n_items))).sum())

    def dual(log_temperature: float) -> float:
        scale = math.exp(log_temperature)
        return scale * (float(torch.logsumexp(terms / scale, dim=0)) - math.log(n_items) + radius)

    found = minimize_scalar(
        dual, bounds=(math.log(1e-3), math.log(10.0)), method="bounded", options={"xatol": 1e-9}
    )
    worst = float((weights * terms).sum())
    return Robustness(
        radius, n_items * math.exp(-radius), worst, float(found.fun), math.exp(float(found.x))
    )


class Share(NamedTuple):
    """How much of the gradient goes to a group of negatives, and how large the group is, both unnormalised.

    Args:
        weight: sum of the gradient's weights over the group.
        of_weight: over all negatives.
        number: how often negatives of the group are drawn.
        of_number: how often any are.
    """

    weight: float
    of_weight: float
    number: float
    of_number: float

    def plus(self, other: "Share") -> "Share":
        """Of two users together."""
        return Share(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    @property
    def share(self) -> float:
        """Of the gradient weight."""
        return self.weight / self.of_weight if self.of_weight else math.nan

    @property
    def share_by_number(self) -> float:
        """Of the draws."""
        return self.number / self.of_number if self.of_number else math.nan


def weight_shares(user: UserScores, surrogate: str, temperature: float) -> dict[str, Share]:
    """The share of each group of negatives in the gradient of the user's loss.

    The weight of a negative is the derivative of the loss by its score, σ'(d) σ(d)^(1/τ-1) / τ over the sum of all σ^(1/τ),
    each with the weight that the negative has in training. The hardest 1 % are those with the highest scores; which ones
    lie above the positive depends on the positive.

    Args:
        user: the scores.
        surrogate: name of σ.
        temperature: τ.
    """
    activation = SURROGATES[surrogate]()
    by_item = torch.zeros_like(user.scores)
    above = n_above = 0.0
    for differences in user.differences():
        found = gradient_weights(activation, differences, temperature, user.weights)
        by_item += found.sum(dim=0)
        is_above = differences >= 0
        above += float(found[is_above].sum())
        n_above += float(user.weights.expand_as(differences)[is_above].sum())
    total, number = float(by_item.sum()), float(user.weights.sum())
    groups: Mapping[str, Tensor] = {HARDEST: hardest(user), **user.groups}
    n_positives = len(user.positives)
    return {ABOVE: Share(above, total, n_above, n_positives * number)} | {
        name: Share(
            float(by_item[items].sum()),
            total,
            n_positives * float(user.weights[items].sum()),
            n_positives * number,
        )
        for name, items in groups.items()
    }


def hardest(user: UserScores, share: float = 0.01) -> Tensor:
    """The negatives with the highest scores, at least one."""
    negatives = torch.nonzero(user.weights > 0).flatten()
    count = max(1, round(share * len(negatives)))
    return negatives[user.scores[negatives].topk(min(count, len(negatives))).indices]


def gradient_weights(
    activation: Surrogate, differences: Tensor, temperature: float, weights: Tensor
) -> Tensor:
    """The derivative of each positive's loss by the score of each negative, shape (positives, items)."""
    logarithms = activation.log_value(differences)
    # One maximum for both: a 200th power leaves the range of a float.
    highest = logarithms.max(dim=1, keepdim=True).values
    powers = torch.exp((logarithms - highest) / temperature) * weights
    slopes = (
        activation.derivative(differences) / logarithms.exp().clamp(min=NEGLIGIBLE) / temperature
    )
    return powers * slopes / powers.sum(dim=1, keepdim=True).clamp(min=1e-300)
