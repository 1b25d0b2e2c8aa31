"""Search spaces, samplers and pruners."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pslrec.errors import ConfigError

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial as OptunaTrial

SAMPLERS = ("grid", "random", "tpe")
PRUNERS = ("none", "median", "hyperband", "halving")
REDUCTION = 3


@dataclass(frozen=True)
class Range:
    """Numbers between two ends.

    Args:
        low: the smallest.
        high: the largest.
        log: whether orders of magnitude are alike, rather than differences.
        integer: whole numbers only.
    """

    low: float
    high: float
    log: bool = False
    integer: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ConfigError(f"a range must have `low` < `high`, got {self.low} and {self.high}")
        if self.log and self.low <= 0:
            raise ConfigError(f"a range with `log` must have a positive `low`, got {self.low}")


Space = Mapping[str, Sequence[Any] | Range]


def suggest(handle: "OptunaTrial", space: Space) -> dict[str, Any]:
    """Ask for a value of every setting; those of a resumed trial are the same again."""
    found: dict[str, Any] = {}
    for name, values in space.items():
        if not isinstance(values, Range):
            found[name] = handle.suggest_categorical(name, list(values))
        elif values.integer:
            found[name] = handle.suggest_int(
                name, int(values.low), int(values.high), log=values.log
            )
        else:
            found[name] = handle.suggest_float(name, values.low, values.high, log=values.log)
    return found


def build_sampler(name: str, *, seed: int) -> "BaseSampler":
    """A sampler by name: `random` or `tpe`."""
    from optuna.samplers import RandomSampler, TPESampler

    if name == "random":
        return RandomSampler(seed=seed)
    return TPESampler(seed=seed)


def build_pruner(name: str, *, epochs: int, validate_every: int) -> "BasePruner":
    """A pruner by name; none looks before the second value on validation."""
    from optuna import pruners

    first = min(2 * validate_every, epochs)
    if name == "median":
        return pruners.MedianPruner(n_warmup_steps=first - 1)
    if name == "hyperband":
        return pruners.HyperbandPruner(
            min_resource=first, max_resource=epochs, reduction_factor=REDUCTION
        )
    if name == "halving":
        return pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=REDUCTION)
    if name == "none":
        return pruners.NopPruner()
    raise ConfigError(f"`pruner` must be one of {', '.join(PRUNERS)}, got {name!r}")
