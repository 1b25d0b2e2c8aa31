"""A cell of a table: one run, what it is called in the results, and what was printed for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pslrec.config import RunConfig
from pslrec.losses import LOSSES
from pslrec.reporting import RUN_COLUMNS, canonical

Identity = tuple[str, ...]
DISTINCT = " distinct"


@dataclass(frozen=True, eq=False)
class Cell:
    """One run of a table.

    Args:
        table: which one.
        dataset: by its printed name, as `backbone` and `loss`.
        backbone: on which the loss trains.
        loss: what is compared.
        setting: of its part, and after a comma what is unusual about it.
        source: name of the data set's source, or its file.
        split: which split of the data.
        settings: of the run, by dotted name, all but the data.
        published: what was printed, by metric.
        published_in: the file that says so, without ending.
        settings_from: where the settings were printed.
    """

    table: str
    dataset: str
    backbone: str
    loss: str
    setting: str
    source: str
    split: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, float] = field(default_factory=dict)
    published_in: str = ""
    settings_from: str = ""

    @property
    def seed(self) -> int:
        """Of training."""
        return int(self.settings["training.seed"])

    @property
    def epochs(self) -> int:
        """Of training."""
        return int(self.settings["training.epochs"])

    def columns(self) -> dict[str, str]:
        """The columns of its row that are known before it runs."""
        return {
            "table": self.table,
            "dataset": self.dataset,
            "backbone": self.backbone,
            "loss": self.loss,
            "setting": self.setting,
            **columns_of_settings(self.settings),
        }

    @property
    def identity(self) -> Identity:
        """Equal to that of its row."""
        return identity_of(self.columns())

    def config(self, data: Path | str) -> RunConfig:
        """The configuration of its run."""
        return RunConfig.from_settings({"data.source": str(data), **self.settings})

    def label(self) -> str:
        """For people: what distinguishes it."""
        columns = self.columns()
        return f"{label_of(columns)}, {columns['protocol']}, seed {self.seed}"


def label_of(columns: Mapping[str, str]) -> str:
    """What distinguishes the cell of a row, for people."""
    place = f"{columns['dataset']}, {columns['backbone']}"
    return f"{place}, {loss_label(columns)}, {way_label(columns)}"


def loss_label(columns: Mapping[str, str]) -> str:
    """The loss of a row, and at which level of noise it was trained."""
    parts = [columns["loss"]]
    # The usual form goes without saying.
    if columns["form"] == "inside":
        parts.append("inside")
    if float(columns["noise"] or 0):
        parts.append(f"p {columns['noise']}")
    return ", ".join(parts)


def way_label(columns: Mapping[str, str]) -> str:
    """The setting of a row, and its negatives."""
    negatives = columns["negatives"]
    if negatives == "1":
        negatives += " negative"
    elif columns["mode"] == "sampled":
        negatives += " negatives"
    return f"{columns['setting']}, {negatives}"


def columns_of_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """The columns that a row takes from the settings of its run."""
    negatives = settings.get("sampling.negatives")
    if negatives is None:
        negatives = LOSSES[settings["loss.name"]].default_negatives
    mode = "sampled"
    if isinstance(negatives, str):
        mode = negatives
    elif not settings.get("sampling.replacement", True):
        negatives = f"{negatives}{DISTINCT}"
    temperature = settings.get("loss.temperature", settings.get("loss.negative_temperature", ""))
    values = {
        "form": settings.get("loss.form", ""),
        "noise": float(settings.get("sampling.noise.probability", 0.0)),
        "mode": mode,
        "protocol": settings.get("evaluation.protocol", "strict"),
        "seed": settings.get("training.seed", ""),
        "temperature": temperature,
        "learning_rate": settings.get("training.learning_rate", ""),
        "weight_decay": settings.get("training.weight_decay", ""),
        "dimension": settings.get("backbone.dimension", ""),
        "negatives": negatives,
    }
    return {name: str(value) for name, value in values.items()}


def identity_of(row: Mapping[str, str]) -> Identity:
    """What makes a row the row of a run; numbers count by value, however they are written.

    >>> row = dict.fromkeys(RUN_COLUMNS, "") | {"weight_decay": "0"}
    >>> identity_of(row) == identity_of(row | {"weight_decay": "0.0"})
    True
    """
    return tuple(canonical(row[name]) for name in RUN_COLUMNS)
