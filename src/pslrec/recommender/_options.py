"""Options of a recommender, by short name, as settings of a run."""

from collections.abc import Mapping
from typing import Any

from pslrec.backbones import BACKBONES
from pslrec.config import RunConfig, part_settings, preset_settings, setting_names
from pslrec.errors import ConfigError
from pslrec.losses import LOSSES
from pslrec.registry import constructor_parameters


def settings_of(loss: Any, backbone: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted name.

    An option is the last word of a setting (`epochs`, `temperature`, `dimension`) where only one ends so, or all of it with
    two underscores for the dot (`training__epochs`). Options of the loss and the backbone come before others. `preset` names
    settings that belong together, over which the other options win.

    Args:
        loss: name of the loss, or a class or an instance of one, see `part_settings`.
        backbone: the same of the backbone.
        options: by their names; they override those of an instance.

    >>> settings_of("sl", "mf", {"temperature": 0.2, "training__epochs": 5})
    {'loss.name': 'sl', 'backbone.name': 'mf', 'loss.temperature': 0.2, 'training.epochs': 5}
    """
    parts = part_settings("loss", loss) | part_settings("backbone", backbone)
    loss, backbone = parts["loss.name"], parts["backbone.name"]
    preset = options.get("preset")
    named = {} if preset is None else preset_settings(preset, loss=loss)
    named |= parts
    given = {name: value for name, value in options.items() if name != "preset"}
    return named | {_setting(name, loss, backbone): value for name, value in given.items()}


def _setting(option: str, loss: str, backbone: str) -> str:
    if "__" in option or "." in option:
        return option.replace("__", ".")
    parts = {"loss": LOSSES[loss], "backbone": BACKBONES[backbone]}
    for section, part in parts.items():
        names = [parameter.name for parameter in constructor_parameters(part)]
        if option in names and option not in ("train", "seed"):
            return f"{section}.{option}"
    matches = [name for name in setting_names() if name.rpartition(".")[2] == option]
    if not matches:
        raise ConfigError(
            f"unknown option `{option}` for loss `{loss}` and backbone `{backbone}`; options are the settings of a run, such as "
            "`epochs`, `temperature`, `dimension`, or in full `training__epochs`"
        )
    if len(matches) > 1:
        full = " or ".join(f"`{name.replace('.', '__')}`" for name in matches)
        raise ConfigError(f"`{option}` may mean several settings; write {full}")
    return matches[0]


def options_of(config: RunConfig) -> dict[str, Any]:
    """The options, in full, that give a configuration again."""
    tree = config.model_dump(exclude_none=True)
    parts = {name: tree.pop(name) for name in ("loss", "backbone")}
    options: dict[str, Any] = {}
    for section, values in {**parts, **tree}.items():
        for name, value in values.items():
            if (section, name) not in (("loss", "name"), ("backbone", "name")) and not isinstance(
                value, dict
            ):
                options[f"{section}__{name}"] = value
    return options
