"""A cell of a table: one run, what it is called in the results, and what was printed for it."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pslrec.config import RunConfig
from pslrec.losses import LOSSES
from pslrec.reproduction.published import Value

PUBLISHED_EPOCHS = 200
# What makes two rows rows of the same run; the table they stand in is not part of it.
IDENTITY = (
    "dataset",
    "backbone",
    "loss",
    "form",
    "setting",
    "noise",
    "mode",
    "protocol",
    "seed",
    "temperature",
    "learning_rate",
    "weight_decay",
    "dimension",
    "negatives",
)
Identity = tuple[str, ...]
SOUGHT = "search"  # where settings come from that were never printed


@dataclass(frozen=True, eq=False)
class Cell:
    """One run of a table.

    Args:
        table: which one.
        dataset: by its printed name, as `backbone` and `loss`.
        backbone: on which the loss trains.
        loss: what is compared.
        form: `outside` or `inside` for PSL, empty for others.
        setting: `iid`, `ood` or `noise`, and after a comma what is unusual about it.
        source: name of the data set's source.
        settings: of the run, by dotted name, all but the data.
        published: what was printed.
        settings_from: where the settings were printed.
    """

    table: str
    dataset: str
    backbone: str
    loss: str
    form: str
    setting: str
    source: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    published: Value = field(default_factory=Value)
    settings_from: str = ""

    @property
    def variant(self) -> str:
        """Which split of the data: `iid` or `popularity`."""
        return "popularity" if self.setting.startswith("ood") else "iid"

    @property
    def seed(self) -> int:
        """Of training."""
        return int(self.settings["training.seed"])

    @property
    def epochs(self) -> int:
        """Of training."""
        return int(self.settings["training.epochs"])

    @property
    def mode(self) -> str:
        """Where negatives come from: `sampled` or `catalog`."""
        return "catalog" if self.settings.get("sampling.negatives") == "catalog" else "sampled"

    @property
    def n_negatives(self) -> int:
        """Draws per positive in sampled mode."""
        return LOSSES[self.settings["loss.name"]].default_negatives

    def columns(self) -> dict[str, str]:
        """The columns of its row that are known before it runs."""
        settings = self.settings
        temperature = settings.get(
            "loss.temperature", settings.get("loss.negative_temperature", "")
        )
        distinct = "" if settings.get("sampling.replacement", True) else " distinct"
        values = {
            "table": self.table,
            "dataset": self.dataset,
            "backbone": self.backbone,
            "loss": self.loss,
            "form": self.form,
            "setting": self.setting,
            "noise": float(settings.get("sampling.noise.probability", 0.0)),
            "mode": self.mode,
            "protocol": settings["evaluation.protocol"],
            "seed": self.seed,
            "temperature": temperature,
            "learning_rate": settings["training.learning_rate"],
            "weight_decay": settings["training.weight_decay"],
            "dimension": settings["backbone.dimension"],
            "negatives": "catalog" if self.mode == "catalog" else f"{self.n_negatives}{distinct}",
        }
        return {name: str(value) for name, value in values.items()}

    @property
    def identity(self) -> Identity:
        """Equal to that of its row."""
        return identity_of(self.columns())

    def directory(self, runs: Path) -> Path:
        """Where its run lives: a name that people can read, and a few digits of all settings."""
        columns = self.columns()
        names = (
            "loss",
            "form",
            "setting",
            "noise",
            "negatives",
            "protocol",
            "temperature",
            "learning_rate",
            "seed",
        )
        label = "_".join(
            _plain(columns[name]) for name in names if columns[name] not in ("", "0.0")
        )
        digits = hashlib.blake2b(
            json.dumps(dict(self.settings), sort_keys=True).encode(), digest_size=4
        ).hexdigest()
        return runs / _plain(self.dataset) / _plain(self.backbone) / f"{label}_{digits}"

    def config(self, data: Path) -> RunConfig:
        """The configuration of its run."""
        return RunConfig.from_settings({"data.source": str(data), **self.settings})

    def label(self) -> str:
        """For people: what distinguishes it."""
        columns = self.columns()
        parts = [self.dataset, self.backbone, self.loss]
        parts += [self.form] if self.form == "inside" else []
        parts += [f"p {columns['noise']}"] if float(columns["noise"]) else []
        parts += [self.setting]
        if self.settings_from == SOUGHT:
            parts += [
                f"temperature {columns['temperature']}",
                f"learning rate {columns['learning_rate']}",
            ]
        negatives = (
            "catalog"
            if self.mode == "catalog"
            else f"{columns['negatives']} {'negative' if self.n_negatives == 1 else 'negatives'}"
        )
        return ", ".join([*parts, negatives, columns["protocol"], f"seed {self.seed}"])

    def in_table(self, table: str) -> "Cell":
        """The same run as a cell of another table."""
        return replace(self, table=table)


def identity_of(row: Mapping[str, str]) -> Identity:
    """What makes a row the row of a run; numbers count by value, however they are written.

    >>> row = dict.fromkeys(IDENTITY, "") | {"weight_decay": "0"}
    >>> identity_of(row) == identity_of(row | {"weight_decay": "0.0"})
    True
    """
    return tuple(_canonical(row[name]) for name in IDENTITY)


def _canonical(text: str) -> str:
    try:
        return repr(float(text))
    except ValueError:
        return text


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9.@+-]+", "-", text.lower()).strip("-")
