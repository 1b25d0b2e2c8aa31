"""Top-K weighting of any log-sum loss: by hand, by name, and what it refuses."""

import inspect
import json
import math

import pytest
import torch

from pslrec.config import RunConfig, part_settings
from pslrec.errors import ConfigError, UnknownNameError
from pslrec.forms import FusedForm
from pslrec.losses import (
    LOSSES,
    BilateralSoftmaxLoss,
    CatalogStep,
    Loss,
    PairwiseSoftmaxLoss,
    Setup,
    SoftmaxAtKLoss,
    SoftmaxLoss,
    TopK,
    log_sum_losses,
)
from pslrec.rows import Rows

LOG_SUMS = ["bsl", "psl", "psl-atan", "psl-relu", "psl-softplus", "psl-tanh", "sl"]
SETTINGS = ["weight_temperature", "update_every", "catalog_negatives", "detach_weight"]
POSITIVES = torch.tensor([0.4, -0.1, 0.25], dtype=torch.float64)
NEGATIVES = torch.tensor(
    [[0.1, -0.2, 0.3], [0.45, 0.0, -0.5], [0.2, 0.2, -0.3]], dtype=torch.float64
)
THRESHOLDS = torch.tensor([0.3, 0.2, -0.1], dtype=torch.float64)


@pytest.fixture(autouse=True)
def _registry_stays_as_it_is(monkeypatch):
    monkeypatch.setattr(LOSSES, "_parts", dict(LOSSES._parts))
    monkeypatch.setattr(LOSSES, "_made", dict(LOSSES._made))


def built(loss: Loss, n_users: int = 3) -> Loss:
    history = Rows.from_lists([[0]] * n_users)
    loss.build(Setup(n_users=n_users, n_items=6, dimension=4, history=history))
    return loss


@pytest.mark.parametrize("name", LOG_SUMS)
def test_value_is_that_of_the_loss_times_the_weight(name):
    loss = TopK(LOSSES[name](), k=20, weight_temperature=0.7)
    values = loss.pairwise_values(POSITIVES, NEGATIVES, threshold=THRESHOLDS)
    plain = LOSSES[name]().pairwise_values(POSITIVES, NEGATIVES)
    for row in range(3):
        distance = (POSITIVES[row] - THRESHOLDS[row]).item() / 0.7
        weight = 1.0 / (1.0 + math.exp(-distance))
        assert values[row].item() == pytest.approx(weight * plain[row].item(), rel=1e-12)


def test_detached_weight_has_no_gradient_and_the_same_value():
    gradients = {}
    values = {}
    for is_detached in (True, False):
        loss = TopK(PairwiseSoftmaxLoss("relu", 0.2), k=5, detach_weight=is_detached)
        positives = POSITIVES.clone().requires_grad_()
        value = loss.pairwise_values(positives, NEGATIVES, threshold=THRESHOLDS)
        (gradients[is_detached],) = torch.autograd.grad(value.sum(), positives)
        values[is_detached] = value.detach()
    assert torch.equal(values[True], values[False])
    plain = PairwiseSoftmaxLoss("relu", 0.2).pairwise_values(POSITIVES, NEGATIVES)
    weights = torch.sigmoid((POSITIVES - THRESHOLDS) / 1.25)
    of_weights = weights * (1 - weights) / 1.25 * plain
    torch.testing.assert_close(gradients[False] - gradients[True], of_weights)


def test_declarations_are_those_of_the_weighted_loss():
    loss = TopK(BilateralSoftmaxLoss(), k=7)
    assert loss.name == "bsl@7"
    assert "k=7, weight_temperature=1.25" in repr(loss)
    assert loss.selection_k == 7
    assert loss.needs == {"threshold"}
    assert not loss.falls_with_positive
    assert list(loss.search_space) == [
        "loss.positive_temperature",
        "loss.negative_temperature",
        "loss.weight_temperature",
        "loss.update_every",
        "training.learning_rate",
        "training.weight_decay",
    ]
    inside = TopK(PairwiseSoftmaxLoss("tanh", form="inside"), k=7)
    assert inside.search_space["loss.temperature"][-1] == 1.0


def test_named_class_takes_the_settings_of_both():
    kind = LOSSES["psl-relu@20"]
    assert list(inspect.signature(kind).parameters) == ["temperature", "form", *SETTINGS]
    loss = kind(0.3, update_every=2)
    assert loss.loss.options() == {"temperature": 0.3, "form": "outside"}
    assert (loss.k, loss.update_every, loss.name) == (20, 2, "psl-relu@20")
    with pytest.raises(TypeError, match="'temprature'"):
        kind(temprature=0.3)


def test_name_is_looked_up_once_and_never_listed():
    assert LOSSES["bsl@11"] is LOSSES["bsl@11"]
    assert LOSSES.name_of(LOSSES["bsl@11"]) == "bsl@11"
    assert "bsl@11" in LOSSES
    assert "bsl@11" not in LOSSES.names()
    assert len(LOSSES) == len(LOSSES.names())


def test_softmax_at_k_is_one_case():
    by_setting = built(SoftmaxAtKLoss(0.2, k=3, update_every=1))
    by_name = built(LOSSES["sl@3"](0.2, update_every=1))
    scores = torch.tensor([[0.1, 0.4, -0.2, 0.3]])
    for loss in (by_setting, by_name):
        loss.start_epoch(0)
        loss.after_step(CatalogStep(torch.tensor([1]), lambda: scores))
    assert isinstance(by_setting, TopK)
    assert by_setting.state_dict().keys() == {"thresholds.values"}
    assert torch.equal(by_setting.thresholds.values, by_name.thresholds.values)
    extras = by_setting.extra_inputs(torch.tensor([0, 1, 2]), torch.zeros(3), torch.zeros(3, 1))
    expected = by_setting(POSITIVES, NEGATIVES, **extras)
    assert torch.equal(by_name(POSITIVES, NEGATIVES, **extras), expected)


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        (TopK(PairwiseSoftmaxLoss("tanh", 0.2), k=7, update_every=3), "psl@7"),
        (TopK(LOSSES["psl-relu"](0.3), k=20, detach_weight=True), "psl-relu@20"),
        (LOSSES["bsl@5"](0.2, 0.05), "bsl@5"),
        (SoftmaxAtKLoss(0.2, k=5), "sl@k"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_instance_makes_a_configuration_that_constructs_it_again(loss, name, tmp_path):
    settings = part_settings("loss", loss)
    assert settings["loss.name"] == name
    path = tmp_path / "config.toml"
    path.write_text(RunConfig.from_settings(settings).resolved().to_toml())
    section = RunConfig.from_toml(path).loss
    assert section.name == name
    again = LOSSES[section.name](**section.options())
    assert again.options() == loss.options() == json.loads(json.dumps(loss.options()))
    assert again.k == loss.k
    assert torch.equal(
        again(POSITIVES, NEGATIVES, threshold=THRESHOLDS),
        loss(POSITIVES, NEGATIVES, threshold=THRESHOLDS),
    )


def test_configuration_checks_the_settings_of_both():
    config = RunConfig.from_settings({"loss.name": "psl-relu@20", "loss.temperature": 0.05})
    assert config.resolved().loss.options() == {
        "temperature": 0.05,
        "form": "outside",
        "weight_temperature": 1.25,
        "update_every": 5,
        "catalog_negatives": 1000,
        "detach_weight": False,
    }
    with pytest.raises(ConfigError, match=r"`sl@20` has no setting `loss\.k`"):
        RunConfig.from_settings({"loss.name": "sl@20", "loss.k": 10})
    with pytest.raises(ConfigError, match=r"`loss\.update_every` should be a valid integer"):
        RunConfig.from_settings({"loss.name": "sl@20", "loss.update_every": "often"})
    with pytest.raises(ConfigError, match="`temperature` must be positive, got -1"):
        RunConfig.from_settings({"loss.name": "sl@20", "loss.temperature": -1.0})


def test_losses_that_may_be_weighted_are_those_with_a_log_sum():
    assert log_sum_losses() == LOG_SUMS


@pytest.mark.parametrize("name", sorted(set(LOSSES.names()) - set(LOG_SUMS)))
def test_other_losses_are_refused(name):
    message = f"logarithm of a sum over negatives: {', '.join(LOG_SUMS)}, or .*; got `{name}`"
    with pytest.raises(ConfigError, match=message):
        TopK(LOSSES[name]())
    with pytest.raises(ConfigError, match=message):
        RunConfig.from_settings({"loss.name": f"{name}@20"})


def test_refusal_shows_the_option_that_is_to_blame():
    with pytest.raises(ConfigError, match=r"got `bsl` .*variant='original'"):
        LOSSES["bsl@20"](variant="original")
    with pytest.raises(ConfigError, match=r"`loss` must be a loss to be weighted.* got 'sl'"):
        TopK("sl")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("psl-rleu@20", "unknown loss `psl-rleu@20`; did you mean `psl-relu@20`"),
        ("sl@0", "unknown loss `sl@0`; did you mean `sl@k`"),
        ("psl-relu@k", "unknown loss `psl-relu@k`; did you mean `psl-relu`"),
        ("sl@", "unknown loss `sl@`"),
        ("@20", "unknown loss `@20`"),
        ("sl@1234567890", "unknown loss `sl@1234567890`"),
        ("zzz@20", r"unknown loss `zzz@20`\. Available: .*as in `sl@20`"),
    ],
)
def test_unknown_names_are_explained(name, message):
    assert name not in LOSSES
    with pytest.raises(UnknownNameError, match=message):
        LOSSES[name]


class OwnLogSum(Loss):
    """A log-sum of one's own, on inner products: log Σ_j exp(a (s_j - s))."""

    reference = "an example"
    similarity = "inner-product"
    domain = (-float("inf"), float("inf"))
    default_negatives = 7

    def __init__(self, slope: float = 1.0) -> None:
        super().__init__()
        self.slope = slope

    def fused_form(self) -> FusedForm:
        return FusedForm("log-sum", "exp", self.slope)

    def _pairwise_values(self, positives, negatives, _extras, /):
        return torch.logsumexp(self.slope * (negatives - positives.unsqueeze(1)), dim=1)


class Clashing(OwnLogSum):
    """Has a setting that the weighting has as well."""

    def __init__(self, update_every: int = 3) -> None:
        super().__init__()
        self.update_every = update_every


def test_loss_from_outside_is_weighted_by_its_name():
    loss = TopK(OwnLogSum(2.0), k=4)
    settings = part_settings("loss", loss)
    assert settings["loss.name"] == loss.name == "own-log-sum@4"
    kind = LOSSES["own-log-sum@4"]
    assert kind.similarity == "inner-product"
    assert kind.default_negatives == 7
    assert LOSSES.origin("own-log-sum@4").module == __name__
    assert RunConfig.from_settings(settings).loss.options()["slope"] == 2.0


def test_class_that_is_defined_again_is_weighted_anew():
    LOSSES.register("again")(OwnLogSum)
    old = LOSSES["again@4"]
    LOSSES._parts["again"] = type("OwnLogSum", (OwnLogSum,), {})
    assert LOSSES["again@4"] is not old


def test_fewer_inner_products_than_k_are_all_within_the_list():
    loss = built(TopK(OwnLogSum(), k=5, update_every=1))
    loss.start_epoch(0)
    scores = torch.tensor([[3.0, -7.0, -float("inf")]])
    loss.after_step(CatalogStep(torch.tensor([1]), lambda: scores))
    positives = torch.tensor([-7.0], requires_grad=True)
    extras = loss.extra_inputs(torch.tensor([1]), torch.tensor([1]), torch.tensor([[2]]))
    value = loss(positives, torch.tensor([[3.0]]), **extras)
    value.backward()
    assert value.item() == pytest.approx(10.0)
    assert positives.grad.item() == pytest.approx(-1.0)


def test_settings_of_the_same_name_are_refused():
    with pytest.raises(ConfigError, match=r"names that top-K weighting takes.*`update_every`"):
        TopK(Clashing())


def test_what_is_missing_is_named():
    loss = LOSSES["psl-tanh@20"]()
    ids = torch.tensor([0]), torch.tensor([0]), torch.tensor([[1]])
    with pytest.raises(RuntimeError, match="`psl-tanh@20` has no thresholds yet: call `build`"):
        loss.extra_inputs(*ids)
    with pytest.raises(ValueError, match="loss `psl-tanh@20` needs `threshold=`"):
        loss(POSITIVES, NEGATIVES)
    with pytest.raises(ConfigError, match="`k` must be a whole number of at least 1, got 0"):
        TopK(SoftmaxLoss(), k=0)


def test_weighted_loss_is_a_form_that_an_operation_may_fuse():
    loss = LOSSES["bsl@20"](0.2, 0.1, catalog_negatives=50)
    assert loss.fused_form() is None
    assert loss.weighted_form() == (FusedForm("log-sum", "exp", 10.0, 0.5), 50)
    assert SoftmaxLoss().weighted_form() is None
