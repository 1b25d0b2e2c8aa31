import math

import pytest
import torch

from pslrec.errors import ConfigError
from pslrec.losses import AdvInfoNCELoss, Setup


def built(variant: str = "tables", seed: int = 0) -> AdvInfoNCELoss:
    loss = AdvInfoNCELoss(variant=variant)
    loss.build(
        Setup(n_users=40, n_items=50, dimension=8, generator=torch.Generator().manual_seed(seed))
    )
    return loss


USERS, NEGATIVES = torch.tensor([3, 0]), torch.tensor([[1, 7, 7, 20], [49, 2, 3, 5]])


def test_last_of_every_five_epochs_trains_the_adversary_only():
    phases = [AdvInfoNCELoss().epoch_phases(epoch) for epoch in range(200)]
    assert [epoch for epoch in range(12) if phases[epoch] == ("adversary",)] == [4, 9]
    assert phases.count(("model",)) == 160
    assert phases.count(("adversary",)) == 40


def test_original_adds_seven_adversarial_passes_before_the_normal_ones():
    phases = [AdvInfoNCELoss(variant="original").epoch_phases(epoch) for epoch in range(200)]
    assert [epoch for epoch in range(200) if phases[epoch] == ("adversary", "model")] == [
        2,
        7,
        12,
        17,
        22,
        27,
        32,
    ]
    assert phases.count(("model",)) == 193


def test_interval_that_never_trains_the_model_is_refused():
    with pytest.raises(
        ConfigError, match="`adversarial_interval` must be a whole number of at least 2, got 1"
    ):
        AdvInfoNCELoss(adversarial_interval=1)


def test_hardness_is_the_logarithm_of_weights_with_mean_one():
    hardness = built().hardness(USERS, NEGATIVES)
    torch.testing.assert_close(hardness.exp().mean(dim=1), torch.ones(2))


@pytest.mark.parametrize("variant", ["tables", "original"])
def test_hardness_is_that_of_the_tables(variant):
    loss = built(variant)
    for row, user in enumerate(USERS.tolist()):
        similarities = []
        for item in NEGATIVES[row].tolist():
            p, q = loss.adversary.users[user], loss.adversary.items[item]
            length = 1.0 if variant == "original" else (p.norm() * q.norm()).item()
            similarities.append((p @ q).item() / length)
        total = sum(math.exp(similarity) for similarity in similarities)
        expected = [math.log(4 * math.exp(similarity) / total) for similarity in similarities]
        assert loss.hardness(USERS, NEGATIVES)[row].tolist() == pytest.approx(expected, abs=1e-5)


def test_tables_start_from_the_generator():
    assert torch.equal(built(seed=3).adversary.items, built(seed=3).adversary.items)
    assert not torch.equal(built(seed=3).adversary.items, built(seed=4).adversary.items)
    assert built().adversary.users.std().item() == pytest.approx(1.0, abs=0.15)
    assert built("original").adversary.users.std().item() == pytest.approx(
        math.sqrt(2 / 48), rel=0.15
    )


def test_only_the_phase_of_the_adversary_gives_it_gradients():
    loss = built()
    assert not loss.hardness(USERS, NEGATIVES).requires_grad
    loss.start_epoch(4, "adversary")
    assert loss.hardness(USERS, NEGATIVES).requires_grad
    with torch.no_grad():
        assert not loss.hardness(USERS, NEGATIVES).requires_grad


def test_adversary_raises_the_loss():
    loss = built()
    scores = torch.tensor([0.3, 0.1]), torch.tensor([[0.2, -0.3, 0.1, 0.4], [0.0, 0.3, -0.2, 0.1]])
    assert loss.parameter_groups(0.1, "model") == []
    (group,) = loss.parameter_groups(0.1, "adversary")
    assert group["lr"] == 5e-5
    optimiser = torch.optim.Adam([group])
    loss.start_epoch(4, "adversary")
    values = []
    for _ in range(20):
        optimiser.zero_grad()
        value = loss(*scores, **loss.extra_inputs(USERS, USERS, NEGATIVES))
        value.backward()
        optimiser.step()
        values.append(value.item())
    assert values[-1] > values[0]


def test_hardness_without_tables_says_to_build():
    with pytest.raises(RuntimeError, match="call `build`, or pass `hardness=`"):
        AdvInfoNCELoss().extra_inputs(USERS, USERS, NEGATIVES)
