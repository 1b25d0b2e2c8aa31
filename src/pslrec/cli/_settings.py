"""From options to the settings of a run."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pslrec.config import RunConfig


def parse_settings(settings: Sequence[str] | None) -> dict[str, Any]:
    """Parse settings such as `name=value`; a value is TOML where it can be, otherwise text.

    >>> parse_settings(["training.epochs=3", "loss.name=sl"])
    {'training.epochs': 3, 'loss.name': 'sl'}
    """
    from pslrec.errors import ConfigError

    parsed = {}
    for setting in settings or ():
        name, separator, text = setting.partition("=")
        if not separator or not name.strip():
            raise ConfigError(
                f"`--set` must be SECTION.KEY=VALUE, such as loss.temperature=0.1, got `{setting}`"
            )
        parsed[name.strip()] = parsed_value(text)
    return parsed


def parsed_value(text: str) -> Any:
    """A value as TOML has it, or the text itself.

    >>> parsed_value("3"), parsed_value("auto")
    (3, 'auto')
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        # Text needs no quotes. Python refuses numbers with thousands of digits with a ValueError,
        # too; the check of the setting says what is wrong with them.
        return text


def configured(
    options: Mapping[str, Any],
    settings: dict[str, Any],
    *,
    preset: str | None,
    file: Path | None,
    is_search: bool = True,
) -> "RunConfig":
    """Put the settings of a run together.

    `--set` overrides options such as `--loss`, these override a preset, and that overrides a file.
    Without a file, the preset is `auto` if none is given, or `paper` in a search, whose cells must
    not search in their turn.

    Args:
        options: values by the name of their setting; `None` where an option was not given.
        settings: what `--set` gave.
        preset: name of a bundle of settings.
        file: a TOML file with settings.
        is_search: whether many runs are made of these settings.
    """
    from pslrec.config import DEFAULT_PRESET
    from pslrec.errors import ConfigError

    if preset is None and file is None:
        preset = "paper" if is_search else DEFAULT_PRESET
    config = _assembled(options, settings, preset, file)
    if is_search and config.auto.mode != "off" and not config.auto.chosen:
        raise ConfigError(
            "`auto.mode` must be off here, as many runs are made and each would choose settings of "
            "its own; take `--preset fixed` or `paper`, or `--config` with the config.toml of a run "
            "for which auto has chosen"
        )
    return config


def _assembled(
    options: Mapping[str, Any], settings: dict[str, Any], preset: str | None, file: Path | None
) -> "RunConfig":
    from pslrec.config import RunConfig, preset_settings

    chosen = {name: value for name, value in options.items() if value is not None} | settings
    if "data.source" in chosen:
        chosen["data.source"] = _from_anywhere(str(chosen["data.source"]))
    base = None
    if file is not None:
        base = RunConfig.from_toml(file)
    if preset is not None:
        # After the loss is known: with another loss than its own, a preset leaves out its options.
        parts = {"loss": chosen.get("loss.name"), "backbone": chosen.get("backbone.name")}
        belonging = preset_settings(preset, **parts)
        if base is not None:
            # A preset says where `auto` starts, and these it has found since.
            for found in base.auto.chosen:
                belonging.pop(found, None)
        chosen = belonging | chosen
    if base is None:
        return RunConfig.from_settings(chosen, None)
    for section in ("loss", "backbone"):
        name = chosen.get(f"{section}.name")
        if name is not None and name != getattr(base, section).name:
            # Another loss does not inherit the options of the one in the file: it may not know
            # them, and their values were chosen for the other.
            fresh = {**base.model_dump(exclude_none=True), section: {"name": name}}
            base = RunConfig.checked(fresh)
    return RunConfig.from_settings(chosen, base)


def settings_by_loss(
    losses: Sequence[str], common: Mapping[str, Any], texts: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """The settings of each loss: those of `--set` that it takes, overridden by its `--for`.

    Args:
        losses: names.
        common: what `--set` gave.
        texts: what `--for` gave.
    """
    # Before `_check_for`, so that a misspelt loss is reported rather than the `--for` about it.
    found = {loss: _options(loss, common, texts) for loss in losses}
    _check_for(texts, losses)
    return found


def _options(loss: str, common: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    import inspect

    from pslrec.losses import LOSSES

    taken = inspect.signature(LOSSES[loss]).parameters
    found = {
        name: value
        for name, value in common.items()
        if name.startswith("loss.") and name.removeprefix("loss.") in taken
    }
    own = [text.partition(":")[2] for text in texts if text.partition(":")[0].strip() == loss]
    return found | parse_settings(own)


def _check_for(texts: Sequence[str], losses: Sequence[str]) -> None:
    from pslrec.errors import ConfigError

    for text in texts:
        loss, separator, _ = text.partition(":")
        if not separator or loss.strip() not in losses:
            raise ConfigError(
                "`--for` must be LOSS:SECTION.KEY=VALUE with one of the losses "
                f"{', '.join(losses)}, got `{text}`"
            )


def _from_anywhere(source: str) -> str:
    """An absolute path, so that the run can be evaluated from any directory; names stay names."""
    from pslrec.data import is_name

    path = Path(source)
    # A path that does not exist stays as it was typed, so that the error quotes it.
    if is_name(source) or not path.exists():
        return source
    return str(path.resolve())


def stem_of(source: str) -> str:
    """A data set's name for directories.

    >>> stem_of("logs/2024.csv.gz")
    '2024'
    """
    # Not `Path.stem`, which would leave `2024.csv`.
    return Path(source).name.partition(".")[0]
