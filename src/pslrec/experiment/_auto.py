"""`auto`: settings that the user left open, by rules that follow from the data and a short race."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pslrec.config import RunConfig
from pslrec.experiment._auto_race import (
    Race,
    Tried,
    TryOut,
    described,
    short_description,
    why_no_race,
)
from pslrec.experiment._auto_rules import ruled_settings
from pslrec.experiment._inputs import TrainingData
from pslrec.training import Listener, SettingsChosen

# What a person wants to know of the choice; the others are in `config.toml`.
TOLD = (
    "backbone.dimension",
    "loss.temperature",
    "loss.negative_temperature",
    "backbone.popularity",
    "training.learning_rate",
    "training.epochs",
)


@dataclass(frozen=True)
class Choice:
    """What `auto` has decided.

    Args:
        parts: backbone and loss, which are given.
        settings: all settings that were left open, by dotted name.
        tries: in the order in which they were made; empty where only rules decided.
        why_no_race: the reason, where rules alone decided.
        remarks: where the highest value was not taken, and why; what else may be worth a try.
    """

    parts: str
    settings: dict[str, Any]
    tries: list[Tried] = field(default_factory=list)
    why_no_race: str = ""
    remarks: list[str] = field(default_factory=list)

    def sentence(self) -> str:
        """What was chosen and why, in one line."""
        named = self.parts
        for name in TOLD:
            if name in self.settings:
                named += f", {described(name, self.settings[name])}"
        if not self.tries:
            rules = f"auto: {named}; by rules alone, as {self.why_no_race}"
            return "; ".join([rules, *self.remarks])
        tries = []
        for tried in self.tries:
            tries.append(f"{short_description(tried.settings)} had {tried.validation:.4f}")
        race = f"in a race on validation {', '.join(tries)}"
        return "; ".join([f"auto: {named}", race, *self.remarks])

    def record(self) -> dict[str, Any]:
        """The choice as JSON can hold it."""
        return {
            "settings": self.settings,
            "tries": [tried._asdict() for tried in self.tries],
            "why_no_race": self.why_no_race,
            "remarks": self.remarks,
        }


def choose_settings(
    config: RunConfig,
    data: TrainingData,
    try_out: TryOut,
    *,
    listeners: Sequence[Listener] = (),
) -> tuple[RunConfig, Choice]:
    """Fill in what a configuration leaves open.

    Everything that was given stays as it is. The test part is never read. Equal arguments give
    equal choices.

    Args:
        config: as it was given, not resolved; `auto.mode` says how much is searched.
        data: what is trained on; the race needs its validation part.
        try_out: trains and validates once.
        listeners: are told what was tried and chosen.

    Returns:
        The configuration with all settings, which runs without a race, and the choice.
    """
    rules = ruled_settings(config, data)
    why_not = why_no_race(data.dataset)
    if config.auto.mode == "fast":
        why_not = "`fast` makes no race"
    if why_not:
        choice = Choice(_parts_of(config, rules), rules, why_no_race=why_not)
    else:
        raced = Race(config, data, rules, try_out, listeners).run()
        if not raced.tries:
            why_not = "all that is raced was given"
        parts = _parts_of(config, raced.settings)
        choice = Choice(parts, raced.settings, raced.tries, why_not, raced.remarks)
    for listener in listeners:
        listener(SettingsChosen(choice.sentence()))
    names = tuple(sorted(choice.settings))
    settings = {**choice.settings, "auto.chosen": names}
    return RunConfig.from_settings(settings, base=config), choice


def _parts_of(config: RunConfig, settings: Mapping[str, Any]) -> str:
    """Backbone and loss, as a person is told of them."""
    backbone = settings.get("backbone.name", config.backbone.name)
    return f"{backbone}, {config.loss.name}"
