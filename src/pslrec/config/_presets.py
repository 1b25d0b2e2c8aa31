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
# Chosen on the validation data of Amazon-Electronic; reproductions/accuracy says how, and what they
# reach.
PRESETS: dict[str, dict[str, Any]] = {
    "fast": {**_COMMON, "backbone.dimension": 64, "loss.temperature": 1 / 16},
    "best": {**_COMMON, "backbone.dimension": 512, "loss.temperature": 1 / 12},
}


def preset_settings(name: str, *, loss: str | None = None) -> dict[str, Any]:
    """The settings of a preset, by dotted name.

    Args:
        name: of the preset.
        loss: replaces the preset's loss. It has options of its own, so those of the preset's loss
            are left out.

    >>> preset_settings("fast")["loss.name"]
    'psl-relu'
    >>> preset_settings("fast", loss="bpr")["backbone.initialization"]
    'spectral'
    """
    settings = PRESETS[one_of("preset", name, tuple(PRESETS))]
    if loss in (None, settings["loss.name"]):
        return dict(settings)
    return {key: value for key, value in settings.items() if not key.startswith("loss.")}
