"""Which cells a table has: every combination of its parts, with the printed settings, as `grid.toml` says."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pslrec.errors import ConfigError
from pslrec.files import read_toml
from pslrec.reproduction.cells import PUBLISHED_EPOCHS, Cell
from pslrec.reproduction.published import Hyperparameters, Published, Value

PSL = "PSL-"
DEFAULT_SEED = 2024


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Part(_Strict):
    """A part of a table: every combination of its lists is a cell."""

    table: str
    setting: Literal["iid", "ood", "noise"]
    datasets: tuple[str, ...]
    backbones: tuple[str, ...]
    losses: tuple[str, ...]
    noise: tuple[float, ...] = (0.0,)
    forms: tuple[str, ...] = ("outside",)
    interpretations: tuple[str, ...] = ("removed",)


class Round(_Strict):
    """After so many epochs, how many trials of each learning rate go on."""

    epochs: int
    keep: int


class Search(_Strict):
    """Values to try on validation data."""

    temperature: tuple[float, ...]
    learning_rate: tuple[float, ...]
    rounds: tuple[Round, ...] = ()


class GridFile(_Strict):
    """What `grid.toml` holds."""

    settings: dict[str, Any]
    datasets: dict[str, str]
    backbones: dict[str, dict[str, Any]]
    exceptions: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)
    losses: dict[str, dict[str, Any]]
    interpretations: dict[str, dict[str, Any]]
    search: Search
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Choice:
    """What to run of a table; what is `None` is what the table lists.

    Args:
        datasets: by printed name, name of the source, or the end of either.
        backbones: by any of their names.
        losses: by any of their names.
        noise: levels of the noise setting; cells of the other settings stay.
        seeds: of training.
        modes: `sampled`, `catalog`.
        protocols: `paper`, `strict`.
        epochs: other than the published number only to try something; its rows say so.
        replacement: whether a sampled negative may be drawn twice for a positive.
        last_epoch: in the OOD setting take the last epoch instead of choosing one on the test part.
    """

    datasets: Sequence[str] | None = None
    backbones: Sequence[str] | None = None
    losses: Sequence[str] | None = None
    noise: Sequence[float] | None = None
    seeds: Sequence[int] = (DEFAULT_SEED,)
    modes: Sequence[str] = ("sampled",)
    protocols: Sequence[str] = ("paper",)
    epochs: int | None = None
    replacement: bool = True
    last_epoch: bool = False


class Grid:
    """The cells of all tables.

    Args:
        directory: holds `grid.toml` and `published/`.
    """

    def __init__(self, directory: Path) -> None:
        path = directory / "grid.toml"
        try:
            self.file = GridFile.model_validate(read_toml(path, error=ConfigError))
        except ValidationError as error:
            raise ConfigError(f"{path} is not a grid of cells: {error}") from error
        self.published = Published(directory / "published")

    def tables(self) -> list[str]:
        """Those that have cells."""
        return list(dict.fromkeys(part.table for part in self.file.parts))

    def cells(self, table: str, choice: Choice) -> list[Cell]:
        """The cells of a table that are chosen; those whose settings were never printed are left out."""
        parts = [self._narrowed(part, choice) for part in self.file.parts if part.table == table]
        cells = [cell for part in parts for cell in self._cells_of(part, choice)]
        if not cells:
            has = dict.fromkeys(
                name for part in self.file.parts if part.table == table for name in part.datasets
            )
            raise ConfigError(
                f"table `{table}` has no cell of these data sets, backbones and losses with printed settings; "
                f"its data sets are {', '.join(has)}"
            )
        return list({cell.identity: cell for cell in cells}.values())

    def _narrowed(self, part: Part, choice: Choice) -> Part:
        losses = {name: str(options["name"]) for name, options in self.file.losses.items()}
        backbones = {name: str(options["name"]) for name, options in self.file.backbones.items()}
        chosen = {
            "datasets": _chosen(choice.datasets, self.file.datasets, "data set"),
            "backbones": _chosen(choice.backbones, backbones, "backbone"),
            "losses": _chosen(choice.losses, losses, "loss"),
            "noise": _levels(part, choice.noise),
        }
        return part.model_copy(
            update={name: tuple(values) for name, values in chosen.items() if values is not None}
        )

    def _cells_of(self, part: Part, choice: Choice) -> Iterator[Cell]:
        axes = (
            part.datasets,
            part.backbones,
            part.losses,
            part.forms,
            part.noise,
            part.interpretations,
        )
        for dataset, backbone, loss, printed_form, noise, interpretation in itertools.product(
            *axes
        ):
            form = printed_form if loss.startswith(PSL) else ""
            hyper = self.hyperparameters(part.setting, dataset, backbone, loss)
            if hyper is None or form == "inside":
                continue
            settings = self.settings(dataset, backbone, loss, hyper) | self._noise(
                noise, interpretation
            )
            setting = (
                part.setting if interpretation == "removed" else f"{part.setting}, {interpretation}"
            )
            cell = Cell(
                table=part.table,
                dataset=dataset,
                backbone=backbone,
                loss=loss,
                form=form,
                setting=setting,
                source=self.file.datasets[dataset],
                settings=settings | ({"loss.form": form} if form else {}),
                published=self._published(part, dataset, backbone, loss, noise=noise, form=form),
                settings_from=hyper.where,
            )
            yield from varied(cell, choice)

    def hyperparameters(
        self, setting: str, dataset: str, backbone: str, loss: str
    ) -> Hyperparameters | None:
        """The printed settings of a loss, or of the one that stands in for it."""
        names = [loss, *self.file.losses[loss].get("settings_of", ())]
        return self.published.hyperparameters(setting, dataset, backbone, names)

    def settings(
        self, dataset: str, backbone: str, loss: str, hyper: Hyperparameters
    ) -> dict[str, Any]:
        """The settings of a run by dotted name, all but seed, protocol and negatives."""
        options = self.file.backbones[backbone] | self.file.exceptions.get(backbone, {}).get(
            dataset, {}
        )
        own = {
            name: value for name, value in self.file.losses[loss].items() if name != "settings_of"
        }
        return {
            **self.file.settings,
            **{f"backbone.{name}": value for name, value in options.items()},
            **{f"loss.{name}": value for name, value in (own | hyper.loss).items()},
            "training.learning_rate": hyper.learning_rate,
            "training.weight_decay": hyper.weight_decay,
        }

    def _noise(self, probability: float, interpretation: str) -> dict[str, Any]:
        if not probability:
            return {}
        options = self.file.interpretations[interpretation]
        noise = {f"sampling.noise.{name}": value for name, value in options.items()}
        return {"sampling.noise.probability": probability, **noise}

    def _published(
        self, part: Part, dataset: str, backbone: str, loss: str, *, noise: float, form: str
    ) -> Value:
        if part.table == "forms":
            return self.published.form_value(form, dataset, backbone, loss)
        if part.setting == "noise":
            return self.published.noise_value(dataset, backbone, loss, noise)
        return self.published.value(part.setting, dataset, backbone, loss)


def varied(cell: Cell, choice: Choice) -> Iterator[Cell]:
    """The cell for every chosen seed, mode and protocol."""
    for mode, protocol, seed in itertools.product(choice.modes, choice.protocols, choice.seeds):
        settings = dict(cell.settings) | {"training.seed": seed, "evaluation.protocol": protocol}
        unusual = []
        if mode == "catalog":
            settings["sampling.negatives"] = "catalog"
        elif not choice.replacement:
            settings["sampling.replacement"] = False
        if choice.epochs not in (None, PUBLISHED_EPOCHS):
            settings["training.epochs"] = choice.epochs
            unusual.append(f"{choice.epochs} epochs")
        if choice.last_epoch and cell.variant != "iid" and protocol == "paper":
            # One look, after the last epoch, leaves nothing to choose.
            settings["training.validate_every"] = settings["training.epochs"]
            unusual.append("last epoch")
        yield replace(cell, settings=settings, setting=", ".join([cell.setting, *unusual]))


def _levels(part: Part, wanted: Sequence[float] | None) -> list[float] | None:
    if wanted is None or part.setting != "noise":
        return None
    if unknown := [level for level in wanted if level not in part.noise]:
        listed = ", ".join(f"{level:g}" for level in part.noise)
        raise ConfigError(
            f"`noise` must be of {listed}, which table `{part.table}` has, got {unknown[0]:g}"
        )
    return list(wanted)


def _chosen(wanted: Sequence[str] | None, names: Mapping[str, str], kind: str) -> list[str] | None:
    """Printed names of what was asked for.

    >>> _chosen(["electronic"], {"Amazon-Electronic": "amazon-electronic"}, "data set")
    ['Amazon-Electronic']
    """
    if wanted is None:
        return None
    known: dict[str, str] = {}
    for printed, own in names.items():
        for alias in (printed.lower().rpartition("-")[2], own, printed.lower()):
            known[alias] = printed
    for name in wanted:
        if name.lower() not in known:
            near = get_close_matches(name.lower(), known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(names)}"
            raise ConfigError(f"there is no {kind} `{name}` in the grid; {hint}")
    return list(dict.fromkeys(known[name.lower()] for name in wanted))
