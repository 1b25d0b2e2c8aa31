"""Options of a recommender, by short name, as settings of a run."""

from collections.abc import Mapping
from typing import Any

from pslrec.backbones import BACKBONES
from pslrec.config import (
    DEFAULT_PRESET,
    RunConfig,
    part_settings,
    preset_settings,
    setting_names,
)
from pslrec.errors import ConfigError
from pslrec.losses import LOSSES
from pslrec.registry import constructor_parameters

# The backbone of the preset.
AUTO = "auto"


def settings_of(loss: Any, backbone: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted name.

    An option is the last word of a setting (`epochs`, `temperature`, `dimension`), if no other
    setting ends in it, or the whole name with two underscores for the dot (`training__epochs`).
    Options of the loss and the backbone come before others. `preset` sets several at once, `auto` if
    it is not given; explicit options override it.

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
    if backbone != AUTO:
        parts |= part_settings("backbone", backbone)
    loss_name = parts["loss.name"]
    # First, so that everything below overrides it.
    preset = options.get("preset") or DEFAULT_PRESET
    settings = preset_settings(preset, loss=loss_name, backbone=parts.get("backbone.name"))
    settings |= parts
    backbone_name = settings.get("backbone.name", RunConfig().backbone.name)
    for option, value in options.items():
        if option != "preset":
            settings[_setting(option, loss_name, backbone_name)] = value
    return settings


def _setting(option: str, loss: str, backbone: str) -> str:
    if "__" in option or "." in option:
        return option.replace("__", ".")
    parts = {"loss": LOSSES[loss], "backbone": BACKBONES[backbone]}
    for section, part in parts.items():
        names = [parameter.name for parameter in constructor_parameters(part)]
        # A backbone takes the data and the seed as well, which are not its settings.
        if option in names and option not in ("train", "seed"):
            return f"{section}.{option}"
    matches = [name for name in setting_names() if name.rpartition(".")[2] == option]
    if not matches:
        raise ConfigError(
            f"unknown option `{option}` for loss `{loss}` and backbone `{backbone}`; options are "
            "the settings of a run, such as `epochs`, `temperature`, `dimension`, or in full "
            "`training__epochs`"
        )
    if len(matches) > 1:
        full = " or ".join(f"`{name.replace('.', '__')}`" for name in matches)
        raise ConfigError(f"`{option}` may mean several settings; write {full}")
    return matches[0]


def options_of(config: RunConfig) -> dict[str, Any]:
    """The options, in full, from which `settings_of` gives a configuration again.

    Args:
        config: the settings of a run.
    """
    sections = config.model_dump(exclude_none=True)
    # First, as a reader of a recommender's options looks for these.
    ordered = {"loss": sections.pop("loss"), "backbone": sections.pop("backbone"), **sections}
    options: dict[str, Any] = {}
    for section, values in ordered.items():
        for name, value in values.items():
            # The two names are arguments of their own.
            is_name = section in ("loss", "backbone") and name == "name"
            if not is_name and not isinstance(value, dict):
                options[f"{section}__{name}"] = value
    return options
