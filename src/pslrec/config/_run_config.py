"""A whole configuration: sections in, strict TOML in and out."""

import inspect
import logging
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints

import tomli_w
from pydantic import BaseModel, ValidationError, create_model

from pslrec.backbones import BACKBONES
from pslrec.config._sections import (
    BackboneSection,
    ComponentSection,
    DataSection,
    EvaluationSection,
    LossSection,
    SamplingSection,
    Section,
    TrainingSection,
)
from pslrec.data.splits import SPLITS
from pslrec.errors import ConfigError
from pslrec.files import parsed_toml, read_text
from pslrec.losses import LOSSES
from pslrec.registry import Registry

logger = logging.getLogger(__name__)


class RunConfig(Section):
    """A whole run. `RunConfig()` trains PSL-relu on MF on the embedded data.

    >>> config = RunConfig.from_settings({"loss.name": "sl", "loss.temperature": 0.2, "training.epochs": 3})
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
    evaluation: EvaluationSection = EvaluationSection()

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], base: "RunConfig | None" = None
    ) -> "RunConfig":
        """Settings by dotted name, over those of `base` or the defaults."""
        tree: dict[str, Any] = {} if base is None else base.model_dump(exclude_none=True)
        for name, value in settings.items():
            *path, last = name.split(".")
            if name in cls.model_fields and not isinstance(value, Mapping):
                raise ConfigError(
                    f"`{name}` is a section, set one of its settings: {', '.join(_settings_of(name))}"
                )
            node = tree
            for part in path:
                node = node.setdefault(part, {})
                if not isinstance(node, dict):
                    raise ConfigError(_unknown(name))
            node[last] = value
        return cls.checked(tree)

    @classmethod
    def checked(cls, tree: Mapping[str, Any]) -> "RunConfig":
        """A configuration from nested sections, with errors that name the setting, and every part's options checked."""
        try:
            config = cls.model_validate(tree)
        except ValidationError as error:
            raise ConfigError(_explained(error)) from None
        SPLITS[config.data.split]
        component_options(BACKBONES, config.backbone, "backbone", given_elsewhere=("train", "seed"))
        # Constructing a loss costs nothing, and it knows which values it can not take.
        LOSSES[config.loss.name](**component_options(LOSSES, config.loss, "loss"))
        return config

    @classmethod
    def from_toml(cls, path: Path) -> "RunConfig":
        """Read a configuration file; unknown settings are refused."""
        # A shell hands over what a command writes as a pipe.
        text = read_text(path, may_be_pipe=True, error=ConfigError)
        return cls.checked(parsed_toml(text, path, error=ConfigError))

    def to_toml(self) -> str:
        """The configuration as TOML; what is not set is left out."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    def resolved(self) -> "RunConfig":
        """The same with every default written out, so that it stays the same run when defaults change."""
        loss, backbone = LOSSES[self.loss.name], BACKBONES[self.backbone.name]
        is_paper = self.evaluation.protocol == "paper"
        negatives = self.sampling.negatives or (loss.default_negatives if is_paper else "auto")
        if negatives == "auto":
            negatives = self._possible_negatives()
        initialization = self.backbone.options().get("initialization") or loss.initialization
        by_protocol = (
            "fraction"
            if self.evaluation.protocol == "strict"
            else "none"
            if self.data.is_shifted
            else "paper"
        )
        return self.from_settings(
            {
                "data.validation": self.data.validation or by_protocol,
                "sampling.negatives": negatives,
                "loss": {"name": self.loss.name, **_defaults(loss), **self.loss.options()},
                "backbone": {
                    "name": self.backbone.name,
                    **_defaults(backbone, leave_out=("train", "seed")),
                    **self.backbone.options(),
                    "initialization": initialization or backbone.default_initialization,
                },
            },
            base=self,
        )

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
    parameters = inspect.signature(part).parameters.values()
    return {
        p.name: p.default
        for p in parameters
        if p.name not in leave_out and p.default is not p.empty
    }


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
        given_elsewhere: arguments of the constructor that are no options.
    """
    part = registry[section.name]
    allowed = [name for name in inspect.signature(part).parameters if name not in given_elsewhere]
    for name in section.options():
        if name not in allowed:
            near = get_close_matches(name, allowed, n=1)
            hint = f"did you mean `{where}.{near[0]}`? It" if near else "it"
            listed = ", ".join(f"`{where}.{other}`" for other in allowed) or "none"
            raise ConfigError(
                f"{where} `{section.name}` has no setting `{where}.{name}`; {hint} has {listed}"
            )
    hints = get_type_hints(part.__init__)
    fields: dict[str, Any] = {name: (hints.get(name, Any), ...) for name in section.options()}
    try:
        options = create_model(where, __base__=Section, **fields).model_validate(section.options())
    except ValidationError as error:
        raise ConfigError(_explained(error, f"{where}.")) from None
    return {name: getattr(options, name) for name in fields}


def _explained(error: ValidationError, prefix: str = "") -> str:
    first, *others = error.errors()
    name = prefix + ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return _unknown(name)
    messages = [first["msg"]]
    # A setting of several kinds has an error for each of them, at places below its own name.
    known = next((known for known in setting_names() if name.startswith(f"{known}.")), name)
    if known != name and isinstance(first["loc"][-1], str):
        name = known
        messages += [other["msg"] for other in others if other["input"] == first["input"]]
    message = " or ".join(dict.fromkeys(text.removeprefix("Input should be ") for text in messages))
    is_plain = first["msg"].startswith("Input should be ")
    return (
        f"`{name}` should be {message}, got {first.get('input')!r}"
        if is_plain
        else f"`{name}`: {message}"
    )


def _unknown(name: str) -> str:
    names = setting_names()
    near = get_close_matches(name, names, n=1) or get_close_matches(
        name, {known.split(".")[0] for known in names}, n=1
    )
    hint = f"did you mean `{near[0]}`?" if near else f"the settings are {', '.join(names)}"
    return f"unknown setting `{name}`; {hint}"


def _settings_of(section: str) -> list[str]:
    return [name for name in setting_names() if name.startswith(f"{section}.")]


def setting_names(section: type[BaseModel] = RunConfig, prefix: str = "") -> list[str]:
    """Dotted names of all settings, without those of single losses and backbones."""
    names = []
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            names += setting_names(kind, f"{prefix}{name}.")
        else:
            names.append(prefix + name)
    return names
