"""The cells of a search: one configuration for each combination of values."""

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pslrec.config import RunConfig, component_options
from pslrec.errors import ConfigError
from pslrec.losses import LOSSES

Grid = Mapping[str, Sequence[Any]]
# Cells that differ in these are judged on different data, so their values say nothing about each other.
NOT_SEARCHED = ("data.", "evaluation.", "sampling.noise.")


@dataclass(frozen=True)
class Cell:
    """One combination of values.

    Args:
        settings: the value of each setting that is searched.
        config: the whole run.
        key: name of its directory, which depends on the configuration alone.
    """

    settings: Mapping[str, Any]
    config: RunConfig
    key: str

    def described(self) -> str:
        """The settings in words, sections left out."""
        return ", ".join(
            f"{name.rpartition('.')[2]} {value}" for name, value in self.settings.items()
        )


def default_grid(config: RunConfig, *, fixed: Sequence[str] = ()) -> Grid:
    """The search space of the configuration's loss, the paper's for the losses that are in it.

    Args:
        config: its loss and the options of that count.
        fixed: settings that are not to be searched.

    >>> grid = default_grid(RunConfig(), fixed=["training.weight_decay"])
    >>> {name: len(values) for name, values in grid.items()}
    {'loss.temperature': 5, 'training.learning_rate': 3}
    """
    loss = LOSSES[config.loss.name](**component_options(LOSSES, config.loss, "loss"))
    return {name: values for name, values in loss.search_space.items() if name not in fixed}


def grid_cells(config: RunConfig, grid: Grid) -> list[Cell]:
    """One cell for each combination, all of them checked; the first setting changes slowest.

    Args:
        config: what the cells have in common.
        grid: values to try for each setting.

    >>> cells = grid_cells(RunConfig(), {"loss.temperature": [0.1, 0.2], "training.learning_rate": [0.1]})
    >>> [cell.described() for cell in cells]
    ['temperature 0.1, learning_rate 0.1', 'temperature 0.2, learning_rate 0.1']
    """
    for name, values in grid.items():
        if name.startswith(NOT_SEARCHED):
            raise ConfigError(
                f"`{name}` can not be searched: cells would be judged on different data; set it for all"
            )
        if not values:
            raise ConfigError(f"the grid has no value for `{name}`")
    cells: dict[str, Cell] = {}
    for values in itertools.product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        cell_config = RunConfig.from_settings(settings, base=config).resolved()
        key = cell_key(cell_config)
        cells.setdefault(key, Cell(settings, cell_config, key))
    return list(cells.values())


def cell_key(config: RunConfig) -> str:
    """A short name for a resolved configuration; settings at their default do not count, so new ones change no name."""
    text = json.dumps(config.model_dump(mode="json", exclude_defaults=True), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
