"""Walks and a regression beside the vectors of a trained model.

They are chosen on validation and fitted to the training data.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_matrix

from pslrec.artifacts import (
    LARGEST_WEIGHT,
    Model,
    RunDirectory,
    WalkingScorer,
    Walks,
    flat_settings,
)
from pslrec.baselines import regression_matrix
from pslrec.config import RunConfig
from pslrec.distributed import Group
from pslrec.errors import ConfigError
from pslrec.evaluation import EmbeddingScorer, Scorer, evaluate
from pslrec.experiment._auto import why_no_race
from pslrec.experiment._evaluating import SELECTION_K
from pslrec.experiment._inputs import TrainingData
from pslrec.losses import LOSSES
from pslrec.training import Listener, WalksChosen, WalksTried

WEIGHT = "walks.weight"
TRANSITION = "walks.transition_exponent"
POPULARITY = "walks.popularity_exponent"
REGRESSION = "walks.regression"
REGULARIZATION = "walks.regularization"
REGRESSION_ITEMS = "walks.regression_items"
WORDS = {WEIGHT: "walks", REGRESSION: "regression"}
# What is tried, from the first place in the direction that improves. The weights are for half
# cosines; other scores may have any scale.
WEIGHTS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
FIRST_WEIGHT = 8.0
# Once there is a regression, fewer walks may be better, or none.
LESS_WEIGHTS = (0.0, *WEIGHTS)
GRIDS: dict[str, tuple[float, ...]] = {
    POPULARITY: (0.0, 0.2, 0.4, 0.6),
    TRANSITION: (0.5, 0.8),
}
# Where the search begins. What is best for one exponent depends on the other one, so it matters; this was
# found by trying (decision 19).
FIRST_EXPONENTS = {POPULARITY: 0.4, TRANSITION: 0.5}
# Each takes an inversion of its own. The first step is to the smaller one, which is more often better
# beside vectors.
REGULARIZATIONS = (200.0, 50.0, 10.0)
# Where a regression has many items, its regularization is chosen with fewer, whose matrix is inverted in a
# tenth of a second. Where it has few, all take part: near a tie, fewer may decide another way.
MANY_ITEMS = 6_000
ITEMS_OF_TRY = 3_000
# The standard deviation of the half cosines of a user with all items, about.
USUAL_SPREAD = 0.1
USERS_OF_SPREAD = 100
# Settings are compared on so many users that a try ranks this many scores, in about a second: all
# users of most data sets, and some thousands where there are many items. Only where these cannot tell
# whether walks help are all users of the validation part asked.
SCORES_OF_TRY = 1.6e8
SCORES_OF_FAST_TRY = 8e7
FEWEST_RANKED = 1_000
FEWEST_COMPARED = 100
# The best of a dozen tries leads a little by chance alone, so it must lead by more: so many standard
# errors of the mean difference.
LEAD = 2.0
# The limit of exact training.
MOST_ITEMS = 100_000
MOST_STEPS = 2e9
MOST_PAIRS = 20_000_000


class Walked(NamedTuple):
    """A model with its walks.

    Args:
        config: with numbers in the place of `auto`.
        model: with walks and a regression, where their weights are not 0.
        sentence: what was chosen now and why; empty if nothing was open.
    """

    config: RunConfig
    model: Model
    sentence: str = ""


def with_walks(
    config: RunConfig,
    data: TrainingData,
    model: Model,
    *,
    directory: RunDirectory | None = None,
    listeners: Sequence[Listener] = (),
    group: Group | None = None,
) -> Walked:
    """Add walks and a regression to a trained model, as the section `walks` says.

    Args:
        config: complete.
        data: what the model was trained on; its validation part chooses where a weight is `auto`.
        model: the trained vectors.
        directory: of the run, which keeps the walks and what was chosen.
        listeners: are told what was tried and chosen.
        group: processes that train together.
    """
    sentence = ""
    walks = None
    if config.walks.open_weights:
        settings, sentence, walks = _chosen(config, data, model, listeners, group or Group())
        for listener in listeners:
            listener(WalksChosen(sentence))
        names = sorted({*config.auto.chosen, *settings})
        config = RunConfig.from_settings({**settings, "auto.chosen": tuple(names)}, base=config)
        if directory is not None:
            _complete_choice(directory, config, sentence)
            # Last: a run that is stopped from here on and resumed does not choose again.
            directory.rewrite_config(config.to_toml())
    if not (config.walks.weight or config.walks.regression):
        return Walked(config, model, sentence)
    if walks is None:
        walks = _as_given(config, data)
    if directory is not None:
        directory.write_walks(walks)
    return Walked(config, replace(model, walks=walks, histories=data.train.rows), sentence)


def _as_given(config: RunConfig, data: TrainingData) -> Walks:
    """The walks of complete settings."""
    section = config.walks
    walks = Walks.none(data.train.n_items)
    if section.weight:
        walks = Walks.fit(
            data.train,
            weight=float(section.weight),
            neighbours=section.neighbours,
            transition_exponent=section.transition_exponent,
            popularity_exponent=section.popularity_exponent,
        )
    if not section.regression:
        return walks
    matrix = _fitted_regression(data, section.regularization, section.regression_items)
    return walks.beside(matrix, float(section.regression))


def _fitted_regression(data: TrainingData, regularization: float, most_items: int) -> csr_matrix:
    try:
        return regression_matrix(data.train, regularization=regularization, most_items=most_items)
    except (ValueError, MemoryError) as error:
        reason = str(error) or "there is not enough memory"
        raise ConfigError(
            f"a regression on {min(most_items, data.train.n_items):,} items with a regularization of "
            f"{regularization:g} cannot be fitted: {reason}; set `walks.regression` to 0, or fewer "
            "`walks.regression_items`"
        ) from error


def _complete_choice(directory: RunDirectory, config: RunConfig, sentence: str) -> None:
    """Write what was chosen into what `auto` had left open, if it chose before training."""
    record = directory.read_choice()
    if record is not None:
        directory.write_choice(completed(record, config, sentence))


def completed(record: dict[str, Any], config: RunConfig, sentence: str) -> dict[str, Any]:
    """What `auto` chose, with the walks.

    Args:
        record: of the choice before training.
        config: complete.
        sentence: what was chosen after it, if anything was.
    """
    values = flat_settings(config.model_dump())
    settings = {name: values[name] for name in config.auto.chosen}
    found = {**record, "settings": settings}
    if sentence:
        found["walks"] = sentence
    return found


class Found(NamedTuple):
    """What a search has found.

    Args:
        settings: those that were open; a weight of 0 for none.
        sentence: what there is to say of them.
        walks: fitted, with the regression if there is one, if there is anything.
    """

    settings: dict[str, Any]
    sentence: str
    walks: Walks | None = None


def _chosen(
    config: RunConfig,
    data: TrainingData,
    model: Model,
    listeners: Sequence[Listener],
    group: Group,
) -> Found:
    """Walks and regression, by a search on validation."""
    why_not = _why_not(data)
    if not why_not:
        return _Search(config, data, model, listeners, group).run()
    names = config.walks.open_weights
    settings: dict[str, Any] = dict.fromkeys(names, 0.0)
    said = [f"{WORDS[name]}: none, as {why_not}" for name in names]
    return Found(settings, "; ".join(said))


def _why_not(data: TrainingData) -> str:
    reason = why_no_race(data.dataset)
    if reason:
        return reason
    n_items = data.train.n_items
    if n_items > MOST_ITEMS:
        return f"there are {n_items:,} items, more than {MOST_ITEMS:,}"
    # Everybody's items lead to all of their other items.
    n_steps = float(np.square(data.train.user_counts().astype(np.float64)).sum())
    if n_steps > MOST_STEPS or len(data.train) > MOST_PAIRS:
        return "there are too many interactions to count them in memory"
    if len(data.train) != len(data.dataset.train):
        return "false negatives are hidden at test, from which served walks would start"
    return ""


class _Search:
    """Goes along one setting after the other while validation improves."""

    def __init__(
        self,
        config: RunConfig,
        data: TrainingData,
        model: Model,
        listeners: Sequence[Listener],
        group: Group,
    ) -> None:
        self._config = config
        self._group = group
        loss = LOSSES[config.loss.name](**config.loss.options())
        self._k = loss.selection_k or SELECTION_K
        self._data = data
        self._vectors = model.vector_scorer()
        self._listeners = listeners
        self._counted: dict[tuple[float, float], Walks] = {}
        self._regressions: dict[tuple[float, int], csr_matrix] = {}
        # Weights that are not searched stay as they are.
        self._given: dict[str, float] = {}
        for name, weight in (
            (WEIGHT, config.walks.weight),
            (REGRESSION, config.walks.regression),
        ):
            if weight != "auto":
                self._given[name] = float(weight)
        # The values of the users, by weight and exponents.
        self._by_user: dict[tuple[float, ...], np.ndarray] = {}
        self._unit = _unit(self._vectors, model.similarity)
        n_users = data.dataset.n_users
        # Those that training asks after an epoch.
        self._n_validated = config.evaluation.n_validation_users(n_users) or n_users
        n_scores = SCORES_OF_TRY
        if config.auto.mode == "fast":
            n_scores = SCORES_OF_FAST_TRY
        self._n_users = max(int(n_scores / data.train.n_items), FEWEST_RANKED)

    def run(self) -> Found:
        """The best settings, and why; weights of 0 for what does not help by more than chance."""
        section = self._config.walks
        settings = {
            WEIGHT: 0.0,
            TRANSITION: section.transition_exponent,
            POPULARITY: section.popularity_exponent,
            REGRESSION: 0.0,
            REGULARIZATION: section.regularization,
            REGRESSION_ITEMS: min(section.regression_items, self._data.train.n_items),
        }
        settings |= self._given
        said = []
        if section.weight == "auto":
            settings, sentence = self._with_walks(settings)
            said.append(sentence)
        if section.regression == "auto":
            settings, sentence = self._with_regression(settings)
            said.append(sentence)
        chosen = {}
        for name in self._open_names(settings):
            chosen[name] = settings[name]
        for name in section.open_weights:
            chosen[name] = self._weight(settings, name)
        return Found(chosen, "; ".join(said), self._fitted(settings))

    def _open_names(self, settings: Mapping[str, float]) -> list[str]:
        """What was searched, without what belongs to something that is left out."""
        section = self._config.walks
        names = []
        if section.weight == "auto":
            names.append(WEIGHT)
            if settings[WEIGHT]:
                names += self._chosen_among(GRIDS)
        if section.regression == "auto":
            names.append(REGRESSION)
            if settings[REGRESSION]:
                names += self._chosen_among([REGULARIZATION])
        return names

    def _chosen_among(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self._config.auto.chosen]

    def _weight(self, settings: Mapping[str, float], name: str) -> float:
        """A weight for these scores; those that are searched are for half cosines."""
        if name in self._given:
            return self._given[name]
        return float(f"{min(settings[name] * self._unit, LARGEST_WEIGHT):.3g}")

    def _with_walks(self, before: dict[str, float]) -> tuple[dict[str, float], str]:
        """The settings with walks, if these help, and what there is to say."""
        settings = {**before, WEIGHT: FIRST_WEIGHT}
        for name in self._chosen_among(FIRST_EXPONENTS):
            settings[name] = FIRST_EXPONENTS[name]
        settings = self._climb(settings, WEIGHT, WEIGHTS)
        for name in self._chosen_among(GRIDS):
            settings = self._climb(settings, name, GRIDS[name])
        settings = self._climb(settings, WEIGHT, WEIGHTS)
        is_ahead, figures = self._compared(settings, before)
        if not is_ahead:
            return before, f"walks: none, as {figures}"
        return settings, (
            f"walks: weight {self._weight(settings, WEIGHT):g}, popularity exponent "
            f"{settings[POPULARITY]:g}, transition exponent {settings[TRANSITION]:g}; {figures}"
        )

    def _with_regression(self, before: dict[str, float]) -> tuple[dict[str, float], str]:
        """The settings with a regression, if it helps, and what there is to say."""
        try:
            settings = self._best_regression(before)
        except ConfigError as error:
            # A trained model is not thrown away for want of memory.
            return before, f"regression: none, as {error}"
        is_ahead, figures = self._compared(settings, before)
        if not is_ahead:
            return before, f"regression: none, as {figures}"
        sentence = (
            f"regression: weight {self._weight(settings, REGRESSION):g}, regularization "
            f"{settings[REGULARIZATION]:g}; {figures}"
        )
        if settings[WEIGHT] == before[WEIGHT]:
            return settings, sentence
        weight = self._weight(settings, WEIGHT)
        return settings, f"{sentence}; with it, the best weight of walks is {weight:g}"

    def _best_regression(self, before: dict[str, float]) -> dict[str, float]:
        settings = {**before, REGRESSION: FIRST_WEIGHT}
        if self._chosen_among([REGULARIZATION]):
            if before[REGRESSION_ITEMS] >= MANY_ITEMS:
                settings[REGRESSION_ITEMS] = ITEMS_OF_TRY
            settings = self._climb(settings, REGRESSION, WEIGHTS)
            settings = self._climb(settings, REGULARIZATION, REGULARIZATIONS)
            settings[REGRESSION_ITEMS] = before[REGRESSION_ITEMS]
        settings = self._climb(settings, REGRESSION, WEIGHTS)
        if self._config.walks.weight == "auto":
            settings = self._climb(settings, WEIGHT, LESS_WEIGHTS)
        return settings

    def _compared(
        self, settings: Mapping[str, float], before: Mapping[str, float]
    ) -> tuple[bool, str]:
        """Whether settings are ahead of others by more than chance, and the figures."""
        values = self._values_with(settings)
        without = self._values_with(before)
        is_in_doubt = 0 < (values - without).mean() <= _chance(values - without)
        if is_in_doubt and len(values) < self._n_validated:
            # Too few to tell, so all are asked; this takes as long as validating two epochs.
            values = self._values(self._scorer(settings), self._n_validated)
            without = self._values(self._scorer(before), self._n_validated)
        if len(values) < FEWEST_COMPARED:
            return False, f"only {len(values)} users can be compared on validation"
        figures = (
            f"NDCG@{self._k} of {len(values):,} users on validation {values.mean():.4f} with, "
            f"{without.mean():.4f} without"
        )
        if (values - without).mean() <= _chance(values - without):
            return False, f"the lead is no more than chance ({figures})"
        return True, figures

    def _climb(
        self, settings: dict[str, float], name: str, grid: Sequence[float]
    ) -> dict[str, float]:
        """Go along the values of one setting, up and else down, for as long as it improves."""
        if settings[name] not in grid:
            return settings
        start = grid.index(settings[name])
        for step in (1, -1):
            place = start
            while 0 <= place + step < len(grid):
                tried = {**settings, name: grid[place + step]}
                if self._value(tried) <= self._value(settings):
                    break
                settings = tried
                place += step
            if place != start:
                break
        return settings

    def _value(self, settings: Mapping[str, float]) -> float:
        return float(self._values_with(settings).mean())

    def _values_with(self, settings: Mapping[str, float]) -> np.ndarray:
        key = tuple(settings.values())
        if key not in self._by_user:
            self._by_user[key] = self._values(self._scorer(settings), self._n_users)
            tried = WalksTried(len(self._by_user), float(self._by_user[key].mean()))
            for listener in self._listeners:
                listener(tried)
        return self._by_user[key]

    def _scorer(self, settings: Mapping[str, float]) -> Scorer:
        walks = self._fitted(settings)
        if walks is None:
            return self._vectors
        return WalkingScorer(self._vectors, walks, self._data.train.rows)

    def _fitted(self, settings: Mapping[str, float]) -> Walks | None:
        """What is added to the scores; `None` if nothing is."""
        if not (settings[WEIGHT] or settings[REGRESSION]):
            return None
        walks = Walks.none(self._data.train.n_items)
        if settings[WEIGHT]:
            walks = replace(self._walks(settings), weight=self._weight(settings, WEIGHT))
        if not settings[REGRESSION]:
            return walks
        matrix = self._regression(settings[REGULARIZATION], int(settings[REGRESSION_ITEMS]))
        return walks.beside(matrix, self._weight(settings, REGRESSION))

    def _regression(self, regularization: float, n_items: int) -> csr_matrix:
        key = (regularization, n_items)
        if key in self._regressions:
            return self._regressions[key]
        failure = ""
        try:
            self._regressions[key] = _fitted_regression(self._data, regularization, n_items)
        except ConfigError as error:
            failure = str(error)
        # Memory may run out in one process; the others must not wait for it to evaluate with them.
        n_failed = torch.tensor([float(bool(failure))])
        self._group.sum(n_failed)
        if n_failed > 0:
            raise ConfigError(failure or "it could not be fitted in another process")
        return self._regressions[key]

    def _walks(self, settings: Mapping[str, float]) -> Walks:
        key = (settings[TRANSITION], settings[POPULARITY])
        if key not in self._counted:
            self._counted[key] = Walks.fit(
                self._data.train,
                weight=FIRST_WEIGHT,
                neighbours=self._config.walks.neighbours,
                transition_exponent=settings[TRANSITION],
                popularity_exponent=settings[POPULARITY],
            )
        return self._counted[key]

    def _values(self, scorer: Scorer, n_users: int) -> np.ndarray:
        section = self._config.evaluation
        result = evaluate(
            scorer,
            self._data.dataset,
            split="validation",
            k=(self._k,),
            protocol=section.protocol,
            metrics=("ndcg",),
            memory_budget=section.memory_megabytes * 2**20,
            n_users=n_users,
            seed=self._config.data.validation_seed,
            group=self._group,
        )
        return result.per_user[f"ndcg@{self._k}"]


def _chance(leads: np.ndarray) -> float:
    """How far users' mean lead may be from 0 by chance."""
    return float(LEAD * leads.std() / math.sqrt(len(leads)))


def _unit(vectors: EmbeddingScorer, similarity: str) -> float:
    """What a weight of 1 is for scores that are not half cosines: their spread, by the usual one."""
    if similarity == "half-cosine":
        return 1.0
    places = np.linspace(0, vectors.n_users - 1, num=min(vectors.n_users, USERS_OF_SPREAD))
    scores = vectors.score(places.astype(np.int64))
    spread = float(torch.std(scores, dim=1, correction=0).mean())
    return spread / USUAL_SPREAD
