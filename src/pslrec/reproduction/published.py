"""What the papers printed: results and settings, in the conventions of pslrec."""

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path

from pslrec.errors import ConfigError
from pslrec.files import read_text


@dataclass(frozen=True)
class Value:
    """A printed result.

    Args:
        recall: Recall@20.
        ndcg: NDCG@20; either may be absent where a figure shows one of them.
        where: the file that holds it, without ending.
    """

    recall: float | None = None
    ndcg: float | None = None
    where: str = ""


@dataclass(frozen=True)
class Hyperparameters:
    """Printed settings of one run, temperatures for half cosines.

    Args:
        learning_rate: of Adam.
        weight_decay: of Adam.
        loss: options of the loss by the names of pslrec.
        where: the file and the row they come from.
    """

    learning_rate: float
    weight_decay: float
    loss: dict[str, float | int] = field(default_factory=dict)
    where: str = ""


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    text = read_text(path, error=ConfigError)
    return list(csv.DictReader(io.StringIO(text, newline="")))


class Published:
    """The printed numbers.

    Args:
        directory: holds `iid.csv`, `hyper_iid.csv` and the others.
    """

    def __init__(self, directory: Path) -> None:
        names = (
            "iid",
            "ood",
            "forms",
            "noise",
            "hyper_iid",
            "hyper_ood",
            "slatk_iid",
            "slatk_hyper",
        )
        self._tables = {name: read_rows(directory / f"{name}.csv") for name in names}
        self.datasets = {row["dataset"]: row for row in read_rows(directory / "datasets.csv")}

    def value(self, setting: str, dataset: str, backbone: str, loss: str) -> Value:
        """The result of a loss in the IID or OOD setting: of the PSL paper first, then of SL@K, whose PSL is PSL-relu."""
        places = [("ood", loss)] if setting == "ood" else [("iid", loss)]
        if setting == "iid":
            places.append(("slatk_iid", "PSL" if loss == "PSL-relu" else loss))
        for table, name in places:
            for row in self._tables[table]:
                if (row["model"], row["loss"], row["dataset"]) == (backbone, name, dataset):
                    return Value(float(row["recall20"]), float(row["ndcg20"]), table)
        return Value()

    def form_value(self, form: str, dataset: str, backbone: str, loss: str) -> Value:
        """The result of a form of PSL."""
        for row in self._tables["forms"]:
            if (row["form"], row["model"], row["loss"], row["dataset"]) == (
                form,
                backbone,
                loss,
                dataset,
            ):
                return Value(float(row["recall20"]), float(row["ndcg20"]), "forms")
        return Value()

    def noise_value(self, dataset: str, backbone: str, loss: str, probability: float) -> Value:
        """A point of the noise figures; all of them are on MF."""
        found: dict[str, float] = {}
        for row in self._tables["noise"]:
            is_series = (row["model"], row["dataset"], row["series"]) == (backbone, dataset, loss)
            if is_series and float(row["p"]) == probability:
                found[row["metric"]] = float(row["value"])
        return Value(found.get("Recall@20"), found.get("NDCG@20"), "noise" if found else "")

    def hyperparameters(
        self, setting: str, dataset: str, backbone: str, losses: list[str]
    ) -> Hyperparameters | None:
        """Printed settings.

        Args:
            setting: `ood`, or anything else for those of the IID setting.
            dataset: by its printed name.
            backbone: by its printed name.
            losses: whose settings to take, the first that has any.
        """
        tables = ("hyper_ood",) if setting == "ood" else ("hyper_iid", "slatk_hyper")
        for loss in losses:
            for table in tables:
                for row in self._tables[table]:
                    if (row["model"], row["loss"], row["dataset"]) == (backbone, loss, dataset):
                        return _hyperparameters(row, table)
        return None


def _hyperparameters(row: dict[str, str], table: str) -> Hyperparameters:
    # The SL@K paper prints temperatures for plain cosines, but those of PSL for half cosines.
    scale = 0.5 if table == "slatk_hyper" and row["loss"] != "PSL" else 1.0
    names = {
        "tau": ("temperature", scale),
        "tau1": ("positive_temperature", scale),
        "tau2": ("negative_temperature", scale),
        "tau_w": ("weight_temperature", scale),
        "alpha": ("alpha", 1.0),
        "beta": ("beta", 1.0),
    }
    options: dict[str, float | int] = {
        name: float(row[column]) * factor
        for column, (name, factor) in names.items()
        if row.get(column)
    }
    if row.get("T_beta"):
        options["update_every"] = int(row["T_beta"])
    return Hyperparameters(float(row["lr"]), float(row["wd"]), options, f"{table}: {row['loss']}")
