"""From options to the settings of a run."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pslrec.config import RunConfig


def parse_settings(settings: Sequence[str] | None) -> dict[str, Any]:
    """Settings as `name=value`; values are TOML where they can be, else text.

    >>> parse_settings(["training.epochs=3", "loss.name=sl"])
    {'training.epochs': 3, 'loss.name': 'sl'}
    """
    from pslrec.errors import ConfigError

    parsed = {}
    for setting in settings or ():
        name, separator, text = setting.partition("=")
        if not separator or not name.strip():
            raise ConfigError(f"`--set {setting}` is not SECTION.KEY=VALUE")
        try:
            parsed[name.strip()] = tomllib.loads(f"value = {text}")["value"]
        except (ValueError, RecursionError):  # also of numbers with thousands of digits
            parsed[name.strip()] = text
    return parsed


def configured(
    options: Mapping[str, Any], settings: dict[str, Any], *, preset: str | None, file: Path | None
) -> "RunConfig":
    """The settings of a run: those of `--set` over options of their own, over a preset, over a file.

    Args:
        options: by the name of the setting; `None` where an option was not given.
        settings: of `--set`.
        preset: a name, if there is one.
        file: with settings, if there is one.
    """
    from pslrec.config import RunConfig, preset_settings

    chosen = {name: value for name, value in options.items() if value is not None} | settings
    if "data.source" in chosen:
        chosen["data.source"] = _from_anywhere(str(chosen["data.source"]))
    if preset is not None:
        chosen = preset_settings(preset, loss=chosen.get("loss.name")) | chosen
    base = None if file is None else RunConfig.from_toml(file)
    if base is not None:
        # Another loss or backbone does not take over the options of the one in the file.
        for section in ("loss", "backbone"):
            name = chosen.get(f"{section}.name")
            if name is not None and name != getattr(base, section).name:
                base = RunConfig.checked(
                    {**base.model_dump(exclude_none=True), section: {"name": name}}
                )
    return RunConfig.from_settings(chosen, base)


def _from_anywhere(source: str) -> str:
    """A path that a run can be judged by from other directories as well; names stay names."""
    from pslrec.data import is_name

    path = Path(source)
    return source if is_name(source) or not path.exists() else str(path.resolve())


def stem_of(source: str) -> str:
    """A data set's name for directories.

    >>> stem_of("logs/2024.csv.gz")
    '2024'
    """
    return Path(source).name.partition(".")[0]
