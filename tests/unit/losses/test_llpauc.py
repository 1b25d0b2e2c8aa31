import pytest
import torch

from pslrec.errors import ConfigError
from pslrec.losses import LLPAUCLoss, LLPAUCScalars, llpauc_loss


def scalar_values(loss: LLPAUCLoss) -> dict[str, float]:
    return {name: parameter.item() for name, parameter in loss.scalars.items()}


def frozen_scores(pairs: int = 64, negatives: int = 200) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    positive = 0.5 * torch.tanh(torch.randn(pairs, generator=generator) * 0.3 + 0.4)
    return positive, 0.5 * torch.tanh(torch.randn(pairs, negatives, generator=generator) * 0.3)


def train_scalars(
    loss: LLPAUCLoss, steps: int, learning_rate: float = 0.1
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = frozen_scores()
    optimiser = torch.optim.Adam(loss.parameter_groups(learning_rate))
    for _ in range(steps):
        optimiser.zero_grad()
        loss(*scores).backward()
        optimiser.step()
        loss.after_step()
    return scores


def test_scalars_start_as_published():
    assert tuple(LLPAUCScalars(**scalar_values(LLPAUCLoss()))) == (
        1.0,
        0.0,
        0.5,
        0.5,
        0.0,
        0.5,
        0.5,
    )


def test_quantiles_and_margin_learn_twice_as_fast():
    loss = LLPAUCLoss()
    rates = {
        id(scalar): group["lr"]
        for group in loss.parameter_groups(0.1)
        for scalar in group["params"]
    }
    fast = {name for name, scalar in loss.scalars.items() if rates[id(scalar)] == 0.2}
    assert fast == {"positive_quantile", "negative_quantile", "margin"}
    assert set(rates.values()) == {0.1, 0.2}


def test_clipping_after_a_step_keeps_the_ranges():
    loss = LLPAUCLoss()
    for value, expected in (
        (
            9.0,
            {
                "positive_centre": 1,
                "negative_centre": 1,
                "positive_quantile": 4,
                "negative_quantile": 5,
                "margin": 1,
            },
        ),
        (
            -9.0,
            {
                "positive_centre": 0,
                "negative_centre": 0,
                "positive_quantile": -1,
                "negative_quantile": 0,
                "margin": 0,
            },
        ),
    ):
        with torch.no_grad():
            for scalar in loss.scalars.values():
                scalar.fill_(value)
        loss.after_step()
        free = {"positive_multiplier": value, "negative_multiplier": value}
        assert scalar_values(loss) == expected | free


@pytest.mark.parametrize(("a", "b", "lowest"), [(0.3, 0.1, -0.3), (0.9, 0.8, -0.2)])
def test_margin_stays_above_both_constraints(a, b, lowest):
    loss = LLPAUCLoss()
    with torch.no_grad():
        for name, value in (("positive_centre", a), ("negative_centre", b), ("margin", -1.0)):
            loss.scalars[name].fill_(value)
    loss.after_step()
    assert loss.scalars["margin"].item() == pytest.approx(lowest)


def test_scalars_of_the_tables_freeze_while_the_multipliers_run_away():
    loss = LLPAUCLoss(beta=0.1)
    _, negative = train_scalars(loss, 400)
    values = scalar_values(loss)
    frozen = [
        values[name]
        for name in ("positive_centre", "negative_centre", "margin", "positive_quantile")
    ]
    assert frozen == pytest.approx([1, 0, 1, -1], abs=1e-3)
    assert values["positive_multiplier"] < -20
    assert values["negative_multiplier"] < -20
    # s_neg becomes about the (1 - beta) quantile of n² + 4n; the softplus blurs it.
    n = torch.sigmoid(2 * negative)
    assert values["negative_quantile"] == pytest.approx(
        (n**2 + 4 * n).flatten().quantile(0.9).item(), abs=0.3
    )


def test_original_ascends_in_margin_and_positive_quantile():
    loss = LLPAUCLoss(variant="original")
    ascending = [
        p for group in loss.parameter_groups(0.1) if group.get("maximize") for p in group["params"]
    ]
    assert [id(p) for p in ascending] == [
        id(loss.scalars["positive_quantile"]),
        id(loss.scalars["margin"]),
    ]
    assert not any(group.get("maximize") for group in LLPAUCLoss().parameter_groups(0.1))
    before = loss.scalars["positive_quantile"].item()
    slope = torch.autograd.grad(loss(*frozen_scores()), loss.scalars["positive_quantile"])[0].item()
    train_scalars(loss, 1)
    assert (loss.scalars["positive_quantile"].item() - before) * slope > 0


def test_original_takes_no_negative_multiplier():
    tables, original = LLPAUCLoss(), LLPAUCLoss(variant="original")
    with torch.no_grad():
        for loss in (tables, original):
            loss.scalars["positive_multiplier"].fill_(-3.0)
    scores = frozen_scores()
    assert original(*scores).item() == pytest.approx(tables(*scores).item() + 3.0, rel=1e-5)


def test_scores_are_taken_as_full_cosines():
    value = llpauc_loss(
        torch.tensor([0.5]), torch.tensor([[-0.5]]), LLPAUCScalars(), alpha=1.0, beta=1.0
    )
    p, n = torch.sigmoid(torch.tensor(1.0)), torch.sigmoid(torch.tensor(-1.0))
    positive = torch.nn.functional.softplus(-((p - 1) ** 2) + 2 * p - 0.5, beta=5)
    negative = torch.nn.functional.softplus(n**2 + 2 * n - 0.5, beta=5)
    torch.testing.assert_close(value, (-positive + negative + 0.5 * 1 + 0.5 * 1).unsqueeze(0))


@pytest.mark.parametrize("option", ["alpha", "beta"])
@pytest.mark.parametrize("share", [0.0, -0.1, 1.5])
def test_shares_outside_of_the_unit_interval_raise(option, share):
    with pytest.raises(ConfigError, match=f"`{option}` must be a share above 0"):
        LLPAUCLoss(**{option: share})
