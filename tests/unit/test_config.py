"""Settings: strict names, strict types, and back from the file what went in."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from pslrec.backbones import BACKBONES
from pslrec.config import RunConfig, setting_names
from pslrec.errors import ConfigError, UnknownNameError
from pslrec.losses import LOSSES

OTHER_VALUES: dict[str, Any] = {
    "data.source": "some/file.csv",
    "data.split": "popularity",
    "data.train_fraction": 0.7,
    "data.split_seed": 3,
    "data.validation": "none",
    "data.validation_seed": 5,
    "data.minimum_rating": 3.5,
    "data.k_core": 5,
    "data.repair": True,
    "data.out_of_core": "off",
    "data.columns.user": "who",
    "data.columns.item": "what",
    "data.columns.rating": "",
    "data.columns.timestamp": "when",
    "data.columns.weight": "",
    "data.format": "delimited",
    "data.separator": ";",
    "data.header": True,
    "data.encoding": "latin-1",
    "backbone.name": "xsimgcl",
    "loss.name": "sl@k",
    "sampling.negatives": 77,
    "sampling.batch_pairs": 512,
    "sampling.replacement": False,
    "sampling.include_positives": True,
    "sampling.noise.probability": 0.3,
    "sampling.noise.fraction": 0.2,
    "sampling.noise.scope": "global",
    "sampling.noise.keep_positives": True,
    "sampling.noise.before_validation": True,
    "sampling.noise.hide_at_test": True,
    "sampling.noise.seed": 8,
    "training.learning_rate": 0.1,
    "training.schedule": "cosine",
    "training.weight_decay": 1e-6,
    "training.epochs": 7,
    "training.validate_every": 2,
    "training.patience": 4,
    "training.checkpoint_seconds": 1.5,
    "training.seed": 1,
    "training.refit": True,
    "training.warm_start": "some/run",
    "training.kernels": "torch",
    "training.device": "cuda:1",
    "training.products": "bfloat16",
    "training.compile": True,
    "walks.weight": "auto",
    "walks.neighbours": 20,
    "walks.transition_exponent": 0.5,
    "walks.popularity_exponent": 0.4,
    "walks.regression": "auto",
    "walks.regression_l1": 0.5,
    "walks.regression_l2": 20.0,
    "evaluation.k": (3, 10),
    "evaluation.validation_users": 1000,
    "evaluation.test_users": 500,
    "evaluation.protocol": "paper",
    "evaluation.memory_megabytes": 64,
    "evaluation.exchangeability": "off",
    "auto.mode": "best",
    "auto.backbones": ("mf",),
    "auto.chosen": ("training.epochs",),
}


def value_of(config: RunConfig, name: str) -> Any:
    node: Any = config
    for part in name.split("."):
        node = getattr(node, part)
    return node


def test_every_setting_can_be_set_and_comes_back_from_toml(tmp_path: Path) -> None:
    assert sorted(OTHER_VALUES) == sorted(setting_names())
    config = RunConfig.from_settings(OTHER_VALUES)
    for name, value in OTHER_VALUES.items():
        assert value_of(config, name) == value
        assert value_of(RunConfig(), name) != value, f"{name} is no other value than the default"
    file = tmp_path / "run.toml"
    file.write_text(config.to_toml())
    assert RunConfig.from_toml(file) == config


@pytest.mark.parametrize("backbone", BACKBONES.names())
@pytest.mark.parametrize("loss", [*LOSSES.names(), "psl-relu@20", "bsl@5"])
def test_every_loss_and_backbone_comes_back_from_toml_with_all_defaults_written_out(
    loss: str, backbone: str
) -> None:
    resolved = RunConfig.from_settings({"loss.name": loss, "backbone.name": backbone}).resolved()
    again = RunConfig.checked(tomllib.loads(resolved.to_toml()))
    assert again == resolved
    assert again.resolved() == resolved
    assert resolved.loss.options() == LOSSES[loss]().options()
    assert resolved.sampling.negatives == "auto"
    expected = LOSSES[loss].initialization or BACKBONES[backbone].default_initialization
    assert resolved.backbone.options()["initialization"] == expected
    tree = tomllib.loads(resolved.to_toml())
    unset = {
        "data.train_fraction",
        "data.minimum_rating",
        "training.warm_start",
        "data.format",
        "data.separator",
        "data.header",
        "data.encoding",
        *(f"data.columns.{role}" for role in ("user", "item", "rating", "timestamp", "weight")),
    }  # stand for "as it is"
    for name in set(setting_names()) - unset:
        node = tree
        for part in name.split("."):
            node = node[part]


@pytest.mark.parametrize("loss", [*LOSSES.names(), "psl-relu@20", "bsl@5"])
def test_paper_protocol_draws_the_negatives_of_the_loss(loss: str) -> None:
    config = RunConfig.from_settings({"loss.name": loss, "evaluation.protocol": "paper"})
    assert config.resolved().sampling.negatives == LOSSES[loss].default_negatives


def test_large_catalogues_are_shared_by_default() -> None:
    sampling = RunConfig().resolved().sampling
    assert (sampling.n_shared(100_000), sampling.n_shared(100_001)) == (None, 8192)


def test_what_is_given_wins_over_what_is_resolved() -> None:
    given = {
        "loss.name": "bpr",
        "backbone.initialization": "normal:0.5",
        "sampling.negatives": 3,
        "data.validation": "none",
        "loss.surrogate": "tanh",
    }
    resolved = RunConfig.from_settings(given).resolved()
    for name in ("sampling.negatives", "data.validation"):
        assert value_of(resolved, name) == given[name]
    assert resolved.backbone.options()["initialization"] == "normal:0.5"
    assert resolved.loss.options() == {"surrogate": "tanh"}


@pytest.mark.parametrize(
    ("protocol", "source", "split", "expected"),
    [
        ("strict", "debian", "iid", "fraction"),
        ("strict", "debian", "popularity", "fraction"),
        ("paper", "debian", "iid", "paper"),
        ("paper", "debian", "popularity", "none"),
        ("paper", "data/iid/amazon2014-electronic.zip", "iid", "paper"),
        ("paper", "data/ood/amazon2014-electronic-popularity.zip", "iid", "none"),
        ("strict", "data/ood/amazon2014-electronic-popularity.zip", "iid", "fraction"),
    ],
)
def test_validation_follows_from_protocol_and_split(
    protocol: str, source: str, split: str, expected: str
) -> None:
    config = RunConfig.from_settings(
        {"evaluation.protocol": protocol, "data.source": source, "data.split": split}
    ).resolved()
    assert config.data.validation == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"training.epoch": 3},
            "unknown setting `training.epoch`; did you mean `training.epochs`?",
        ),
        ({"los.temperature": 1.0}, "unknown setting `los`; did you mean `loss`?"),
        ({"sampling.noise.probabilty": 0.1}, "did you mean `sampling.noise.probability`?"),
        ({"nothing.like.it": 1}, "unknown setting `nothing`; the settings are data.source, "),
        ({"loss": "sl"}, "`loss` is a section, set one of its settings: loss.name"),
        (
            {"training": 3},
            "`training` is a section, set one of its settings: training.learning_rate",
        ),
        ({"loss.name.x": 1}, "`loss.name"),
        (
            {"loss.tempratur": 0.1},
            "loss `psl-relu` has no setting `loss.tempratur`; did you mean `loss.temperature`?",
        ),
        ({"loss.alpha": 0.1}, "it has `loss.temperature`, `loss.form`"),
        ({"backbone.layers": 2}, "backbone `mf` has no setting `backbone.layers`"),
        ({"backbone.seed": 2}, "backbone `mf` has no setting `backbone.seed`"),
        (
            {"training.epochs": "3"},
            "`training.epochs` should be a number from 1 to 1,000,000, or 'auto', got '3'",
        ),
        (
            {"training.epochs": 3.5},
            "`training.epochs` should be a number from 1 to 1,000,000, or 'auto', got 3.5",
        ),
        (
            {"training.epochs": True},
            "`training.epochs` should be a number from 1 to 1,000,000, or 'auto', got True",
        ),
        (
            {"training.epochs": 0},
            "`training.epochs` should be a number from 1 to 1,000,000, or 'auto', got 0",
        ),
        (
            {"training.learning_rate": float("inf")},
            "`training.learning_rate` should be a finite number",
        ),
        (
            {"training.learning_rate": float("nan")},
            "`training.learning_rate` should be a finite number",
        ),
        (
            {"sampling.negatives": 0},
            "`sampling.negatives` should be a number from 1 to 1,000,000, 'auto', 'catalog', or 'shared:N'",
        ),
        ({"sampling.negatives": True}, "with a number N such as 8192, got True"),
        ({"sampling.negatives": "all"}, "with a number N such as 8192, got 'all'"),
        (
            {"sampling.negatives": "shared:0"},
            "'shared:N' with a number N such as 8192, got 'shared:0'",
        ),
        (
            {"sampling.negatives": "shared:8k"},
            "'shared:N' with a number N such as 8192, got 'shared:8k'",
        ),
        ({"data.repair": 1}, "`data.repair` should be a valid boolean, got 1"),
        ({"data.train_fraction": 1.5}, "`data.train_fraction` should be less than 1"),
        ({"evaluation.k": [5, 0]}, "`evaluation.k.1` should be greater than 0, got 0"),
        ({"evaluation.k": []}, "`evaluation.k`: Tuple should have at least 1 item"),
        ({"evaluation.k": "5,20"}, "`evaluation.k` should be a valid tuple, got '5,20'"),
        (
            {"evaluation.protocol": "papr"},
            "`evaluation.protocol` should be 'strict' or 'paper', got 'papr'",
        ),
        ({"loss.temperature": "warm"}, "`loss.temperature` should be a valid number, got 'warm'"),
        ({"loss.temperature": -1}, "`temperature` must be positive, got -1"),
        ({"loss.form": "both"}, "`form` must be one of outside, inside"),
        ({"backbone.dimension": "64"}, "`backbone.dimension` should be a valid integer, got '64'"),
    ],
)
@pytest.mark.parametrize("has_base", [False, True])
def test_mistakes_are_named(settings: dict[str, Any], message: str, has_base: bool) -> None:
    with pytest.raises(ConfigError) as caught:
        RunConfig.from_settings(settings, RunConfig() if has_base else None)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"loss.name": "psl-rel"},
            "unknown loss `psl-rel`; did you mean `psl-relu`? Available: adv-infonce, ",
        ),
        (
            {"backbone.name": "lightgnc"},
            "unknown backbone `lightgnc`; did you mean `lightgcn`? Available: history, lightgcn, mf",
        ),
        ({"data.split": "popularty"}, "unknown split `popularty`; did you mean `popularity`?"),
        (
            {"loss.name": "psl", "loss.surrogate": "tan"},
            "unknown surrogate `tan`; did you mean `tanh`?",
        ),
    ],
)
def test_unknown_names_come_with_the_nearest_and_all_others(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnknownNameError) as caught:
        RunConfig.from_settings(settings)
    assert message in str(caught.value)


def test_a_whole_number_serves_where_a_number_is_asked_for() -> None:
    config = RunConfig.from_settings(
        {"training.learning_rate": 1, "loss.temperature": 1, "evaluation.k": 20}
    )
    assert (config.training.learning_rate, config.evaluation.k) == (1.0, (20,))


def test_settings_over_a_base_leave_the_others_alone() -> None:
    base = RunConfig.from_settings({"training.epochs": 3, "loss.temperature": 0.2})
    config = RunConfig.from_settings({"training.seed": 9}, base)
    assert (config.training.epochs, config.training.seed) == (3, 9)
    assert config.loss.options() == {"temperature": 0.2}
    assert base.training.seed == 2024


def test_files_that_can_not_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.toml cannot be read: no such file"):
        RunConfig.from_toml(tmp_path / "missing.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[training\n")
    with pytest.raises(ConfigError, match=r"broken\.toml is not TOML"):
        RunConfig.from_toml(broken)
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"broken\.toml cannot be read: it is not text in UTF-8"):
        RunConfig.from_toml(broken)
    broken.write_text("[training]\nepoch = 3\n")
    with pytest.raises(ConfigError, match=r"did you mean `training\.epochs`"):
        RunConfig.from_toml(broken)


def test_the_trainer_gets_what_was_set() -> None:
    options = RunConfig.from_settings(OTHER_VALUES).training.trainer_options(100)
    for name in ("learning_rate", "weight_decay", "epochs", "validate_every", "patience", "seed"):
        assert getattr(options, name) == OTHER_VALUES[f"training.{name}"]


def test_a_retired_setting_says_what_has_replaced_it() -> None:
    with pytest.raises(ConfigError, match=r"`walks\.regularization` is no longer a setting.*SLIM"):
        RunConfig.checked({"walks": {"regularization": 50.0}})
    with pytest.raises(
        ConfigError, match=r"`walks\.regression_items` is no longer .*`walks\.regre"
    ):
        RunConfig.from_settings({"walks.regression_items": 6000})
