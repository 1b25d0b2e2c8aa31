"""What a comparison is asked to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pslrec.backbones import BACKBONES
from pslrec.baselines import BASELINES
from pslrec.config import RunConfig
from pslrec.errors import ConfigError
from pslrec.losses import LOSSES
from pslrec.studies._candidates import SPACES, Candidate, Fitted, Trained, with_parts

METRICS = ("ndcg@20", "recall@20")


@dataclass(frozen=True)
class ComparisonPlan:
    """Who is compared, and how much is done for each.

    Args:
        losses: names; each is trained with every backbone.
        backbones: names.
        baselines: names.
        n_seeds: training seeds, counted up from that of the configuration.
        n_trials: settings to try for each contestant, by TPE on validation; 0 takes the settings
            as they are.
        space: `paper` takes the values that come with losses and baselines, `wide` ranges around
            them.
        metric: what trials are chosen by and contestants are compared by.
        pruner: gives up trials that are behind, see `Effort`.
        options: settings of single losses, by loss and dotted name; they are not searched.
        fixed: names of further settings that are not searched.
    """

    losses: Sequence[str] = ()
    backbones: Sequence[str] = ("mf",)
    baselines: Sequence[str] = ()
    n_seeds: int = 5
    n_trials: int = 20
    space: str = "paper"
    metric: str = "ndcg@20"
    pruner: str = "none"
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fixed: Sequence[str] = ()

    def __post_init__(self) -> None:
        for registry, names in (
            (LOSSES, self.losses),
            (BACKBONES, self.backbones),
            (BASELINES, self.baselines),
        ):
            for name in names:
                registry[name]
        n_contestants = len(self.losses) * len(self.backbones) + len(self.baselines)
        if n_contestants < 2:
            raise ConfigError(f"a comparison needs at least two contestants, got {n_contestants}")
        if self.metric not in METRICS:
            raise ConfigError(f"`metric` must be one of {', '.join(METRICS)}, got {self.metric!r}")
        if self.space not in SPACES:
            raise ConfigError(f"`space` must be one of {', '.join(SPACES)}, got {self.space!r}")
        if self.n_seeds < 1 or self.n_trials < 0:
            raise ConfigError("`n_seeds` must be at least 1 and `n_trials` at least 0")

    def contestants(self, config: RunConfig) -> list[Candidate]:
        """Everything that is compared, in order."""
        found: list[Candidate] = []
        for backbone in self.backbones:
            for loss in self.losses:
                own = with_parts(config, loss=loss, backbone=backbone)
                own = RunConfig.from_settings(self.options.get(loss, {}), base=own)
                # `auto` is settled, as pruners and warnings count epochs.
                epochs = {"training.epochs": Trained(own).epochs}
                found.append(Trained(RunConfig.from_settings(epochs, base=own)))
        found += [Fitted(name, config) for name in self.baselines]
        return found
