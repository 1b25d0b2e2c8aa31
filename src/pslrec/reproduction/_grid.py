"""Which cells a table has: every combination of its parts, with the printed settings."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pslrec.errors import ConfigError
from pslrec.reporting import RUN_COLUMNS
from pslrec.reproduction._cells import Cell, Identity, columns_of_settings
from pslrec.reproduction._paper import Part, read_paper
from pslrec.reproduction._published import Published, fits

DEFAULT_SEED = 2024
KINDS = {"datasets": "data set", "backbones": "backbone", "losses": "loss"}


@dataclass(frozen=True)
class Choice:
    """What to run of a table; what is `None` is as the paper has it.

    Args:
        datasets: by printed name, name of the source, or the end of either.
        backbones: by any of their names.
        losses: by any of their names.
        where: values to keep, by column of the results.
        seeds: of training.
        modes: `sampled`, `catalog`.
        protocols: `paper`, `strict`.
        epochs: other than the published number only to try something; its rows say so.
        settings: that replace those of the paper, by dotted name; rows say so, too.
    """

    datasets: Sequence[str] | None = None
    backbones: Sequence[str] | None = None
    losses: Sequence[str] | None = None
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)
    seeds: Sequence[int] | None = None
    modes: Sequence[str] | None = None
    protocols: Sequence[str] | None = None
    epochs: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


class Grid:
    """The cells of all tables.

    Args:
        folder: of the paper, with `paper.toml` and `published/`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paper = read_paper(folder)
        self.published = Published(folder)

    def is_try(self, choice: Choice) -> bool:
        """Whether a choice is not what the paper did, so that its rows stay apart."""
        usual = self.paper.settings.get("training.epochs")
        return bool(choice.settings) or choice.epochs not in (None, usual)

    def cells(self, table: str, choice: Choice) -> list[Cell]:
        """The cells of a table that are chosen; those without printed settings are left out.

        Args:
            table: one of `paper.tables`.
            choice: what to run of it.
        """
        if table not in self.paper.tables:
            raise ConfigError(
                f"there is no table `{table}` in this paper; there are "
                f"{', '.join(self.paper.tables)}"
            )
        for column in choice.where:
            if column not in RUN_COLUMNS:
                raise ConfigError(
                    f"`where` must name a column of the results: {', '.join(RUN_COLUMNS)}; "
                    f"got `{column}`"
                )
        parts = self.paper.tables[table].parts
        found: dict[Identity, Cell] = {}
        for part in parts:
            for cell in self._cells_of(table, self._narrowed(part, choice), choice):
                known = found.setdefault(cell.identity, cell)
                if known.settings != cell.settings:
                    raise ConfigError(
                        f"table `{table}` has two cells {cell.label()}, whose settings differ; "
                        "give one of them another `setting` or a variant"
                    )
        if not found:
            datasets = dict.fromkeys(name for part in parts for name in part.datasets)
            raise ConfigError(
                f"table `{table}` has no cell of these data sets, backbones and losses with "
                f"printed settings; its data sets are {', '.join(datasets)}"
            )
        return list(found.values())

    def lists(self, table: str, choice: Choice) -> bool:
        """Whether the paper itself has what is chosen in a table."""
        for part in self.paper.tables[table].parts:
            narrowed = self._narrowed(part, choice)
            if all(set(getattr(narrowed, kind)) & set(getattr(part, kind)) for kind in KINDS):
                return True
        return False

    def _narrowed(self, part: Part, choice: Choice) -> Part:
        chosen = {}
        for kind, word in KINDS.items():
            wanted = getattr(choice, kind)
            if wanted is not None:
                chosen[kind] = tuple(chosen_names(wanted, self.paper.named(kind), word))
        return part.model_copy(update=chosen)

    def _cells_of(self, table: str, part: Part, choice: Choice) -> Iterator[Cell]:
        axes = (
            part.datasets,
            part.backbones,
            part.losses,
            part.variants,
            itertools.product(*part.vary.values()),
            choice.modes or (None,),
            choice.protocols or (None,),
            choice.seeds or (None,),
        )
        for dataset, backbone, loss, variant, varied, *made in itertools.product(*axes):
            settings = self._settings(part, dataset, backbone, loss)
            settings |= self.paper.variants.get(variant, {})
            settings |= dict(zip(part.vary, varied, strict=True))
            _choose(settings, *made)
            names = {"dataset": dataset, "backbone": backbone, "loss": loss}
            cell = self._printed(part, names, settings, table=table, variant=variant)
            if cell is not None and fits(cell.columns(), choice.where):
                yield self._tried(cell, choice)

    def _settings(self, part: Part, dataset: str, backbone: str, loss: str) -> dict[str, Any]:
        exceptions = self.paper.exceptions.get(backbone, {}).get(dataset, {})
        settings = dict(self.paper.settings)
        for name, value in {**self.paper.backbones[backbone], **exceptions}.items():
            settings[f"backbone.{name}"] = value
        for name, value in self.paper.losses[loss].items():
            if name != "settings_of":
                settings[f"loss.{name}"] = value
        return settings | part.settings

    def _printed(
        self,
        part: Part,
        names: Mapping[str, str],
        settings: dict[str, Any],
        *,
        table: str,
        variant: str,
    ) -> Cell | None:
        """The cell with what was printed for it; `None` if its settings were not."""
        columns = {**columns_of_settings(settings), **names, "setting": part.setting}
        where = ""
        if part.settings_from:
            losses = [names["loss"]]
            if part.stand_ins:
                losses += self.paper.losses[names["loss"]].get("settings_of", [])
            for loss in losses:
                hyper = self.published.find(part.settings_from, columns | {"loss": loss})
                if hyper.row:
                    settings = settings | hyper.settings()
                    where = f"{hyper.file}: {loss}"
                    break
            else:
                return None
        found = self.published.find(part.published, columns)
        return Cell(
            table=table,
            setting=", ".join(filter(None, (part.setting, variant))),
            source=self.paper.datasets[names["dataset"]],
            split=part.split,
            settings=settings,
            published=found.values(self.metrics),
            published_in=found.file,
            settings_from=where,
            **names,
        )

    def _tried(self, cell: Cell, choice: Choice) -> Cell:
        if not self.is_try(choice):
            return cell
        settings = {**cell.settings, **choice.settings}
        unusual = [cell.setting]
        for name, value in choice.settings.items():
            unusual.append(f"{name} {value}")
        if choice.epochs is not None:
            settings["training.epochs"] = choice.epochs
            unusual.append(f"{choice.epochs} epochs")
        return replace(cell, settings=settings, setting=", ".join(unusual))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the paper as columns of results name them, such as `ndcg20`."""
        return tuple(name.replace("@", "") for name in self.paper.metrics)


def _choose(
    settings: dict[str, Any], mode: str | None, protocol: str | None, seed: int | None
) -> None:
    if mode == "sampled":
        if isinstance(settings.get("sampling.negatives"), str):
            del settings["sampling.negatives"]
    elif mode is not None:
        settings["sampling.negatives"] = mode
    if protocol is not None:
        settings["evaluation.protocol"] = protocol
    settings.setdefault("training.seed", DEFAULT_SEED)
    if seed is not None:
        settings["training.seed"] = seed


def chosen_names(wanted: Sequence[str], names: Mapping[str, str], kind: str) -> list[str]:
    """Printed names of what was asked for.

    >>> chosen_names(["electronic"], {"Amazon-Electronic": "amazon-electronic"}, "data set")
    ['Amazon-Electronic']
    """
    known: dict[str, str] = {}
    for printed, own in names.items():
        for alias in (printed.lower().rpartition("-")[2], own, printed.lower()):
            known[alias] = printed
    for name in wanted:
        if name.lower() not in known:
            near = get_close_matches(name.lower(), known, n=1)
            hint = f"there are {', '.join(names)}"
            if near:
                hint = f"did you mean `{near[0]}`?"
            raise ConfigError(f"there is no {kind} `{name}` in this paper; {hint}")
    return list(dict.fromkeys(known[name.lower()] for name in wanted))
