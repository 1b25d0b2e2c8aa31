"""What can be tuned and compared: a loss with a backbone, or a baseline."""

import hashlib
import inspect
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pslrec.artifacts import flat_settings
from pslrec.backbones import BACKBONES
from pslrec.baselines import BASELINES
from pslrec.config import RunConfig, component_options
from pslrec.errors import ConfigError
from pslrec.experiment import build_batches, load_training_data
from pslrec.losses import LOSSES, Loss
from pslrec.studies._cells import Cell
from pslrec.studies._space import Space, widened
from pslrec.studies._works import BaselineTask

SPACES = ("paper", "wide")
# Cells that differ in these are evaluated on different data, so that their values say nothing about
# each other.
NOT_SEARCHED = ("data.", "evaluation.", "sampling.noise.")


def key_of(content: Any) -> str:
    """A short name for what JSON can hold."""
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def config_key(config: RunConfig) -> str:
    """A short name for a resolved configuration.

    Settings at their default do not count, so that new ones change no name.
    """
    return key_of(config.model_dump(mode="json", exclude_defaults=True))


def with_parts(config: RunConfig, *, loss: str, backbone: str | None = None) -> RunConfig:
    """The configuration with another loss or backbone.

    Options of its parts are kept where the new ones take them.
    """
    tree = config.model_dump(exclude_none=True)
    for section, registry, name in (("loss", LOSSES, loss), ("backbone", BACKBONES, backbone)):
        if name is not None:
            taken = inspect.signature(registry[name]).parameters
            before = getattr(config, section).options()
            kept = {option: value for option, value in before.items() if option in taken}
            tree[section] = {"name": name, **kept}
    return RunConfig.checked(tree)


@dataclass(frozen=True)
class Trained:
    """A loss with a backbone, and all else that a run needs.

    Args:
        config: what all its runs have in common.
    """

    config: RunConfig

    @property
    def name(self) -> str:
        """For tables."""
        if self.config.backbone.name == "mf":
            return self.config.loss.name
        return f"{self.config.loss.name} / {self.config.backbone.name}"

    @property
    def asked(self) -> dict[str, Any]:
        """What its runs have in common, by setting."""
        return flat_settings(self.config.model_dump(mode="json", exclude_defaults=True))

    @property
    def loss(self) -> Loss:
        """Built with its options."""
        section = self.config.loss
        return LOSSES[section.name](**component_options(LOSSES, section, "loss"))

    def space(self) -> Space:
        """The values that are worth trying; the paper's for the losses that are in it."""
        return self.loss.search_space

    def cell(self, settings: Mapping[str, Any]) -> Cell:
        """The run with some settings."""
        for name in settings:
            if name.startswith(NOT_SEARCHED):
                raise ConfigError(
                    f"`{name}` cannot be searched: cells would be evaluated on different data; "
                    "set it for all"
                )
        config = RunConfig.from_settings(settings, base=self.config).resolved()
        return Cell(config_key(config), settings, config)

    def seeded(self, settings: Mapping[str, Any], seed: int) -> Cell:
        """The run with some settings and a seed."""
        return self.cell({**settings, "training.seed": seed})

    @cached_property
    def epochs(self) -> int:
        """Of a whole run; `auto` needs the data to be counted."""
        if self.config.training.epochs != "auto":
            return self.config.training.epochs
        resolved = self.config.resolved()
        n_steps = len(build_batches(resolved, load_training_data(resolved)))
        return self.config.training.trainer_options(n_steps).epochs


@dataclass(frozen=True)
class Fitted:
    """A baseline.

    Args:
        name: of the baseline.
        config: says which data, and how they are divided and evaluated.
    """

    name: str
    config: RunConfig
    epochs = 1

    @property
    def asked(self) -> dict[str, Any]:
        """The data and the baseline."""
        common = Trained(self.config).asked
        shared = {name: value for name, value in common.items() if name.startswith(NOT_SEARCHED)}
        return {**shared, "baseline": self.name}

    def space(self) -> Space:
        """The values that are worth trying."""
        return BASELINES[self.name].search_space

    def cell(self, settings: Mapping[str, Any]) -> Cell:
        """The baseline with some options."""
        # Refused here, and not after an hour.
        BASELINES[self.name](**settings)
        key = key_of([self.asked, settings, self.config.training.refit])
        return Cell(key, settings, BaselineTask(self.config, self.name, dict(settings)))

    def seeded(self, settings: Mapping[str, Any], seed: int) -> Cell:
        """The baseline with some options and a seed, if it takes one."""
        if "seed" in inspect.signature(BASELINES[self.name]).parameters:
            return self.cell({**settings, "seed": seed})
        return self.cell(settings)


Candidate = Trained | Fitted


def named_space(candidate: Candidate, name: str, *, fixed: Collection[str] = ()) -> Space:
    """A search space by name.

    Args:
        candidate: for which.
        name: `paper` for the values that come with it, `wide` for ranges around them.
        fixed: settings that are not to be searched.

    >>> space = named_space(Trained(RunConfig()), "wide", fixed=["training.weight_decay"])
    >>> list(space)
    ['loss.temperature', 'training.learning_rate']
    """
    if name not in SPACES:
        raise ConfigError(f"`space` must be one of {', '.join(SPACES)}, got {name!r}")
    own = {each: values for each, values in candidate.space().items() if each not in fixed}
    if name == "paper":
        return own

    def is_possible(settings: Mapping[str, Any]) -> bool:
        try:
            candidate.cell(settings)
        except ConfigError:
            return False
        return True

    return widened(own, is_possible)
