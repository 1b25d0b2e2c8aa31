"""A loss or a backbone as a name, a class or an instance: the same settings of a run."""

import pytest
import torch

from pslrec import Recommender
from pslrec.backbones import BACKBONES, LightGCN
from pslrec.config import RunConfig, part_settings
from pslrec.data import Interactions
from pslrec.errors import ConfigError
from pslrec.losses import LOSSES, Loss, SoftmaxLoss

TRAIN = Interactions.from_ids(["ann", "bob", "bob"], ["tea", "tea", "milk"])


@pytest.fixture(autouse=True)
def _registries_stay_as_they_are(monkeypatch):
    for registry in (LOSSES, BACKBONES):
        monkeypatch.setattr(registry, "_parts", dict(registry._parts))


class PlainLoss(Loss):
    """No settings at all: mean_j s_j - s."""

    def _pairwise_values(self, positives, negatives, _extras, /):
        return negatives.mean(dim=1) - positives


class ForgetfulLoss(PlainLoss):
    """Keeps nothing of what it was given."""

    def __init__(self, margin: float = 0.1) -> None:
        super().__init__()


class TensorLoss(PlainLoss):
    """Has a setting that no TOML file can hold."""

    def __init__(self, weights=None) -> None:
        super().__init__()
        self.weights = weights


def test_a_name_stands_for_itself():
    assert part_settings("loss", "sl") == {"loss.name": "sl"}


def test_an_instance_gives_its_options():
    assert part_settings("loss", SoftmaxLoss(0.2)) == {"loss.name": "sl", "loss.temperature": 0.2}
    found = part_settings("backbone", LightGCN(TRAIN, dimension=8, layers=3))
    assert found == {
        "backbone.name": "lightgcn",
        "backbone.dimension": 8,
        "backbone.layers": 3,
    }


def test_a_class_gives_its_name_alone():
    assert part_settings("loss", SoftmaxLoss) == {"loss.name": "sl"}


def test_a_class_without_a_name_or_settings_makes_a_complete_configuration():
    settings = part_settings("loss", PlainLoss())
    assert settings == {"loss.name": "plain-loss"}
    config = RunConfig.from_settings(settings).resolved()
    assert config.loss.options() == {}
    assert '[loss]\nname = "plain-loss"\n' in config.to_toml()
    assert repr(PlainLoss()) == "PlainLoss()"


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (ForgetfulLoss(), "must keep each argument of its `__init__` in an attribute of the same"),
        (TensorLoss(torch.ones(2)), "`loss.weights` of `TensorLoss` must be a number.* got Tensor"),
        (3, "a loss must be a name, a class or an instance of one, got <class 'int'>"),
        (LightGCN, "a loss must be a name, a class or an instance of one"),
    ],
)
def test_what_no_run_could_construct_again_is_refused(part, message):
    with pytest.raises(ConfigError, match=message):
        part_settings("loss", part)


def test_a_recommender_takes_instances_and_options_override_them():
    log = [(user, (user * 3 + step) % 7) for user in range(12) for step in range(4)]
    users, items = zip(*log, strict=True)
    interactions = Interactions.from_ids(users, items)
    options = {"epochs": 1, "dimension": 4, "layers": 1}
    recommender = Recommender(SoftmaxLoss(0.2), LightGCN, **options)
    assert recommender.get_params()["loss"].temperature == 0.2
    recommender.fit(interactions, validation="none")
    assert recommender.config_.loss.options() == {"temperature": 0.2}
    assert recommender.config_.backbone.name == "lightgcn"
    again = recommender.set_params(temperature=0.3).fit(interactions, validation="none")
    assert again.config_.loss.options() == {"temperature": 0.3}
