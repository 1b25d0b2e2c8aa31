"""How to train."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from pslrec.errors import ConfigError
from pslrec.kernels import DEVICE_NAMES, Products, TorchPass, is_device_name
from pslrec.training._operations import Kernels

# By the share of the horizon that is done. They never reach 0 within it, as an epoch that moves
# nothing would be wasted.
SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda done: 1.0,  # noqa: ARG005
    "cosine": lambda done: 0.5 * (1 + math.cos(math.pi * done)),
    "linear": lambda done: 1 - done,
}


@dataclass(frozen=True)
class TrainingOptions:
    """How to train.

    Args:
        learning_rate: of Adam.
        schedule: of the learning rate: `constant`, or `cosine` and `linear`, which fall towards 0
            from epoch to epoch.
        weight_decay: added to the gradient as `weight_decay * parameter`, for every row at every
            step.
        epochs: passes over the training pairs.
        validate_every: epochs between two evaluations on the validation part.
        patience: stop after this many evaluations without a better one; 0 never stops early.
        checkpoint_seconds: time between two checkpoints.
        seed: of everything random.
        horizon: epochs over which the schedule falls; `epochs` if not given. A training that
            repeats the first epochs of a longer one names the length of that one here, so that
            each epoch has the learning rate that it had there.
        kernels: `auto` computes the loss by a fused operation where there is one; `torch` takes
            the one that is written in torch, on the CPU as well; `plain` computes the loss as it
            is written, slower and equal up to rounding.
        device: where the model is trained: `cpu`, `cuda`, `cuda:1`, `mps`, or `auto` for the first
            one that this machine has.
        products: type of the matrix products in the fused operation of torch; `bfloat16` takes
            that operation on the CPU as well.
        compile: have `torch.compile` fuse what that operation does to rows of scores.
    """

    learning_rate: float = 0.01
    schedule: str = "constant"
    weight_decay: float = 0.0
    epochs: int = 200
    validate_every: int = 5
    patience: int = 0
    checkpoint_seconds: float = 30.0
    seed: int = 2024
    horizon: int | None = None
    kernels: Kernels = "auto"
    device: str = "cpu"
    products: Products = "float32"
    compile: bool = False

    @property
    def torch_pass(self) -> TorchPass:
        """How the fused operation in torch is made."""
        return TorchPass(self.products, compile=self.compile)

    def rate_factor(self, epoch: int) -> float:
        """What part of the learning rate an epoch, counted from 0, is trained with.

        >>> [TrainingOptions(epochs=4, schedule="linear").rate_factor(epoch) for epoch in range(4)]
        [1.0, 0.75, 0.5, 0.25]
        >>> TrainingOptions(epochs=2, schedule="linear", horizon=4).rate_factor(1)
        0.75
        """
        horizon = self.horizon
        if horizon is None:
            horizon = self.epochs
        return SCHEDULES[self.schedule](epoch / horizon)

    def __post_init__(self) -> None:
        at_least = {
            "epochs": 1,
            "validate_every": 1,
            "patience": 0,
            "weight_decay": 0,
            "checkpoint_seconds": 0,
        }
        for name, lowest in at_least.items():
            value = getattr(self, name)
            if not lowest <= value < math.inf:
                raise ConfigError(f"`{name}` must be at least {lowest} and finite, got {value}")
        if self.horizon is not None and not self.epochs <= self.horizon < math.inf:
            raise ConfigError(
                f"`horizon` must be at least `epochs`, which is {self.epochs}, and finite, "
                f"got {self.horizon}; leave it out for a schedule that falls over all epochs"
            )
        if self.schedule not in SCHEDULES:
            raise ConfigError(
                f"`schedule` must be one of {', '.join(SCHEDULES)}, got {self.schedule!r}"
            )
        if self.kernels not in get_args(Kernels):
            allowed = ", ".join(get_args(Kernels))
            raise ConfigError(f"`kernels` must be one of {allowed}, got {self.kernels!r}")
        if self.products not in get_args(Products):
            allowed = ", ".join(get_args(Products))
            raise ConfigError(f"`products` must be one of {allowed}, got {self.products!r}")
        if self.products == "bfloat16" and self.kernels == "plain":
            raise ConfigError(
                "`products` must be float32 with `kernels` plain, which computes a loss as it is "
                "written; set `kernels` to auto or torch"
            )
        # Whether the machine has it is asked where training begins: settings may be read anywhere.
        if not is_device_name(self.device):
            raise ConfigError(f"`device` must be {DEVICE_NAMES}, got {self.device!r}")
        if not 0 < self.learning_rate < math.inf:
            raise ConfigError(
                f"`learning_rate` must be positive and finite, got {self.learning_rate}"
            )
