"""Which walks and which regression suit a trained model: a search on validation."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from pslrec.artifacts import LARGEST_WEIGHT, Model, WalkingScorer, Walks
from pslrec.config import RunConfig
from pslrec.distributed import Group
from pslrec.errors import ConfigError
from pslrec.evaluation import EmbeddingScorer, Scorer, evaluate
from pslrec.experiment._auto_race import why_no_race
from pslrec.experiment._evaluating import SELECTION_K
from pslrec.experiment._inputs import TrainingData
from pslrec.experiment._walk_fitting import WalkFitting, WalkSettings
from pslrec.losses import LOSSES
from pslrec.training import Listener, WalksTried

# Before the name of a field of `WalkSettings`, this makes the name of the setting.
SECTION = "walks."
WORDS = {"walks.weight": "walks", "walks.regression": "regression"}
# What is tried, from the first place in the direction that improves. The weights are for half
# cosines; other scores may have any scale.
WEIGHTS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
FIRST_WEIGHT = 8.0
# Once there is a regression, another weight of walks may be better, or none.
WEIGHTS_BESIDE_REGRESSION = (0.0, *WEIGHTS)
EXPONENTS: dict[str, tuple[float, ...]] = {
    "popularity_exponent": (0.0, 0.2, 0.4, 0.6),
    "transition_exponent": (0.5, 0.8),
}
# Where the search begins. What is best for one exponent depends on the other one, so it matters; this was
# found by trying (decision 19).
FIRST_EXPONENTS = {"popularity_exponent": 0.4, "transition_exponent": 0.5}
# Penalties of a regression: of the first one, smaller values look at more pairs of items.
L1_PENALTIES = (30.0, 10.0, 3.0, 1.0, 0.3)
L2_PENALTIES = (100.0, 30.0, 10.0, 3.0)
FIRST_L1 = 3.0
FIRST_L1_OF_FAST = 1.0
FIRST_L2 = 10.0
PENALTIES = ("regression_l1", "regression_l2")
# Pairs of items that a regression looks at: at most so many, which take about ten seconds on sparse data and
# up to twice that on dense ones; so many where it is fitted several times; and those of `fast`, a second.
MOST_CANDIDATES = 12_000_000
MOST_CANDIDATES_OF_MANY = 4_000_000
MOST_CANDIDATES_OF_FAST = 2_000_000
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


class Fold(NamedTuple):
    """Data, divided into training and validation, and what was made of the training part.

    Args:
        data: with a validation part.
        model: the trained vectors.
        fitting: to the same data.
    """

    data: TrainingData
    model: Model
    fitting: WalkFitting


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


def search_walks(
    config: RunConfig,
    folds: Sequence[Fold],
    *,
    listeners: Sequence[Listener] = (),
    group: Group,
) -> Found:
    """Choose what the section `walks` leaves open.

    Args:
        config: complete but for weights that are `auto`.
        folds: what the walks are for, and others that take part in the choice.
        listeners: are told what was tried.
        group: processes that train together.
    """
    why_not = why_no_walks(folds[0].data)
    if not why_not:
        trials = _Trials(config, folds, listeners, group)
        return _Search(config, trials).run()
    names = config.walks.open_weights
    settings: dict[str, Any] = dict.fromkeys(names, 0.0)
    said = [f"{WORDS[name]}: none, as {why_not}" for name in names]
    return Found(settings, "; ".join(said))


def why_no_walks(data: TrainingData) -> str:
    """Why nothing can be chosen; empty if something can.

    Args:
        data: what a model is trained on.
    """
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

    def __init__(self, config: RunConfig, trials: "_Trials") -> None:
        self._section = config.walks
        self._chosen = config.auto.chosen
        self._trials = trials
        self._open_weights = trials.open_weights

    def run(self) -> Found:
        """The best settings, and why; weights of 0 for what does not help by more than chance."""
        settings = WalkSettings.of(self._section)
        said = []
        if "weight" in self._open_weights:
            settings, sentence = self._with_walks(settings)
            said.append(sentence)
        if "regression" in self._open_weights:
            settings, sentence = self._with_regression(settings)
            said.append(sentence)
        scaled = self._trials.scaled(settings)
        chosen = {}
        for name in self._searched(settings):
            chosen[f"{SECTION}{name}"] = getattr(scaled, name)
        return Found(chosen, "; ".join(said), self._trials.fitted(settings))

    def _searched(self, settings: WalkSettings) -> list[str]:
        """What was searched, without what belongs to something that is left out."""
        names = list(self._open_weights)
        if "weight" in self._open_weights and settings.weight:
            names += self._open_among(EXPONENTS)
        if "regression" in self._open_weights and settings.regression:
            names += self._open_among(PENALTIES)
        return names

    def _open_among(self, names: Iterable[str]) -> list[str]:
        """Those of some settings beside the weights that were not given."""
        return [name for name in names if f"{SECTION}{name}" in self._chosen]

    def _with_walks(self, before: WalkSettings) -> tuple[WalkSettings, str]:
        """The settings with walks, if these help, and what there is to say."""
        exponents = self._open_among(EXPONENTS)
        first: dict[str, Any] = {name: FIRST_EXPONENTS[name] for name in exponents}
        settings = replace(before, weight=FIRST_WEIGHT, **first)
        settings = self._climb(settings, "weight", WEIGHTS)
        for name in exponents:
            settings = self._climb(settings, name, EXPONENTS[name])
        settings = self._climb(settings, "weight", WEIGHTS)
        is_ahead, figures = self._trials.compared(settings, before)
        if not is_ahead:
            return before, f"walks: none, as {figures}"
        weight = self._trials.scaled(settings).weight
        return settings, (
            f"walks: weight {weight:g}, popularity exponent {settings.popularity_exponent:g}, "
            f"transition exponent {settings.transition_exponent:g}; {figures}"
        )

    def _with_regression(self, before: WalkSettings) -> tuple[WalkSettings, str]:
        """The settings with a regression, if it helps, and what there is to say."""
        try:
            settings = self._best_regression(before)
        except ConfigError as error:
            # A trained model is not thrown away for want of memory.
            return before, f"regression: none, as {error}"
        is_ahead, figures = self._trials.compared(settings, before)
        if not is_ahead:
            return before, f"regression: none, as {figures}"
        scaled = self._trials.scaled(settings)
        sentence = (
            f"regression: weight {scaled.regression:g}, l1 {settings.regression_l1:g}, "
            f"l2 {settings.regression_l2:g}; {figures}"
        )
        if settings.weight == before.weight:
            return settings, sentence
        return settings, f"{sentence}; with it, the best weight of walks is {scaled.weight:g}"

    def _best_regression(self, before: WalkSettings) -> WalkSettings:
        is_open = self._open_among(PENALTIES)
        settings = replace(before, regression=FIRST_WEIGHT)
        quick_l1s: list[float] = []
        if "regression_l1" in is_open:
            quick_l1s = self._trials.quick_l1s()
            if not quick_l1s:
                raise ConfigError("too many pairs of items have users in common")
            first = FIRST_L1_OF_FAST if self._trials.is_fast else FIRST_L1
            settings = replace(settings, regression_l1=max(first, min(quick_l1s)))
        if "regression_l2" in is_open:
            settings = replace(settings, regression_l2=FIRST_L2)
        settings = self._climb(settings, "regression", WEIGHTS)
        if not self._trials.is_fast:
            if "regression_l1" in is_open:
                settings = self._climb(settings, "regression_l1", quick_l1s)
            if "regression_l2" in is_open and self._trials.are_fits_quick(settings):
                settings = self._climb(settings, "regression_l2", L2_PENALTIES)
            settings = self._climb(settings, "regression", WEIGHTS)
        # Walks that did not lead by more than chance do not come back.
        if "weight" in self._open_weights and before.weight:
            settings = self._climb(settings, "weight", WEIGHTS_BESIDE_REGRESSION)
        return settings

    def _climb(self, settings: WalkSettings, name: str, grid: Sequence[float]) -> WalkSettings:
        """Go along the values of one setting, up and else down, for as long as it improves."""
        value = getattr(settings, name)
        if value not in grid:
            return settings
        start = grid.index(value)
        for step in (1, -1):
            place = start
            while 0 <= place + step < len(grid):
                change: Mapping[str, Any] = {name: grid[place + step]}
                tried = replace(settings, **change)
                if self._value_if_possible(tried) <= self._trials.value(settings):
                    break
                settings = tried
                place += step
            if place != start:
                break
        return settings

    def _value_if_possible(self, settings: WalkSettings) -> float:
        """The value of settings; what cannot be fitted, for want of memory, is worth nothing."""
        try:
            return self._trials.value(settings)
        except ConfigError:
            return -math.inf


class _Trials:
    """What settings are worth on validation. Weights that are searched are for half cosines here."""

    def __init__(
        self,
        config: RunConfig,
        folds: Sequence[Fold],
        listeners: Sequence[Listener],
        group: Group,
    ) -> None:
        self._config = config
        self._folds = folds
        self._vectors = [fold.model.vector_scorer() for fold in folds]
        self._listeners = listeners
        self._group = group
        data, model, self._fitting = folds[0]
        self.open_weights = [name.removeprefix(SECTION) for name in config.walks.open_weights]
        self._unit = _unit(self._vectors[0], model.similarity)
        loss = LOSSES[config.loss.name](**config.loss.options())
        self._k = loss.selection_k or SELECTION_K
        n_users = data.dataset.n_users
        # Those that training asks after an epoch.
        self._n_validated = config.evaluation.n_validation_users(n_users) or n_users
        self.is_fast = config.auto.mode == "fast"
        n_scores = SCORES_OF_TRY
        if self.is_fast:
            n_scores = SCORES_OF_FAST_TRY
        self._n_users = max(int(n_scores / data.train.n_items), FEWEST_RANKED)
        # The values of the users.
        self._by_user: dict[WalkSettings, np.ndarray] = {}

    def scaled(self, settings: WalkSettings) -> WalkSettings:
        """The settings with weights for the scores of this model; given ones stay as they are."""
        weights: dict[str, Any] = {}
        for name in self.open_weights:
            weight = min(getattr(settings, name) * self._unit, LARGEST_WEIGHT)
            weights[name] = float(f"{weight:.3g}")
        return replace(settings, **weights)

    def fitted(self, settings: WalkSettings) -> Walks | None:
        """What is added to the scores; `None` if nothing is."""
        return self._fitting.fitted(self.scaled(settings))

    def quick_l1s(self) -> list[float]:
        """Penalties of a regression that look at few enough pairs of items, in the order of the grid."""
        most = MOST_CANDIDATES
        if self.is_fast:
            most = MOST_CANDIDATES_OF_FAST
        return [l1 for l1 in L1_PENALTIES if self._fitting.n_candidates(l1) <= most]

    def are_fits_quick(self, settings: WalkSettings) -> bool:
        """Whether a few more regressions with this `l1` take no more than some seconds."""
        return self._fitting.n_candidates(settings.regression_l1) <= MOST_CANDIDATES_OF_MANY

    def value(self, settings: WalkSettings) -> float:
        """NDCG on validation, of a sample of the users where there are many items."""
        return float(self._values_of_sample(settings).mean())

    def compared(self, settings: WalkSettings, before: WalkSettings) -> tuple[bool, str]:
        """Whether settings are ahead of others by more than chance, and the figures."""
        values = self._values_of_sample(settings)
        without = self._values_of_sample(before)
        is_in_doubt = 0 < (values - without).mean() <= _chance(values - without)
        if is_in_doubt and len(values) < self._n_validated:
            # Too few to tell, so all are asked; this takes as long as validating two epochs.
            values = self._values(settings, self._n_validated)
            without = self._values(before, self._n_validated)
        if len(values) < FEWEST_COMPARED:
            return False, f"only {len(values)} users can be compared on validation"
        figures = (
            f"NDCG@{self._k} of {len(values):,} users on {self._said_of_parts()} "
            f"{values.mean():.4f} with, {without.mean():.4f} without"
        )
        if (values - without).mean() <= _chance(values - without):
            return False, f"the lead is no more than chance ({figures})"
        return True, figures

    def _values_of_sample(self, settings: WalkSettings) -> np.ndarray:
        if settings not in self._by_user:
            values = self._values(settings, self._n_users)
            self._by_user[settings] = values
            tried = WalksTried(len(self._by_user), float(values.mean()))
            for listener in self._listeners:
                listener(tried)
        return self._by_user[settings]

    def _said_of_parts(self) -> str:
        if len(self._folds) == 1:
            return "validation"
        return f"{len(self._folds)} validation parts"

    def _values(self, settings: WalkSettings, n_users: int) -> np.ndarray:
        """The value of each user, the mean of those in the validation parts that have this user."""
        n_of_all = self._folds[0].data.dataset.n_users
        sums = np.zeros(n_of_all)
        counts = np.zeros(n_of_all)
        for fold, vectors in zip(self._folds, self._vectors, strict=True):
            users, values = self._values_of_fold(fold, vectors, settings, n_users)
            sums[users] += values
            counts[users] += 1
        is_valued = counts > 0
        return sums[is_valued] / counts[is_valued]

    def _values_of_fold(
        self, fold: Fold, vectors: EmbeddingScorer, settings: WalkSettings, n_users: int
    ) -> tuple[np.ndarray, np.ndarray]:
        scorer: Scorer = vectors
        walks = fold.fitting.fitted(self.scaled(settings))
        if walks is not None:
            scorer = WalkingScorer(vectors, walks, fold.data.train.rows)
        section = self._config.evaluation
        result = evaluate(
            scorer,
            fold.data.dataset,
            split="validation",
            k=(self._k,),
            protocol=section.protocol,
            metrics=("ndcg",),
            memory_budget=section.memory_megabytes * 2**20,
            n_users=n_users,
            seed=self._config.data.validation_seed,
            group=self._group,
        )
        return result.users, result.per_user[f"ndcg@{self._k}"]


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
