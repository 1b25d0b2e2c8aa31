"""How to train."""

import math
from dataclasses import dataclass

from pslrec.errors import ConfigError


@dataclass(frozen=True)
class TrainingOptions:
    """How to train.

    Args:
        learning_rate: of Adam.
        weight_decay: added to the gradient as `weight_decay * parameter`, for every row at every step.
        epochs: passes over the training pairs.
        validate_every: epochs between two looks at the validation part.
        patience: stop after this many looks without a better one; 0 never stops early.
        checkpoint_seconds: time between two checkpoints.
        seed: of everything random.
    """

    learning_rate: float = 0.01
    weight_decay: float = 0.0
    epochs: int = 200
    validate_every: int = 5
    patience: int = 0
    checkpoint_seconds: float = 30.0
    seed: int = 2024

    def __post_init__(self) -> None:
        at_least = {"epochs": 1, "validate_every": 1, "patience": 0, "weight_decay": 0, "checkpoint_seconds": 0}
        for name, lowest in at_least.items():
            if not lowest <= getattr(self, name) < math.inf:
                raise ConfigError(f"`{name}` must be at least {lowest} and finite, got {getattr(self, name)}")
        if not 0 < self.learning_rate < math.inf:
            raise ConfigError(f"`learning_rate` must be positive and finite, got {self.learning_rate}")
