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


def preset_settings(name: str) -> dict[str, Any]:
    """The settings of a preset, by dotted name.

    >>> preset_settings("fast")["backbone.initialization"]
    'spectral'
    """
    if name not in PRESETS:
        raise ConfigError(f"`preset` must be one of {', '.join(PRESETS)}, got {name!r}")
    return dict(PRESETS[name])
