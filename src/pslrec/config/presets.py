"""Settings that belong together, by name."""

from typing import Any

from pslrec.errors import ConfigError

# How `best` was chosen, and what it reaches: reproductions/accuracy.
PRESETS: dict[str, dict[str, Any]] = {
    "fast": {
        "backbone.name": "mf",
        "backbone.dimension": 64,
        "backbone.initialization": "spectral",
        "loss.name": "psl-relu",
        "loss.temperature": 1 / 7,
        "sampling.negatives": "auto",
        "training.learning_rate": 0.01,
        "training.schedule": "cosine",
        "training.epochs": 30,
    },
}


def preset_settings(name: str, *, loss: str | None = None) -> dict[str, Any]:
    """The settings of a preset, by dotted name.

    Args:
        name: of the preset.
        loss: taken instead of the preset's; it has options of its own, so those of the preset's loss are left out.

    >>> preset_settings("fast")["loss.name"], preset_settings("fast", loss="bpr")["backbone.initialization"]
    ('psl-relu', 'spectral')
    """
    if name not in PRESETS:
        raise ConfigError(f"`preset` must be one of {', '.join(PRESETS)}, got {name!r}")
    settings = PRESETS[name]
    if loss not in (None, settings["loss.name"]):
        settings = {key: value for key, value in settings.items() if not key.startswith("loss.")}
    return dict(settings)
