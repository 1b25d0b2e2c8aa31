"""A loss or a backbone given as a class or an instance, as settings of a run."""

from collections.abc import Mapping
from typing import Any

from pslrec.backbones import BACKBONES, NOT_SETTINGS
from pslrec.errors import ConfigError
from pslrec.losses import LOSSES
from pslrec.registry import Registry

REGISTRIES: Mapping[str, Registry[Any]] = {"loss": LOSSES, "backbone": BACKBONES}
# What TOML can hold, so that `config.toml` can construct the part again.
_PLAIN = (bool, int, float, str)


def part_settings(section: str, part: Any) -> dict[str, Any]:
    """The settings, by dotted name, that construct a part again.

    A class that was never registered is registered under `pslrec.registry.derived_name`. The
    options of an instance are the arguments of its `__init__`, each kept in the attribute of the
    same name.

    Args:
        section: `loss` or `backbone`.
        part: the name of one, a class, or an instance. Only the options of an instance count: a run
            constructs parts of its own.

    >>> from pslrec.losses import SoftmaxLoss
    >>> part_settings("loss", SoftmaxLoss(temperature=0.2))
    {'loss.name': 'sl', 'loss.temperature': 0.2}
    """
    if isinstance(part, str):
        return {f"{section}.name": part}
    registry = REGISTRIES[section]
    if isinstance(part, type):
        return {f"{section}.name": registry.name_of(part)}
    # A loss that weighs another one is configured by a class that is named after both.
    kind = getattr(part, "configured_by", type(part))
    settings = {f"{section}.name": registry.name_of(kind)}
    for name, value in _options(section, part).items():
        # `None` is an option that is not set; TOML has no word for it.
        if value is not None:
            settings[f"{section}.{name}"] = value
    return settings


def _options(section: str, part: Any) -> Mapping[str, Any]:
    kind = type(part).__qualname__
    try:
        options: dict[str, Any] = part.options()
    except AttributeError as error:
        raise ConfigError(
            f"`{kind}` must keep each argument of its `__init__` in an attribute of the same name, "
            f"so that a run can construct it again: {error}"
        ) from error
    for name, value in options.items():
        if name in NOT_SETTINGS or value is None:
            continue
        if not _is_plain(value):
            raise ConfigError(
                f"`{section}.{name}` of `{kind}` must be a number, a text, true or false, or a list"
                f" of these, so that `config.toml` can hold it, got {type(value).__name__}"
            )
    return options


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(each, _PLAIN) for each in value)
    return isinstance(value, _PLAIN)
