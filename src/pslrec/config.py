"""What a run is made of: one typed section per stage, strict TOML in and out."""

import inspect
import re
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import tomli_w
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt, ValidationError, create_model
from pydantic_core import PydanticCustomError

from pslrec.backbones import BACKBONES
from pslrec.data.splits import SPLITS
from pslrec.errors import ConfigError
from pslrec.losses import LOSSES
from pslrec.registry import Registry
from pslrec.training import TrainingOptions

# Splits whose test part is of another distribution than training; published ones have the name at the end of theirs.
SHIFTED_SPLITS = ("popularity", "temporal")


class Section(BaseModel):
    """A section that knows its settings and refuses others; a number in quotes, or true for 1, is a mistake."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_default=True, protected_namespaces=()
    )


class DataSection(Section):
    """Where interactions come from, and how they are divided."""

    source: str = Field("debian", description="a file, directory, zip, or the name of a data set")
    split: str = Field("iid", description="how to divide interactions that do not come split")
    train_fraction: float | None = Field(None, gt=0, lt=1, description="share of the training part, 0.8 if not given")
    split_seed: int = Field(0, description="seed of the split; 0 gives the published ones")
    validation: Literal["paper", "fraction", "none"] | None = Field(
        None, description="how validation is carved out of training; by protocol and split if not given"
    )
    validation_seed: int = Field(2024, description="seed of the validation part")
    minimum_rating: float | None = Field(None, description="remove interactions rated lower")
    k_core: int = Field(0, ge=0, description="interactions that every user and item must have")
    repair: bool = Field(False, description="drop test pairs that are in training, or never trained on")

    @property
    def is_shifted(self) -> bool:
        """Whether the test part is of another distribution; the paper has no validation part for those."""
        ending = Path(self.source).stem.rpartition("-")[2]
        return self.split in SHIFTED_SPLITS or ending in SHIFTED_SPLITS


class ComponentSection(BaseModel):
    """A part chosen by name; its other settings are the arguments of its constructor."""

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())
    name: str

    def options(self) -> dict[str, Any]:
        """The settings beside the name."""
        return dict(self.model_extra or {})


class BackboneSection(ComponentSection):
    """The backbone and its options."""

    name: str = "mf"


class LossSection(ComponentSection):
    """The loss and its options."""

    name: str = "psl-relu"


class NoiseSection(Section):
    """False negatives, for the paper's noise setting; probability 0 leaves it out."""

    probability: float = Field(0.0, ge=0, le=1, description="of a draw among the false negatives")
    fraction: float = Field(0.1, gt=0, lt=1, description="share of the training pairs declared false negatives")
    scope: Literal["global", "per-user"] = Field("global", description="draw them among all pairs, or of each user")
    keep_positives: bool = Field(False, description="whether they stay positives as well")
    before_validation: bool = Field(False, description="declare them before the validation part is carved out")
    hide_at_test: bool = Field(False, description="whether they are hidden from the ranked lists")
    seed: int = Field(0, description="of the draw")


def _checked_negatives(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool) and value > 0
    is_name = isinstance(value, str) and (value == "catalog" or re.fullmatch(r"shared:[1-9][0-9]*", value))
    if value is None or is_number or is_name:
        return value
    raise PydanticCustomError(
        "negatives", "Input should be a number above 0, 'catalog', or 'shared:N' with a number N such as 8192"
    )


class SamplingSection(Section):
    """Batches, and where negatives come from."""

    negatives: Annotated[int | str | None, BeforeValidator(_checked_negatives)] = Field(
        None,
        description='per positive, "catalog" for all there are, or "shared:8192" for so many per block of users; '
        "the loss's own number if not given",
    )
    batch_pairs: int = Field(1024, ge=1, description="positive pairs of a step, about so many with the catalogue")
    replacement: bool = Field(True, description="whether an item may be drawn twice for a positive")
    include_positives: bool = Field(False, description="with the catalogue: a user's positives are negatives as well")
    noise: NoiseSection = NoiseSection()

    @property
    def n_shared(self) -> int | None:
        """The 8192 of "shared:8192"; `None` where negatives come from elsewhere."""
        is_shared = isinstance(self.negatives, str) and self.negatives.startswith("shared:")
        return int(str(self.negatives).removeprefix("shared:")) if is_shared else None


class TrainingSection(Section):
    """The loop and its optimiser."""

    learning_rate: float = Field(0.01, gt=0, description="of Adam")
    schedule: Literal["constant", "cosine", "linear"] = Field(
        "constant", description="how the learning rate falls over the epochs"
    )
    weight_decay: float = Field(0.0, ge=0, description="coupled into the gradient, for every row at every step")
    epochs: int = Field(200, ge=1, description="passes over the training pairs")
    validate_every: int = Field(5, ge=1, description="epochs between two looks at the validation part")
    patience: int = Field(0, ge=0, description="looks without a better one before stopping early; 0 never stops early")
    checkpoint_seconds: float = Field(30.0, ge=0, description="time between two checkpoints")
    seed: int = Field(2024, description="of everything random in training")
    refit: bool = Field(False, description="train again on training and validation data, for as many epochs as chosen")
    warm_start: str | None = Field(None, description="directory of a finished run whose users and items to start from")

    def trainer_options(self) -> TrainingOptions:
        """As the trainer takes them."""
        return TrainingOptions(**self.model_dump(exclude={"refit", "warm_start"}))


def _as_tuple(value: object) -> object:
    # TOML has lists; a single number is a list of one.
    return tuple(value) if isinstance(value, list) else (value,) if isinstance(value, int) else value


class EvaluationSection(Section):
    """How a model is judged."""

    k: Annotated[tuple[PositiveInt, ...], BeforeValidator(_as_tuple)] = Field(
        (5, 20, 50), min_length=1, description="lengths of the ranked lists"
    )
    protocol: Literal["strict", "paper"] = Field("strict", description="what is hidden, and who counts; see the docs")
    memory_megabytes: int = Field(256, ge=16, description="what an evaluation may use")


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
    def from_settings(cls, settings: Mapping[str, Any], base: "RunConfig | None" = None) -> "RunConfig":
        """Settings by dotted name, over those of `base` or the defaults."""
        tree: dict[str, Any] = {} if base is None else base.model_dump(exclude_none=True)
        for name, value in settings.items():
            *path, last = name.split(".")
            if name in cls.model_fields and not isinstance(value, Mapping):
                raise ConfigError(f"`{name}` is a section, set one of its settings: {', '.join(_settings_of(name))}")
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
        try:
            return cls.checked(tomllib.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise ConfigError(f"{path} can not be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not TOML: {error}") from error

    def to_toml(self) -> str:
        """The configuration as TOML; what is not set is left out."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    def resolved(self) -> "RunConfig":
        """The same with every default written out, so that it stays the same run when defaults change."""
        loss, backbone = LOSSES[self.loss.name], BACKBONES[self.backbone.name]
        negatives = loss.default_negatives if self.sampling.negatives is None else self.sampling.negatives
        initialization = self.backbone.options().get("initialization") or loss.initialization
        by_protocol = (
            "fraction" if self.evaluation.protocol == "strict" else "none" if self.data.is_shifted else "paper"
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


def _defaults(part: Callable[..., Any], leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    parameters = inspect.signature(part).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in leave_out and p.default is not p.empty}


def component_options(
    registry: Registry[Any], section: ComponentSection, where: str, *, given_elsewhere: tuple[str, ...] = ()
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
            raise ConfigError(f"{where} `{section.name}` has no setting `{where}.{name}`; {hint} has {listed}")
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
    return f"`{name}` should be {message}, got {first.get('input')!r}" if is_plain else f"`{name}`: {message}"


def _unknown(name: str) -> str:
    names = setting_names()
    near = get_close_matches(name, names, n=1) or get_close_matches(name, {known.split(".")[0] for known in names}, n=1)
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
