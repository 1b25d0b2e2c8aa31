"""What a run is made of: one typed section per stage, strict TOML in and out."""

from pslrec.config._parts import part_settings
from pslrec.config._presets import DEFAULT_PRESET, PRESETS, preset_settings
from pslrec.config._run_config import (
    RETIRED,
    RunConfig,
    component_options,
    setting_names,
    without_retired,
)
from pslrec.config._sections import (
    DataSection,
    NoiseSection,
    SamplingSection,
    TrainingSection,
    WalksSection,
)

__all__ = [
    "DEFAULT_PRESET",
    "PRESETS",
    "RETIRED",
    "DataSection",
    "NoiseSection",
    "RunConfig",
    "SamplingSection",
    "TrainingSection",
    "WalksSection",
    "component_options",
    "part_settings",
    "preset_settings",
    "setting_names",
    "without_retired",
]
