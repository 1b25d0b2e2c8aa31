"""Options of a recommender, by short name, as settings of a run."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pslrec.artifacts import flat_settings
from pslrec.backbones import BACKBONES, NOT_SETTINGS, Backbone
from pslrec.config import (
    DEFAULT_PRESET,
    PRESETS,
    RunConfig,
    part_settings,
    preset_settings,
    setting_names,
)
from pslrec.errors import ConfigError
from pslrec.losses import LOSSES, Loss
from pslrec.registry import Registry, constructor_parameters

# The backbone of the preset.
AUTO = "auto"
# Keyword arguments of `Recommender` that are settings of a run; `None` leaves one to the preset.
KEYWORDS = {
    "temperature": "loss.temperature",
    "dimension": "backbone.dimension",
    "epochs": "training.epochs",
    "learning_rate": "training.learning_rate",
    "weight_decay": "training.weight_decay",
    "negatives": "sampling.negatives",
    "patience": "training.patience",
    "refit": "training.refit",
    "minimum_rating": "data.minimum_rating",
    "k_core": "data.k_core",
    "seed": "training.seed",
    "device": "training.device",
}
# Those that are about the recommender itself, or read in a way of their own.
OTHERS = ("loss", "backbone", "preset", "output", "verbose", "warm_start")
REGISTRIES: Mapping[str, Registry[Any]] = {"loss": LOSSES, "backbone": BACKBONES}
BASES: Mapping[str, type] = {"loss": Loss, "backbone": Backbone}


def settings_of(loss: Any, backbone: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted name.

    An option is one of `KEYWORDS`, the last word of a setting (`surrogate`, `batch_pairs`), if no
    other setting ends in it, or the whole name with two underscores for the dot
    (`training__epochs`). Options of the loss and the backbone come before others. `preset` sets
    several at once, `auto` if it is not given; explicit options override it.

    Args:
        loss: name of the loss, or a class or an instance of one, see `part_settings`.
        backbone: the same of the backbone; `auto` leaves it to the preset.
        options: by their names; they override those of an instance.

    >>> settings_of("sl", "mf", {"preset": "paper", "temperature": 0.2, "training__epochs": 5})
    ... # doctest: +NORMALIZE_WHITESPACE
    {'auto.mode': 'off', 'backbone.name': 'mf', 'loss.name': 'sl', 'loss.temperature': 0.2,
    'training.epochs': 5}
    """
    parts = part_settings("loss", loss)
    if not _is_auto(backbone):
        parts |= part_settings("backbone", backbone)
    # First, so that everything below overrides it.
    preset = options.get("preset") or DEFAULT_PRESET
    settings = preset_settings(preset, loss=parts["loss.name"], backbone=parts.get("backbone.name"))
    settings |= parts
    known = known_parts(loss, backbone, preset)
    for option, value in options.items():
        is_left_open = option in KEYWORDS and value is None
        if option not in OTHERS and not is_left_open:
            settings[_setting(option, known)] = value
    warm_start = options.get("warm_start")
    if warm_start is not None and not isinstance(warm_start, bool):
        settings["training.warm_start"] = str(warm_start)
    return settings


def check_names(loss: Any, backbone: Any, options: Mapping[str, Any]) -> None:
    """Raise for an option that does not exist; values are checked when they are used.

    Args:
        loss: as in `settings_of`; options of one that cannot be found are not checked.
        backbone: the same.
        options: by their names.

    >>> check_names("sl", "auto", {"temprature": 0.2})
    Traceback (most recent call last):
    pslrec.errors.ConfigError: unknown option `temprature`; did you mean `temperature`?
    """
    known = known_parts(loss, backbone, options.get("preset"))
    for option, value in options.items():
        is_left_open = option in KEYWORDS and value is None
        if option not in OTHERS and not is_left_open:
            _setting(option, known)


def known_parts(loss: Any, backbone: Any, preset: Any) -> dict[str, type]:
    """The classes of the loss and the backbone, by section, as far as they can be found.

    Args:
        loss: a name, a class or an instance; anything else is left out.
        backbone: the same; `auto` is the backbone of the preset.
        preset: its name.
    """
    if _is_auto(backbone):
        settings: dict[str, Any] = {}
        if isinstance(preset, str | None):
            settings = PRESETS.get(preset or DEFAULT_PRESET, {})
        backbone = settings.get("backbone.name", RunConfig().backbone.name)
    known = {}
    for section, part in (("loss", loss), ("backbone", backbone)):
        base = BASES[section]
        if isinstance(part, str) and part in REGISTRIES[section]:
            known[section] = REGISTRIES[section][part]
        elif isinstance(part, type) and issubclass(part, base):
            known[section] = part
        elif isinstance(part, base):
            # A loss that weighs another one is configured by a class that is named after both.
            known[section] = getattr(part, "configured_by", type(part))
    return known


def _is_auto(backbone: Any) -> bool:
    return isinstance(backbone, str) and backbone == AUTO


def _setting(option: str, parts: Mapping[str, type]) -> str:
    names = _all_names(parts)
    name = KEYWORDS.get(option)
    if name is None and ("__" in option or "." in option):
        name = option.replace("__", ".")
    if name is not None:
        section = name.partition(".")[0]
        is_of_unknown_part = section in REGISTRIES and section not in parts
        if name not in names and not is_of_unknown_part:
            raise ConfigError(_unknown(option, parts, names))
        return name
    for section in parts:
        # Both parts have a name, and both names are arguments of their own.
        if option != "name" and f"{section}.{option}" in names:
            return f"{section}.{option}"
    matches = [name for name in names if name.rpartition(".")[2] == option]
    if len(matches) > 1:
        full = " or ".join(f"`{name.replace('.', '__')}`" for name in matches)
        raise ConfigError(f"`{option}` may mean several settings; write {full}")
    if matches:
        return matches[0]
    if len(parts) < len(REGISTRIES):
        # It may belong to the part that is not known; `fit` says what is wrong with that.
        return f"loss.{option}"
    raise ConfigError(_unknown(option, parts, names))


def _all_names(parts: Mapping[str, type]) -> list[str]:
    """Names of all settings, those of the parts among them."""
    names = setting_names()
    for section, part in parts.items():
        for parameter in constructor_parameters(part):
            # A backbone takes the data and the seed as well, which are not its settings.
            if parameter.name not in NOT_SETTINGS:
                names.append(f"{section}.{parameter.name}")
    return names


def _unknown(option: str, parts: Mapping[str, type], names: list[str]) -> str:
    spellings = [*KEYWORDS, *OTHERS]
    for name in names:
        spellings.append(name.rpartition(".")[2])
        spellings.append(name.replace(".", "__"))
    near = get_close_matches(option, spellings, n=1)
    if near and near[0] != option:
        return f"unknown option `{option}`; did you mean `{near[0]}`?"
    described = []
    for section, part in parts.items():
        own = [name.partition(".")[2] for name in names if name.startswith(f"{section}.")]
        described.append(f"{section} {part.__name__} has {', '.join(own)}")
    return (
        f"unknown option `{option}`: {' and '.join(described)}; others are {', '.join(KEYWORDS)}, "
        "and every setting of a run in full, such as `training__schedule`"
    )


def options_of(config: RunConfig) -> dict[str, Any]:
    """The options from which `settings_of` gives a configuration again, without defaults.

    Args:
        config: the settings of a run.
    """
    names = {"loss.name": config.loss.name, "backbone.name": config.backbone.name}
    usual = RunConfig.from_settings(names).resolved()
    defaults = flat_settings(usual.model_dump(exclude_none=True))
    keywords = {name: keyword for keyword, name in KEYWORDS.items()}
    # The preset whose settings are the defaults.
    options: dict[str, Any] = {"preset": "paper"}
    for name, value in flat_settings(config.model_dump(exclude_none=True)).items():
        # The start of a training belongs to that training, and not to the next one.
        if name in ("data.source", "training.warm_start") or name in names:
            continue
        if name not in defaults or defaults[name] != value:
            options[keywords.get(name, name.replace(".", "__"))] = value
    return options
