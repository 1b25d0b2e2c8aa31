"""A run directory as values: a light record of what it says, or everything that a model needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from pslrec.artifacts._format import ArtifactError, check_finished
from pslrec.artifacts._log import Epoch, read_epochs
from pslrec.artifacts._metrics import METRICS_FILE, check_format, read_metrics
from pslrec.artifacts._run_directory import RunDirectory
from pslrec.artifacts._seen import NO_PAIRS, Pairs, read_seen
from pslrec.artifacts._walks import WALKS_FILE, Walks
from pslrec.data import Vocabulary, read_ids

# What scores are made of.
MODEL_FILES = ("model.safetensors", WALKS_FILE)


@dataclass(frozen=True)
class RunRecord:
    """What a run directory says in words and numbers, without its tables and ids.

    Args:
        path: the directory.
        settings: the configuration by dotted name, such as `loss.name`.
        environment: versions and machine.
        epochs: the log.
        metrics: what `metrics.json` holds; empty for a run that is not finished.
    """

    path: Path
    settings: Mapping[str, Any]
    environment: Mapping[str, Any]
    epochs: Sequence[Epoch]
    metrics: Mapping[str, Any]

    @property
    def is_finished(self) -> bool:
        """Whether the run was evaluated."""
        return bool(self.metrics)

    def metric(self, name: str, split: str = "test") -> float | None:
        """The value of one metric; `None` if the run does not have it.

        Args:
            name: such as `ndcg@20`.
            split: `test` or `validation`.
        """
        value = self.metrics.get(split, {}).get(name)
        if isinstance(value, int | float):
            return float(value)
        return None


# A value rather than a reader, as a run that was kept in memory has no directory.
@dataclass(frozen=True, eq=False)
class FinishedRun:
    """Everything of a finished run that recommending needs.

    Args:
        config: settings, section by section.
        metrics: how it was evaluated.
        users: external ids by row.
        items: external ids by row.
        tables: representations of users and items, and the tables behind them where these differ.
        train: user and item rows of the training pairs.
        validation: user and item rows of the validation pairs; empty where there are none.
        epoch: the epoch whose tables these are.
        walks: what is added to the scores of the vectors, if anything is.
        disliked: user and item rows of what was rated too low to be learnt from.
    """

    config: dict[str, Any]
    metrics: dict[str, Any]
    users: Vocabulary
    items: Vocabulary
    tables: Mapping[str, Tensor]
    train: Pairs
    validation: Pairs
    epoch: int
    walks: Walks | None = None
    disliked: Pairs = NO_PAIRS

    @property
    def user_table(self) -> Tensor:
        """The trained rows of the users, from which a backbone computes representations."""
        return self.tables.get("user_table", self.tables["users"])

    @property
    def item_table(self) -> Tensor:
        """The trained rows of the items."""
        return self.tables.get("item_table", self.tables["items"])


def read_record(path: Path) -> RunRecord:
    """Read what a run says of itself; what it does not have yet is empty.

    Args:
        path: its directory; the run may be unfinished.
    """
    check_format(path)
    directory = RunDirectory(path)
    # A report shows what is left of a damaged run, so these two may be absent.
    environment: dict[str, Any] = {}
    if (path / "environment.json").exists():
        environment = directory.read_environment()
    metrics: dict[str, Any] = {}
    if (path / METRICS_FILE).exists():
        metrics = read_metrics(path)
    return RunRecord(
        path=path,
        settings=flat_settings(directory.read_config()),
        environment=environment,
        epochs=read_epochs(path / "log.jsonl"),
        metrics=metrics,
    )


def read_run(path: Path) -> FinishedRun:
    """Read a finished run with its tables, ids and pairs; every file is checked on the way.

    Args:
        path: its directory.
    """
    check_finished(path)
    directory = RunDirectory(path)
    config = directory.read_config()
    metrics = read_metrics(path)
    # Tables first: ids and pairs are checked against their sizes.
    tables, epoch = directory.read_tables_and_epoch()
    users = read_ids(path, "user", n_rows=len(tables["users"]), error=ArtifactError)
    items = read_ids(path, "item", n_rows=len(tables["items"]), error=ArtifactError)
    seen = read_seen(path, n_users=len(users), n_items=len(items))
    return FinishedRun(
        config=config,
        metrics=metrics,
        users=users,
        items=items,
        tables=tables,
        train=seen.train,
        validation=seen.validation,
        epoch=epoch,
        walks=Walks.read(path, n_items=len(items)),
        disliked=seen.disliked,
    )


def flat_settings(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings by dotted name.

    Args:
        sections: settings by section, at any depth.

    >>> flat_settings({"loss": {"name": "sl"}, "sampling": {"noise": {"seed": 1}}})
    {'loss.name': 'sl', 'sampling.noise.seed': 1}
    """
    flat: dict[str, Any] = {}
    for name, value in sections.items():
        if isinstance(value, Mapping):
            for inner, setting in flat_settings(value).items():
                flat[f"{name}.{inner}"] = setting
        else:
            flat[name] = value
    return flat
