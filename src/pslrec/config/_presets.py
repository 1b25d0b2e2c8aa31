"""Settings that belong together, by name."""

from typing import Any

from pslrec.checks import one_of

_COMMON: dict[str, Any] = {
    "backbone.name": "mf",
    "backbone.initialization": "spectral",
    "loss.name": "psl-relu",
    "sampling.negatives": "auto",
    "training.learning_rate": 0.001,
    "training.schedule": "cosine",
    "training.epochs": "auto",
    "training.validate_every": 1,
}
# On little data either may be better; elsewhere `history` learns faster and as well.
_OPEN: dict[str, Any] = {"backbone.name": "history", "auto.backbones": ("mf",)}
# What a training takes where nothing else is said.
DEFAULT_PRESET = "auto"
PRESETS: dict[str, dict[str, Any]] = {
    "auto": {"auto.mode": "on", **_OPEN},
    "best": {"auto.mode": "best", **_OPEN},
    "fast": {"auto.mode": "fast", "backbone.name": "history"},
    # The same on all data, for comparisons and searches; chosen on the validation data of
    # Amazon-Electronic.
    "fixed": {**_COMMON, "backbone.dimension": 64, "loss.temperature": 1 / 16},
    # The defaults of every section are those of the paper's experiments.
    "paper": {"auto.mode": "off"},
}


def preset_settings(
    name: str, *, loss: str | None = None, backbone: str | None = None
) -> dict[str, Any]:
    """The settings of a preset, by dotted name.

    Args:
        name: of the preset.
        loss: replaces the preset's loss. It has options of its own, so those of the preset's loss
            are left out.
        backbone: replaces the preset's backbone; no others are tried then.

    >>> preset_settings("fixed")["loss.name"]
    'psl-relu'
    >>> preset_settings("fixed", loss="bpr")["backbone.initialization"]
    'spectral'
    """
    settings = dict(PRESETS[one_of("preset", name, tuple(PRESETS))])
    if backbone is not None:
        settings["backbone.name"] = backbone
        settings.pop("auto.backbones", None)
    if loss in (None, settings.get("loss.name")):
        return settings
    return {key: value for key, value in settings.items() if not key.startswith("loss.")}
