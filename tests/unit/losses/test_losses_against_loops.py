"""Value and gradient of every loss against a loop over pairs in plain Python, written from the formula."""

import math

import pytest
import torch

from pslrec.losses import LOSSES

ACTIVATIONS = {
    "exp": math.exp,
    "tanh": lambda d: math.tanh(d) + 1,
    "atan": lambda d: math.atan(d) + 1,
    "relu": lambda d: max(d + 1, 1e-7),
    "softplus": lambda d: math.exp(d) + 1,
    "exp-exp": lambda d: math.exp(math.exp(d)),
}
POSITIVES = [0.31, -0.12, 0.05]
NEGATIVES = [[0.22, -0.41, 0.07, 0.3], [-0.3, 0.28, 0.11, -0.05], [0.46, -0.2, 0.02, -0.33]]
HARDNESS = [[0.3, -0.2, 0.1, 0.0], [-0.5, 0.2, 0.4, 0.1], [0.0, 0.7, -0.1, -0.3]]
THRESHOLDS = [0.1, -0.2, 0.35]
USERS = [4, 1, 4]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def psl(activation, temperature):
    def value(row, s, negatives):
        return math.log(
            sum(ACTIVATIONS[activation](n - s) ** (1 / temperature) for n in negatives[row])
        )

    return value


def inside(activation, temperature):
    def value(row, s, negatives):
        return math.log(sum(ACTIVATIONS[activation]((n - s) / temperature) for n in negatives[row]))

    return value


def softmax(temperature):
    def value(row, s, negatives):
        return -math.log(
            math.exp(s / temperature) / sum(math.exp(n / temperature) for n in negatives[row])
        )

    return value


def bpr(activation):
    def value(row, s, negatives):
        return sum(math.log(ACTIVATIONS[activation](n - s)) for n in negatives[row]) / len(
            negatives[row]
        )

    return value


def bce(row, s, negatives):
    return -math.log(sigmoid(s)) - sum(math.log(1 - sigmoid(n)) for n in negatives[row]) / len(
        negatives[row]
    )


def mse(row, s, negatives):
    return (s - 1) ** 2 + sum(n**2 for n in negatives[row]) / len(negatives[row])


def bsl_tables(row, s, negatives):
    return -s / 0.25 + (0.1 / 0.25) * math.log(sum(math.exp(n / 0.1) for n in negatives[row]))


def bsl_original(row, s, negatives):
    return -s / 0.2 + 1.5 * math.log(sum(math.exp(n / 0.2) for n in negatives[row]))


def adv_infonce(row, s, negatives):
    positive = math.exp(s / 0.1)
    total = sum(
        math.exp(h) * math.exp(n / 0.1) for h, n in zip(HARDNESS[row], negatives[row], strict=True)
    )
    return -math.log(positive / (positive + 64 * total))


def softmax_at_k(row, s, negatives):
    return sigmoid((s - THRESHOLDS[row]) / 1.25) * math.log(
        sum(math.exp((n - s) / 0.1) for n in negatives[row])
    )


def llpauc(row, s, negatives):
    a, b, s_pos, s_neg, g, ta, tb, alpha, beta = 1.0, 0.0, 0.5, 0.5, 0.0, 0.5, 0.5, 0.7, 0.01

    def sp5(x):
        return math.log(1 + math.exp(5 * x)) / 5

    p = sigmoid(2 * s)
    total = -s_pos - sp5(-((p - a) ** 2) + 2 * (1 + g) * p - s_pos) / alpha + s_neg
    for n in (sigmoid(2 * score) for score in negatives[row]):
        total += sp5((n - b) ** 2 + 2 * (1 + g) * n - s_neg) / beta / len(negatives[row])
    return total - g**2 + ta * (a + g) + tb * (g + 1 - b)


CASES = {
    "bpr": ("bpr", {}, bpr("softplus")),
    "bpr-tanh": ("bpr", {"surrogate": "tanh"}, bpr("tanh")),
    "bce": ("bce", {}, bce),
    "mse": ("mse", {}, mse),
    "llpauc": ("llpauc", {}, llpauc),
    "sl": ("sl", {"temperature": 0.05}, softmax(0.05)),
    "adv-infonce": ("adv-infonce", {}, adv_infonce),
    "bsl": ("bsl", {"positive_temperature": 0.25}, bsl_tables),
    "bsl-original": (
        "bsl",
        {"positive_temperature": 0.2, "negative_temperature": 0.3, "variant": "original"},
        bsl_original,
    ),
    "sl@k": ("sl@k", {}, softmax_at_k),
    "sl@20": ("sl@20", {}, softmax_at_k),
    **{
        f"psl-{surrogate}-{temperature}": (
            "psl",
            {"surrogate": surrogate, "temperature": temperature},
            psl(surrogate, temperature),
        )
        for surrogate in ACTIVATIONS
        for temperature in (0.025, 0.1, 0.25)
    },
    **{
        f"psl-{surrogate}-inside-{temperature}": (
            "psl",
            {"surrogate": surrogate, "temperature": temperature, "form": "inside"},
            inside(surrogate, temperature),
        )
        for surrogate in ACTIVATIONS
        for temperature in (0.5, 1.0)
    },
    **{
        f"psl-{surrogate}": (f"psl-{surrogate}", {"temperature": 0.1}, psl(surrogate, 0.1))
        for surrogate in ("tanh", "atan", "relu", "softplus")
    },
}


def extras_of(loss):
    known = {"hardness": HARDNESS, "threshold": THRESHOLDS}
    return {need: torch.tensor(known[need], dtype=torch.float64) for need in loss.needs}


@pytest.mark.parametrize(("name", "options", "formula"), CASES.values(), ids=CASES.keys())
def test_loss_has_the_value_of_the_loop(name, options, formula):
    loss = LOSSES[name](**options).double()
    positive = torch.tensor(POSITIVES, dtype=torch.float64)
    negative = torch.tensor(NEGATIVES, dtype=torch.float64)
    values = loss.pairwise_values(positive, negative, **extras_of(loss))
    expected = [formula(row, s, NEGATIVES) for row, s in enumerate(POSITIVES)]
    torch.testing.assert_close(
        values, torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-10
    )
    mean = loss(positive, negative, **extras_of(loss))
    assert mean.item() == pytest.approx(sum(expected) / 3, rel=1e-10)


@pytest.mark.parametrize(("name", "options", "formula"), CASES.values(), ids=CASES.keys())
def test_loss_has_the_gradient_of_the_loop(name, options, formula):
    loss = LOSSES[name](**options).double()
    positive = torch.tensor(POSITIVES, dtype=torch.float64, requires_grad=True)
    negative = torch.tensor(NEGATIVES, dtype=torch.float64, requires_grad=True)
    loss.pairwise_values(positive, negative, **extras_of(loss)).sum().backward()
    step = 1e-6
    for row, s in enumerate(POSITIVES):
        slope = (formula(row, s + step, NEGATIVES) - formula(row, s - step, NEGATIVES)) / (2 * step)
        assert positive.grad[row].item() == pytest.approx(slope, rel=1e-6, abs=1e-7)
        for column in range(4):
            ends = []
            for shift in (step, -step):
                moved = [list(scores) for scores in NEGATIVES]
                moved[row][column] += shift
                ends.append(formula(row, s, moved))
            slope = (ends[0] - ends[1]) / (2 * step)
            assert negative.grad[row, column].item() == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_grouped_bsl_averages_the_positives_of_a_user_inside_the_logarithm():
    loss = LOSSES["bsl"](
        positive_temperature=0.2, negative_temperature=0.3, variant="original-grouped"
    )
    values = loss.pairwise_values(
        torch.tensor(POSITIVES, dtype=torch.float64),
        torch.tensor(NEGATIVES, dtype=torch.float64),
        users=torch.tensor(USERS),
    )
    for row, user in enumerate(USERS):
        mates = [s for s, other in zip(POSITIVES, USERS, strict=True) if other == user]
        positive = math.log(sum(math.exp(s / 0.2) for s in mates) / len(mates))
        negative = math.log(sum(math.exp(n / 0.2) for n in NEGATIVES[row]) / 4)
        assert values[row].item() == pytest.approx(1.5 * negative - positive, rel=1e-12)
