"""Artificial data for which the right answer is known: planted tastes, and a checkerboard."""

from dataclasses import dataclass, field

import numpy as np

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.data._vocabulary import Vocabulary
from pslrec.errors import DataError
from pslrec.seeding import generator

FIRST_MOMENT = 1_577_836_800  # 2020-01-01 00:00 UTC
PERIOD = 2 * 365 * 86_400
# Shares of 1, 2, 3, 4 and 5 stars: most people rate what they like, as in the published data sets.
STAR_SHARES = (0.06, 0.09, 0.2, 0.3, 0.35)
# Beyond these, probabilities leave the range of a float or lose their meaning.
RANGES = {
    "n_topics": (1, 1000),
    "focus": (0.01, 1000),
    "popularity_exponent": (0, 10),
    "median_history": (1, 1_000_000),
    "history_spread": (0, 5),
    "minimum_history": (1, 1_000_000),
    "noise": (0, 1),
    "drift": (0, 1),
}
# An item without any share in a topic still has a chance, so that no probability is 0.
SMALLEST_TRAIT = 1e-12
# Users are drawn in blocks, so that the memory needed does not grow with their number.
CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class TasteModel:
    """How people choose in `planted_tastes`.

    Args:
        n_topics: kinds of taste; the rank of the true preference matrix.
        focus: how single-minded users and items are: their topics are Dirichlet with parameter
            `1 / focus`.
        popularity_exponent: how steeply popularity falls with its rank; 0 makes all items alike.
        median_history: interactions of the median user.
        history_spread: standard deviation of the logarithm of the number of interactions.
        minimum_history: interactions that every user has at least.
        noise: share of the choices that ignore taste and popularity.
        drift: share of an interaction's time that the item decides; affects timestamps only.
    """

    n_topics: int = 16
    focus: float = 20.0
    popularity_exponent: float = 0.8
    median_history: float = 20.0
    history_spread: float = 0.6
    minimum_history: int = 10
    noise: float = 0.0
    drift: float = 0.5

    def __post_init__(self) -> None:
        for name, (lowest, highest) in RANGES.items():
            value = getattr(self, name)
            if not lowest <= value <= highest:
                raise DataError(f"`{name}` must be from {lowest:g} to {highest:g}, got {value}")


@dataclass(frozen=True, eq=False)
class PlantedTastes:
    """Interactions together with the truth that they were drawn from.

    Args:
        interactions: what was observed, sorted by user and item. The vocabularies hold all users
            and items, chosen or not.
        user_tastes: share of each topic in a user's choices; users by topics, rows sum to 1.
        topic_items: probability of each item within a topic; topics by items, rows sum to 1.
        item_peaks: when each item is most in fashion, from 0 (first moment) to 1 (last).
        model: the settings of the draw.
    """

    interactions: Interactions
    user_tastes: np.ndarray
    topic_items: np.ndarray
    item_peaks: np.ndarray
    model: TasteModel = field(default_factory=TasteModel)

    def preferences(self, users: np.ndarray | slice | None = None) -> np.ndarray:
        """True probability that a user's next choice is each item, without noise.

        These are the scores of an oracle.

        Args:
            users: rows of the users wanted; all if `None`, which takes 8 bytes per user and item.
        """
        tastes = self.user_tastes
        if users is not None:
            tastes = tastes[users]
        return np.asarray(tastes @ self.topic_items)


def planted_tastes(
    n_users: int = 2000,
    n_items: int = 1500,
    *,
    model: TasteModel | None = None,
    with_ratings: bool = False,
    with_timestamps: bool = False,
    seed: int = 0,
) -> PlantedTastes:
    """Draw users who choose by taste and popularity, and keep the truth.

    With u a user, i an item, k one of K topics:

    - tastes θ_u and traits φ_i are Dirichlet(1/focus, ..., 1/focus) over the topics;
    - popularity p_i is proportional to r_i^-exponent, where r_i is a random rank from 1 to n_items;
    - within a topic, P(i | k) is proportional to p_i φ_ik;
    - preference P(i | u) = Σ_k θ_uk P(i | k), a matrix of rank K;
    - a choice is drawn from (1 - noise) P(i | u) + noise / n_items, again and again without
      repeating an item, until the user has n_u items; n_u = median · exp(spread · z) rounded, z
      standard normal, at least the minimum and at most half of the items;
    - an interaction happens at the part (1 - drift) v + drift · peak_i of two years, with v and
      peak_i uniform from 0 to 1: items come into fashion and go;
    - stars rank the interactions by log P(i | u) - log p_i + z and cut them at fixed shares, from
      6 % with one star to 35 % with five.

    Each part has its own random stream: ratings or timestamps do not change the pairs.

    Args:
        n_users: number of users.
        n_items: number of items, at least twice the model's minimum history.
        model: the numbers in the formulas above; the defaults of `TasteModel` if `None`.
        with_ratings: whether each interaction gets 1 to 5 stars.
        with_timestamps: whether each interaction gets a time.
        seed: the same seed gives the same data, bit for bit.

    >>> planted = planted_tastes(200, 100, seed=7)
    >>> planted.interactions.n_users, planted.interactions.n_items
    (200, 100)
    >>> planted.preferences().shape
    (200, 100)
    """
    model = model or TasteModel()
    if n_users < 1:
        raise DataError(f"`n_users` must be at least 1, got {n_users}")
    if n_items < 2 * model.minimum_history:
        raise DataError(
            f"`n_items` must be at least twice `minimum_history` ({model.minimum_history}), "
            f"got {n_items}"
        )
    user_tastes = _dirichlet(n_users, model, generator(seed, "planted", "users"))
    popularity = _popularity(n_items, model, generator(seed, "planted", "popularity"))
    traits = _dirichlet(n_items, model, generator(seed, "planted", "items"))
    attraction = popularity * np.maximum(traits, SMALLEST_TRAIT).T
    topic_items = attraction / attraction.sum(axis=1, keepdims=True)
    item_peaks = generator(seed, "planted", "peaks").random(n_items)

    lengths = _history_lengths(n_users, n_items, model, generator(seed, "planted", "lengths"))
    users, items = _choose(
        user_tastes,
        topic_items,
        lengths,
        noise=model.noise,
        random=generator(seed, "planted", "choices"),
    )
    ratings = None
    if with_ratings:
        # Of the chosen pairs only: the whole matrix would be far larger.
        probabilities = np.einsum("nk,nk->n", user_tastes[users], topic_items.T[items])
        # Relative to popularity: people do not give more stars to what everybody takes.
        liking = np.log(probabilities / popularity[items])
        ratings = _stars(liking, generator(seed, "planted", "ratings"))
    timestamps = None
    if with_timestamps:
        moments = generator(seed, "planted", "times").random(len(users))
        moments = (1 - model.drift) * moments + model.drift * item_peaks[items]
        timestamps = FIRST_MOMENT + (moments * PERIOD).astype(np.int64)
    interactions = Interactions(
        users,
        items,
        _names(n_users, "user"),
        _names(n_items, "item"),
        ratings=ratings,
        timestamps=timestamps,
    )
    return PlantedTastes(interactions, user_tastes, topic_items, item_peaks, model)


def checkerboard(n_users: int = 40, n_items: int = 30) -> Dataset:
    """Users who like all items of their own parity, with one item per user held out for the test.

    Even users have the even items and odd users the odd ones. Of the items that are not in a user's
    training part, the test item is the only one that like-minded users chose, so a sound
    recommender ranks it first.

    Args:
        n_users: number of users, at least 4.
        n_items: number of items, at least 4.

    >>> board = checkerboard(4, 6)
    >>> board.train.matrix().toarray().astype(int)
    array([[0, 0, 1, 0, 1, 0],
           [0, 0, 0, 1, 0, 1],
           [1, 0, 0, 0, 1, 0],
           [0, 1, 0, 0, 0, 1]])
    >>> board.test.items.tolist()
    [0, 1, 2, 3]
    """
    if n_users < 4 or n_items < 4:
        raise DataError(f"`n_users` and `n_items` must be at least 4, got {n_users} and {n_items}")
    differences = np.arange(n_users)[:, None] - np.arange(n_items)
    users, items = np.nonzero(differences % 2 == 0)
    # With an odd number of items there is one more even than odd.
    n_own = (n_items + 1 - users % 2) // 2
    # Like-minded users hold out one item after the other, so each item stays in training.
    is_held_out = items // 2 == users // 2 % n_own
    everything = Interactions(users, items, _names(n_users, "user"), _names(n_items, "item"))
    return Dataset(
        everything.select(~is_held_out), everything.select(is_held_out), name="checkerboard"
    )


def _dirichlet(count: int, model: TasteModel, random: np.random.Generator) -> np.ndarray:
    return random.dirichlet(np.full(model.n_topics, 1 / model.focus), size=count)


def _popularity(n_items: int, model: TasteModel, random: np.random.Generator) -> np.ndarray:
    ranks = random.permutation(np.arange(1, n_items + 1))
    weights = ranks**-model.popularity_exponent
    return np.asarray(weights / weights.sum())


def _history_lengths(
    n_users: int, n_items: int, model: TasteModel, random: np.random.Generator
) -> np.ndarray:
    deviations = model.history_spread * random.standard_normal(n_users)
    lengths = model.median_history * np.exp(deviations)
    # At most half of the items: a user who has nearly all of them leaves no choice to predict.
    lengths = np.clip(lengths, model.minimum_history, n_items // 2)
    return np.rint(lengths).astype(np.int64)


def _choose(
    user_tastes: np.ndarray,
    topic_items: np.ndarray,
    lengths: np.ndarray,
    *,
    noise: float,
    random: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    # Every item arrives after an exponential waiting time whose rate is its chance. The first n to
    # arrive are distributed like n choices made one after the other without repeats, and can be
    # drawn for all users at once.
    n_users = len(user_tastes)
    n_items = topic_items.shape[1]
    most = int(lengths.max())
    chosen = np.empty((n_users, most), dtype=np.int64)
    step = max(1, CELLS_AT_ONCE // n_items)
    for first in range(0, n_users, step):
        block = slice(first, first + step)
        chances = (1 - noise) * (user_tastes[block] @ topic_items) + noise / n_items
        arrivals = random.standard_exponential(chances.shape) / chances
        # Finding the first few, then sorting them, is cheaper than sorting all items.
        nearest = np.argpartition(arrivals, most - 1, axis=1)[:, :most]
        order = np.argsort(np.take_along_axis(arrivals, nearest, axis=1), axis=1)
        chosen[block] = np.take_along_axis(nearest, order, axis=1)
    # As many for each user as it takes; the rest of its row is not used.
    users = np.repeat(np.arange(n_users), lengths)
    items = chosen[np.arange(most) < lengths[:, None]]
    order = np.lexsort((items, users))
    return users[order], items[order]


def _stars(liking: np.ndarray, random: np.random.Generator) -> np.ndarray:
    noisy = liking + random.standard_normal(len(liking))
    # Sorting twice turns values into their ranks.
    ranks = noisy.argsort(kind="stable").argsort(kind="stable")
    quantiles = (ranks + 0.5) / len(ranks)
    bounds = np.cumsum(STAR_SHARES)[:-1]
    return 1.0 + np.searchsorted(bounds, quantiles, side="right")


def _names(count: int, kind: str) -> Vocabulary:
    # All equally long, so that the order of the names is that of the numbers.
    width = len(str(count - 1))
    return Vocabulary([f"{kind}{number:0{width}}" for number in range(count)], kind=kind)
