"""The scores that a finished run gives, user by user, with what is known about each item."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pslrec.artifacts import ArtifactError, Model, RunDirectory, check_format
from pslrec.config import RunConfig
from pslrec.data import Interactions, SealedInteractions, planted_tastes
from pslrec.errors import ConfigError
from pslrec.experiment import TrainingData, load_training_data, run, with_validation
from pslrec.losses import LOSSES
from pslrec.seeding import generator

logger = logging.getLogger(__name__)
HELD_OUT, PLANTED, TRUTH = "held out", "planted", "true favourites"
# Small enough for seconds, large enough to learn; a tenth of the pairs come back as negatives.
SYNTHETIC_SETTINGS: Mapping[str, Any] = {
    "data.source": "synthetic",
    "backbone.dimension": 32,
    "loss.temperature": 0.1,
    "sampling.negatives": "catalog",
    "sampling.noise.probability": 0.1,
    "training.learning_rate": 0.1,
    "training.epochs": 20,
}
DEFAULT_TEMPERATURE = 0.1


@dataclass(frozen=True)
class UserScores:
    """What a model thinks of all items for one user.

    Args:
        user: row number.
        scores: half cosines of all items, in double precision.
        positives: items that it was trained on.
        weights: the chance of each item to be drawn as a negative; 0 for positives.
        groups: items that were negatives in training although the user likes them, by how we know.
    """

    user: int
    scores: Tensor
    positives: Tensor
    weights: Tensor
    groups: Mapping[str, Tensor]

    def differences(self, size: int = 64) -> Iterator[Tensor]:
        """Score of every item minus that of each positive, shape (positives, items), some positives at a time."""
        for some in self.positives.split(size):
            yield self.scores.unsqueeze(0) - self.scores[some].unsqueeze(1)


@dataclass(frozen=True)
class ModelScores:
    """A finished run whose scores can be looked at.

    Args:
        name: of the run.
        config: its settings.
        users: some users, at random.
    """

    name: str
    config: RunConfig
    users: Sequence[UserScores]

    @property
    def temperature(self) -> float:
        """Of its loss, or the usual one where it has none."""
        value = self.config.loss.options().get("temperature", DEFAULT_TEMPERATURE)
        return float(value)


def _check_finished(path: Path) -> None:
    check_format(path)
    if not (path / "metrics.json").exists():
        raise ArtifactError(
            f"the run in {path} is not finished; go on with `pslrec train --out {path} --resume`"
        )


def run_names(paths: Sequence[Path]) -> list[str]:
    """What finished runs are, in few words; the names of their directories where that does not tell them apart."""
    for path in paths:
        _check_finished(path)
    names = [_described(RunConfig.from_toml(path / "config.toml")) for path in paths]
    if len(set(names)) == len(paths):
        return names
    if len({path.name for path in paths}) < len(paths):
        raise ConfigError(
            "the directories of `runs` must have different names, which tell them apart in the tables"
        )
    return [path.name for path in paths]


def _described(config: RunConfig) -> str:
    p = config.sampling.noise.probability
    return f"{config.loss.name} on {Path(config.data.source).stem}" + (f", p = {p:g}" if p else "")


def read_scores(
    path: Path, name: str | None = None, *, most_users: int = 300, seed: int = 0
) -> ModelScores:
    """The scores of a finished run for some of its users.

    Args:
        path: directory of the run.
        name: what to call it.
        most_users: how many users, drawn at random.
        seed: of that draw.
    """
    _check_finished(path)
    config = RunConfig.from_toml(path / "config.toml")
    similarity = LOSSES[config.loss.name].similarity
    if similarity != "half-cosine":
        raise ConfigError(
            f"the bounds hold for half cosines, but loss `{config.loss.name}` of {path} has {similarity}s"
        )
    data = load_training_data(config)
    directory = RunDirectory(path)
    directory.check_data(data.dataset)
    if config.training.refit:
        data = with_validation(data)
    test = data.dataset.test
    if isinstance(test, SealedInteractions):
        test.unseal("the run is finished")
    model = Model(directory.read_tables(), similarity)
    users, items = model.user_vectors, model.item_vectors
    known = {HELD_OUT: test, PLANTED: data.false_negatives}
    candidates = np.flatnonzero(data.train.user_counts() > 0)
    chosen = np.sort(generator(seed, "users to look at").permutation(candidates)[:most_users])
    favourites = _favourites(config, data, chosen)
    found = []
    for user in chosen.tolist():
        groups = {name: _items_of(part, user) for name, part in known.items() if part is not None}
        groups |= {TRUTH: favourites[user]} if favourites else {}
        found.append(
            _user_scores(user, users[user].double() @ items.double().T, data, groups, config)
        )
    return ModelScores(name or _described(config), config, found)


def _user_scores(
    user: int, scores: Tensor, data: TrainingData, groups: Mapping[str, Tensor], config: RunConfig
) -> UserScores:
    positives = _items_of(data.train, user)
    weights = torch.ones_like(scores)
    weights[positives] = 0.0
    weights /= weights.sum().clamp(min=1.0)
    false, noise = groups.get(PLANTED), config.sampling.noise.probability
    if false is not None and len(false) and noise:
        # As draws have it: with probability p one of the false negatives, else one of the others.
        weights[false] = 0.0
        weights *= (1 - noise) / weights.sum()
        weights[false] = noise / len(false)
    return UserScores(user, scores.clamp(-0.5, 0.5), positives, weights, groups)


def _items_of(part: Interactions, user: int) -> Tensor:
    return torch.from_numpy(np.unique(part.items[part.users == user]).astype(np.int64))


def _favourites(config: RunConfig, data: TrainingData, users: np.ndarray) -> dict[int, Tensor]:
    """Of made-up data the truth is known: as many items as a user has, those it is most likely to choose."""
    if (
        config.data.source != "synthetic"
        or config.data.k_core
        or config.data.minimum_rating is not None
    ):
        return {}
    preferences = planted_tastes().preferences(users)
    counts = data.dataset.whole().user_counts()[users]
    seen = {user: set(_items_of(data.train, user).tolist()) for user in users.tolist()}
    found = {}
    for user, row, count in zip(users.tolist(), preferences, counts.tolist(), strict=True):
        best = np.argsort(-row, kind="stable")[:count].tolist()
        found[user] = torch.tensor(
            [item for item in best if item not in seen[user]], dtype=torch.int64
        )
    return found


def synthetic_runs(directory: Path, losses: Sequence[str] = ("sl", "psl-relu")) -> list[Path]:
    """Finished runs on made-up data with planted false negatives, trained where they are not there yet.

    Args:
        directory: of the run directories.
        losses: one run each.
    """
    paths = []
    for loss in losses:
        path = directory / f"synthetic-{loss}"
        if not (path / "metrics.json").exists():
            logger.info("training %s on made-up data with planted false negatives", loss)
            run(
                RunConfig.from_settings({**SYNTHETIC_SETTINGS, "loss.name": loss}),
                out=path,
                resume=True,
            )
        paths.append(path)
    return paths
