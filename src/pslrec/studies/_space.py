"""Search spaces, samplers and pruners."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pslrec.errors import ConfigError
from pslrec.files import read_toml

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial as OptunaTrial

SAMPLERS = ("grid", "random", "tpe")
PRUNERS = ("none", "median", "hyperband", "halving")
REDUCTION = 3
# The outer share of a range, at either end, that counts as its edge.
EDGE = 0.02


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
            # Four digits: more would only be harder to read and to type again.
            suggested = handle.suggest_float(name, values.low, values.high, log=values.log)
            found[name] = float(f"{suggested:.4g}")
    return found


def build_sampler(name: str, *, seed: int) -> "BaseSampler":
    """A sampler by name: `random` or `tpe`."""
    from optuna.samplers import RandomSampler, TPESampler

    if name == "random":
        return RandomSampler(seed=seed)
    return TPESampler(seed=seed)


@dataclass(frozen=True)
class Pruning:
    """Which trials are given up before their end.

    Args:
        name: one of `PRUNERS`.
        epochs: of a whole run.
        validate_every: epochs between two values on validation.
    """

    name: str = "none"
    epochs: int = 1
    validate_every: int = 1

    def __post_init__(self) -> None:
        if self.name not in PRUNERS:
            raise ConfigError(f"`pruner` must be one of {', '.join(PRUNERS)}, got {self.name!r}")

    def build(self) -> "BasePruner":
        """Optuna's own; none of them looks before the second value on validation."""
        from optuna import pruners

        first = min(2 * self.validate_every, self.epochs)
        if self.name == "median":
            return pruners.MedianPruner(n_warmup_steps=first)
        if self.name == "hyperband":
            return pruners.HyperbandPruner(
                min_resource=first, max_resource=self.epochs, reduction_factor=REDUCTION
            )
        if self.name == "halving":
            return pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=REDUCTION)
        return pruners.NopPruner()


def widened(space: Space, is_possible: Callable[[Mapping[str, Any]], bool]) -> Space:
    """Ranges from one step below the smallest value of each setting to one above the largest.

    A step is the ratio of neighbouring values, and orders of magnitude are alike. Zero, which has
    no order of magnitude, is represented by the lower end. What is not a positive number stays a
    list of values.

    Args:
        space: lists of values.
        is_possible: whether a run could have some settings; an end that it could not have is left
            where the values end.

    >>> widened({"loss.temperature": [0.1, 0.2, 0.4]}, lambda settings: True)
    {'loss.temperature': Range(low=0.05, high=0.8, log=True, integer=False)}
    """
    found: dict[str, Sequence[Any] | Range] = {}
    for name, values in space.items():
        found[name] = values
        if isinstance(values, Range) or not all(_is_number(value) for value in values):
            continue
        ordered = sorted({value for value in values if value > 0})
        if len(ordered) < 2:
            continue
        low = _rounded(ordered[0] * ordered[0] / ordered[1])
        high = _rounded(ordered[-1] * ordered[-1] / ordered[-2])
        integer = all(isinstance(value, int) for value in ordered)
        if integer:
            low = max(1, round(low))
            high = round(high)
        if not is_possible({name: low}):
            low = ordered[0]
        if not is_possible({name: high}):
            high = ordered[-1]
        found[name] = Range(low, high, log=True, integer=integer)
    return found


def read_space(path: Path) -> Space:
    """A search space from a TOML file.

    Settings are in sections or have dotted names. A list gives values; a table with `low` and
    `high`, and perhaps `log` and `integer`, gives a range.
    """
    return _flattened(read_toml(path, error=ConfigError), prefix="", path=path)


def _flattened(tree: Mapping[str, Any], *, prefix: str, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, list):
            found[name] = value
        elif isinstance(value, dict) and "low" in value:
            unknown = value.keys() - {"low", "high", "log", "integer"}
            if unknown or "high" not in value:
                raise ConfigError(
                    f"`{name}` in {path} must have `low` and `high`, and may have `log` and "
                    f"`integer`, got {', '.join(value)}"
                )
            found[name] = Range(**value)
        elif isinstance(value, dict):
            found |= _flattened(value, prefix=f"{name}.", path=path)
        else:
            raise ConfigError(
                f"`{name}` in {path} must be a list of values, or a table with `low` and `high`, "
                f"got {value!r}"
            )
    return found


def combinations(space: Space) -> list[dict[str, Any]]:
    """Every combination of values; the first setting changes slowest.

    >>> combinations({"a": [1, 2], "b": [3]})
    [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]
    """
    lists = []
    for name, values in space.items():
        if isinstance(values, Range):
            raise ConfigError(
                f"a grid has lists of values, and `{name}` is a range; choose `sampler` tpe or "
                "random"
            )
        lists.append(values)
    return [dict(zip(space, chosen, strict=True)) for chosen in itertools.product(*lists)]


def is_at_edge(value: Any, values: Sequence[Any] | Range) -> bool:
    """Whether a better value may lie beyond what was searched.

    >>> is_at_edge(0.4, [0.1, 0.2, 0.4]), is_at_edge(0.0, [0.0, 0.1]), is_at_edge(3, Range(2, 9))
    (True, False, False)
    """
    if isinstance(values, Range):
        low, high = values.low, values.high
        if values.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        margin = EDGE * (high - low)
        return bool(value <= low + margin or value >= high - margin)
    if len(values) < 2 or not all(_is_number(each) for each in values):
        return False
    # Nothing lies below 0.
    return bool(value == max(values) or (value == min(values) and value > 0))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
