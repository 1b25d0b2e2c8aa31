"""A whole configuration: sections in, strict TOML in and out."""

import logging
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints

import tomli_w
from pydantic import BaseModel, ValidationError, create_model
from pydantic_core import ErrorDetails

from pslrec.artifacts import check_parts, flat_settings
from pslrec.backbones import BACKBONES, NOT_SETTINGS
from pslrec.config._sections import (
    AutoSection,
    BackboneSection,
    ComponentSection,
    DataSection,
    EvaluationSection,
    LossSection,
    SamplingSection,
    Section,
    TrainingSection,
    WalksSection,
)
from pslrec.data.splits import SPLITS
from pslrec.errors import ConfigError
from pslrec.files import parsed_toml, read_text
from pslrec.losses import LOSSES
from pslrec.registry import Registry, constructor_parameters

logger = logging.getLogger(__name__)

SEARCHED_WITH_WALKS = ("walks.popularity_exponent", "walks.transition_exponent")
SEARCHED_WITH_REGRESSION = ("walks.regression_l1", "walks.regression_l2")
# Settings of earlier versions, and what to do about them.
RETIRED = dict.fromkeys(
    ("walks.regularization", "walks.regression_items"),
    "it was of a regression by EASE, and now SLIM stands in its place; leave it out, or set "
    "`walks.regression_l1` and `walks.regression_l2`",
)


class RunConfig(Section):
    """A whole run. `RunConfig()` trains PSL-relu on MF on the embedded data.

    >>> settings = {"loss.name": "sl", "loss.temperature": 0.2, "training.epochs": 3}
    >>> config = RunConfig.from_settings(settings)
    >>> config.loss.name, config.loss.options(), config.training.epochs
    ('sl', {'temperature': 0.2}, 3)
    >>> RunConfig.from_settings({"training.epoch": 3})
    Traceback (most recent call last):
    pslrec.errors.ConfigError: unknown setting `training.epoch`; did you mean `training.epochs`?
    """

    data: DataSection = DataSection()
    backbone: BackboneSection = BackboneSection()
    loss: LossSection = LossSection()
    sampling: SamplingSection = SamplingSection()
    training: TrainingSection = TrainingSection()
    walks: WalksSection = WalksSection()
    evaluation: EvaluationSection = EvaluationSection()
    auto: AutoSection = AutoSection()

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], base: "RunConfig | None" = None
    ) -> "RunConfig":
        """A configuration from settings by dotted name.

        Args:
            settings: by name, such as `training.epochs`; a whole section may be given as a mapping.
            base: supplies everything that `settings` leaves out; the defaults if not given.
        """
        tree: dict[str, Any] = {}
        if base is not None:
            # What was not set stays so: `given` tells what was.
            tree = base.model_dump(exclude_none=True, exclude_unset=True)
        for name, value in settings.items():
            if name in cls.model_fields and not isinstance(value, Mapping):
                allowed = ", ".join(_settings_of(name))
                raise ConfigError(f"`{name}` is a section, set one of its settings: {allowed}")
            *path, last = name.split(".")
            node = tree
            for part in path:
                node = node.setdefault(part, {})
                if not isinstance(node, dict):
                    raise ConfigError(_unknown(name))
            node[last] = value
        return cls.checked(tree)

    @classmethod
    def checked(cls, tree: Mapping[str, Any]) -> "RunConfig":
        """A configuration from nested sections, with the options of every part checked.

        Args:
            tree: sections by name, each a mapping of its settings; an error names the setting.
        """
        try:
            config = cls.model_validate(tree)
        except ValidationError as error:
            raise ConfigError(_explained(error)) from None
        # A lookup raises if there is no such split.
        SPLITS[config.data.split]
        component_options(BACKBONES, config.backbone, "backbone", given_elsewhere=NOT_SETTINGS)
        # Constructing a loss costs nothing, and only the loss knows which values it cannot take.
        LOSSES[config.loss.name](**component_options(LOSSES, config.loss, "loss"))
        return config

    @classmethod
    def from_toml(cls, path: Path) -> "RunConfig":
        """Read a configuration file; unknown settings are refused.

        Args:
            path: of the file. If it lies in a run directory, the run's parts from outside of pslrec
                must be at hand, and the error says what to install or to import.
        """
        # A shell passes the output of a command, `<(...)`, as a pipe.
        text = read_text(path, may_be_pipe=True, error=ConfigError)
        tree = parsed_toml(text, path, error=ConfigError)
        # Before the names are looked up: the registry knows no more than that they are unknown.
        check_parts(path.parent, tree)
        return cls.checked(tree)

    def to_toml(self) -> str:
        """The configuration as TOML; settings without a value are left out."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    def given_toml(self) -> str:
        """As TOML, but only the settings that were `given`."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True, exclude_unset=True))

    def given(self) -> set[str]:
        """Names of the settings that were set, to whatever value; the others have their defaults.

        >>> sorted(RunConfig.from_settings({"training.epochs": 200, "loss.name": "sl"}).given())
        ['loss.name', 'training.epochs']
        """
        return set(flat_settings(self.model_dump(exclude_unset=True)))

    def part_names(self) -> dict[str, str]:
        """The names of the loss and the backbone, by section."""
        return {"loss": self.loss.name, "backbone": self.backbone.name}

    def resolved(self) -> "RunConfig":
        """The same with every default written out: a run stays the same when defaults change."""
        loss = LOSSES[self.loss.name]
        backbone = BACKBONES[self.backbone.name]
        is_paper = self.evaluation.protocol == "paper"

        negatives = self.sampling.negatives
        if negatives is None and is_paper:
            negatives = loss.default_negatives
        elif negatives is None:
            negatives = "auto"
        if negatives == "auto":
            negatives = self._possible_negatives()

        # A setting overrides the loss, and the loss overrides the backbone: the paper starts every
        # backbone with Xavier-normal for BPR.
        initialization = self.backbone.options().get("initialization")
        initialization = initialization or loss.initialization or backbone.default_initialization

        validation = self.data.validation
        if validation is None and not is_paper:
            validation = "fraction"
        elif validation is None and self.data.is_shifted:
            # The paper has no validation part where the test part is of another distribution.
            validation = "none"
        elif validation is None:
            validation = "paper"

        return self.from_settings(
            {
                "auto.chosen": self._chosen(),
                "data.validation": validation,
                "sampling.negatives": negatives,
                "loss": {"name": self.loss.name, **_defaults(loss), **self.loss.options()},
                "backbone": {
                    "name": self.backbone.name,
                    **_defaults(backbone, leave_out=NOT_SETTINGS),
                    **self.backbone.options(),
                    "initialization": initialization,
                },
            },
            base=self,
        )

    def _chosen(self) -> tuple[str, ...]:
        """Names of what was chosen or will be: with an open weight, what is searched with it."""
        chosen = set(self.auto.chosen)
        if self.walks.weight == "auto":
            # Once all settings are written out, only this tells that they were not given.
            chosen |= set(SEARCHED_WITH_WALKS) - self.given()
        if self.walks.regression == "auto":
            chosen |= set(SEARCHED_WITH_REGRESSION) - self.given()
        return tuple(sorted(chosen))

    def _possible_negatives(self) -> int | str:
        """The loss's number of sampled negatives where it cannot be trained on the catalogue."""
        loss = LOSSES[self.loss.name](**component_options(LOSSES, self.loss, "loss"))
        why_not = loss.why_not_on_catalog(has_noise=self.sampling.noise.probability > 0)
        if why_not is None:
            return "auto"
        logger.info(
            "%s; it is trained with %d sampled negatives per positive",
            why_not,
            loss.default_negatives,
        )
        return loss.default_negatives


def _defaults(part: Callable[..., Any], leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    defaults = {}
    for parameter in constructor_parameters(part):
        if parameter.name not in leave_out and parameter.default is not parameter.empty:
            defaults[parameter.name] = parameter.default
    return defaults


def component_options(
    registry: Registry[Any],
    section: ComponentSection,
    where: str,
    *,
    given_elsewhere: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The options of a component, after checking that its constructor takes them, by name and type.

    Args:
        registry: of the components of its kind.
        section: its name and options.
        where: name of the section, for messages.
        given_elsewhere: arguments of the constructor that are not options.
    """
    part = registry[section.name]
    given = section.options()
    parameters = constructor_parameters(part)
    allowed = [each.name for each in parameters if each.name not in given_elsewhere]
    for name in given:
        if name not in allowed:
            hint = "it"
            near = get_close_matches(name, allowed, n=1)
            if near:
                hint = f"did you mean `{where}.{near[0]}`? It"
            listed = ", ".join(f"`{where}.{other}`" for other in allowed) or "none"
            raise ConfigError(
                f"{where} `{section.name}` has no setting `{where}.{name}`; {hint} has {listed}"
            )

    # The annotations of the constructor are the types of the settings: a model made of them checks
    # and explains like every other section. An argument without annotation takes anything.
    hints = get_type_hints(part.__init__)
    fields: dict[str, Any] = {name: (hints.get(name, Any), ...) for name in given}
    model = create_model(where, __base__=Section, **fields)
    try:
        options = model.model_validate(given)
    except ValidationError as error:
        raise ConfigError(_explained(error, f"{where}.")) from None
    return dict(options)


PLAIN = "Input should be "


def _explained(error: ValidationError, prefix: str = "") -> str:
    """One sentence about the first thing that is wrong."""
    first, *others = error.errors()
    name = prefix + ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return _unknown(name)

    messages = [first["msg"]]
    setting = _setting_above(name, first)
    if setting is not None:
        name = setting
        messages += [other["msg"] for other in others if other["input"] == first["input"]]

    # Several kinds of values may be refused for the same reason, which is said once.
    reasons = dict.fromkeys(message.removeprefix(PLAIN) for message in messages)
    message = " or ".join(reasons)
    if first["msg"].startswith(PLAIN):
        return f"`{name}` should be {message}, got {first.get('input')!r}"
    return f"`{name}`: {message}"


def _setting_above(name: str, first: ErrorDetails) -> str | None:
    """The setting of several kinds that an error is about.

    Such a setting has an error for each of its kinds, at places below its own name; places in a
    list, which are numbers, stay as they are.
    """
    if not isinstance(first["loc"][-1], str):
        return None
    for setting in setting_names():
        if name.startswith(f"{setting}."):
            return setting
    return None


def without_retired(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a finished run without those that earlier versions had and this one has not.

    Args:
        settings: nested sections.
    """
    kept = {}
    for section, values in settings.items():
        kept[section] = values
        if isinstance(values, Mapping):
            names = [name for name in values if f"{section}.{name}" not in RETIRED]
            kept[section] = {name: values[name] for name in names}
    auto = kept.get("auto", {})
    if "chosen" in auto:
        auto["chosen"] = [name for name in auto["chosen"] if name not in RETIRED]
    return kept


def _unknown(name: str) -> str:
    if name in RETIRED:
        return f"`{name}` is no longer a setting: {RETIRED[name]}"
    names = setting_names()
    sections = {known.split(".")[0] for known in names}
    near = get_close_matches(name, names, n=1) or get_close_matches(name, sections, n=1)
    if near:
        return f"unknown setting `{name}`; did you mean `{near[0]}`?"
    return f"unknown setting `{name}`; the settings are {', '.join(names)}"


def _settings_of(section: str) -> list[str]:
    return [name for name in setting_names() if name.startswith(f"{section}.")]


def setting_names(section: type[BaseModel] = RunConfig, prefix: str = "") -> list[str]:
    """Dotted names of all settings, without the options of particular losses and backbones.

    Args:
        section: where to start.
        prefix: of the names in it.
    """
    names = []
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            names += setting_names(kind, f"{prefix}{name}.")
        else:
            names.append(prefix + name)
    return names
