"""Whether the pairs of a held-out part are like pairs held out at random from training.

The test is exact for a split that draws each user's held-out pairs at random. As many pairs again
are drawn from the same users' training part; what is left of training is the *core*. Popularity and
affinity of both groups are computed from the core alone, which holds neither of them. Given the
core and the two groups together, a random split says nothing about which pair is in which group, so
the two groups of a user may be swapped: that is the permutation test.
"""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import gammainc, gammaln

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions, concatenate
from pslrec.data._leaks import merge_repetitions
from pslrec.seeding import generator

logger = logging.getLogger(__name__)

Verdict = Literal["shifted", "slight", "alike", "unknown"]

LEVEL = 0.05
# Below these, the few users decide more than the split does.
FEWEST_USERS = 30
FEWEST_PAIRS = 100
# Smaller shifts are said to be slight: with many pairs even those are significant.
SLIGHT = 0.05
SLIGHT_SHARE = 0.01
# Where a difference of a fifth could hide in the chance of the sample, none found means nothing.
WIDEST_MARGIN = 0.2
N_SWAPS = 9999
# Users are swapped in this many groups, which keeps the test exact and its cost constant. The
# largest z-score it can report is the square root of it, far beyond what p-values resolve.
N_GROUPS = 400
# Above these, "auto" takes a sample of the users: pairs to draw from, and products and sums for the
# affinity, which take about a tenth and a quarter of a second for each part.
MOST_PAIRS = 400_000
MOST_PRODUCTS = 15_000_000
# Above this many pairs, counting alone takes a second.
LARGEST_AUTO = 10_000_000
# Scores of a block of users by all users, in numbers.
CELLS_AT_ONCE = 2_000_000
# Clearing so many entries of a block takes as long as a product at a random place.
CELLS_PER_PRODUCT = 16


@dataclass(frozen=True)
class Measure:
    """One property of held-out pairs beside that of pairs held out at random.

    Args:
        name: `popularity`, the geometric mean of how often the item occurs in the core; `affinity`,
            the mean cosine of the item with the user's items in the core, by co-occurrence there;
            `new items` and `new users`, shares of pairs whose item is not in the core, or whose
            user is not in training.
        held_out: its value for the pairs of the part.
        random: its value for as many pairs of the same users, drawn at random from training.
        effect: size of the difference: in standard deviations of single pairs, or Cohen's h for
            shares.
        interval: 95 % confidence interval of `held_out / random - 1`; of the plain difference for
            shares.
        p: of the permutation test, without regard to other tests. Two-sided for `popularity` and
            `affinity`; one-sided for shares, as a split may rightly leave new items and users out.
        adjusted_p: by Holm's method over all tests of the check.
        n_users: users compared.
        n_pairs: held-out pairs compared, with as many drawn at random.
    """

    name: str
    held_out: float
    random: float
    effect: float
    interval: tuple[float, float]
    p: float
    adjusted_p: float
    n_users: int
    n_pairs: int

    @property
    def is_share(self) -> bool:
        """Whether the values are shares of pairs."""
        return self.name.startswith("new ")

    @property
    def difference(self) -> float:
        """Relative to the random pairs; in absolute terms for shares."""
        if self.is_share:
            return self.held_out - self.random
        if self.random == 0:
            return 0.0
        return self.held_out / self.random - 1

    @property
    def margin(self) -> float:
        """Half the width of the confidence interval."""
        low, high = self.interval
        return (high - low) / 2

    @property
    def is_significant(self) -> bool:
        """Whether chance alone would rarely give such a difference."""
        return self.adjusted_p < LEVEL

    @property
    def is_slight(self) -> bool:
        """Whether the difference is too small to matter, significant or not."""
        if self.is_share:
            return abs(self.difference) < SLIGHT_SHARE
        return abs(self.difference) < SLIGHT


@dataclass(frozen=True)
class PartCheck:
    """A held-out part compared with pairs held out at random.

    Args:
        part: `validation` or `test`.
        measures: what was compared; empty if too few users or pairs can be.
        n_users: users that can be compared: with a held-out pair, and training pairs to draw from.
        n_pairs: their held-out pairs that were compared, with as many drawn at random.
        of_pairs: all pairs of the part.
    """

    part: str
    measures: tuple[Measure, ...]
    n_users: int
    n_pairs: int
    of_pairs: int

    @property
    def shifts(self) -> list[Measure]:
        """The measures that differ by more than chance."""
        return [each for each in self.measures if each.is_significant]

    @property
    def verdict(self) -> Verdict:
        """`shifted`, `slight` where every shift is small, `alike`, or `unknown`."""
        shifts = self.shifts
        if any(not each.is_slight for each in shifts):
            return "shifted"
        if shifts:
            return "slight"
        # Shares of new items and users tell too little alone.
        compared = [each for each in self.measures if not each.is_share]
        if not compared or max(each.margin for each in compared) > WIDEST_MARGIN:
            return "unknown"
        return "alike"

    def sentence(self) -> str:
        """What was found, in one sentence without a full stop."""
        compared = [each for each in self.measures if not each.is_share]
        if self.verdict == "unknown":
            sentence = f"cannot tell whether {self.part} pairs are like pairs held out at random"
            if compared:
                widest = max(compared, key=lambda each: each.margin)
                return f"{sentence}: {_value_phrase(widest)} is all that so few pairs can tell"
            return (
                f"{sentence}: {self.n_users:,} users and {self.n_pairs:,} pairs can be compared, "
                f"and {FEWEST_USERS} and {FEWEST_PAIRS} are needed"
            )
        if self.verdict == "alike":
            values = _and([_value_phrase(each) for each in compared])
            return f"{self.part} pairs are like pairs held out at random: {values}"
        shifts = self.shifts
        if self.verdict == "shifted":
            # Slight ones beside a large one would only distract.
            shifts = [each for each in shifts if not each.is_slight]
        # The largest first: it is what a reader should remember.
        shifts.sort(key=lambda each: -abs(each.effect))
        directions = _and([_direction(each) for each in shifts])
        values = _and([_value_phrase(each) for each in shifts])
        sentence = f"{self.part} pairs {directions} than pairs held out at random: {values}"
        if self.verdict == "slight":
            return f"{sentence}, a slight shift"
        if self.part == "test":
            return f"{sentence}; validation carved out at random will mislead"
        return f"{sentence}; choices made on it suit such pairs, not those held out at random"

    def record(self) -> dict[str, Any]:
        """As JSON holds it, with the verdict and the sentence."""
        measures = {}
        for each in self.measures:
            measures[each.name] = {
                "held_out": each.held_out,
                "random": each.random,
                "difference": each.difference,
                "interval": list(each.interval),
                "effect": each.effect,
                "p": each.p,
                "adjusted_p": each.adjusted_p,
                "n_users": each.n_users,
                "n_pairs": each.n_pairs,
            }
        return {
            "verdict": self.verdict,
            "sentence": self.sentence(),
            "n_users": self.n_users,
            "n_pairs": self.n_pairs,
            "of_pairs": self.of_pairs,
            "measures": measures,
        }


def check_exchangeability(
    dataset: Dataset, *, mode: Literal["auto", "on", "off"] = "auto", seed: int = 2024
) -> dict[str, PartCheck]:
    """Compare the validation and the test part with pairs held out at random from training.

    The validation part is compared with the training part, the test part with training and
    validation together, from which it was set apart.

    Args:
        dataset: its test part must not be sealed. Parts without pairs are left out.
        mode: `on` compares all users; `auto` a random sample of them if all would take more than
            about a second, and nothing if counting the pairs would; `off` nothing.
        seed: of the pairs drawn, the users sampled and the swaps; same data and seed, same result.

    Returns:
        What was found, by name of the part.

    >>> from pslrec.data import planted_tastes
    >>> from pslrec.data.splits import iid_split, temporal_split
    >>> log = planted_tastes(1000, 300, with_timestamps=True).interactions
    >>> check_exchangeability(iid_split(log))["test"].verdict
    'alike'
    >>> check_exchangeability(temporal_split(log))["test"].verdict
    'shifted'
    """
    if mode == "off":
        return {}
    n_pairs = sum(len(part) for part in dataset.parts().values())
    if mode == "auto" and n_pairs > LARGEST_AUTO:
        logger.info(
            "the split was not checked for a shift, as there are more than %s pairs; "
            "`evaluation.exchangeability` = on (--exchangeability on) checks it",
            f"{LARGEST_AUTO:,}",
        )
        return {}
    dataset = merge_repetitions(dataset)
    checks = {}
    train = dataset.train
    for name in ("validation", "test"):
        part = dataset.parts().get(name)
        if part is None or not len(part):
            continue
        random = generator(seed, "exchangeability", name)
        checks[name] = _check_part(name, train, part, random, is_sampled=mode == "auto")
        # The test part was set apart from training and validation alike.
        train = concatenate([train, part])
    return _with_adjusted_p(checks)


def exchangeability_record(checks: Mapping[str, PartCheck]) -> dict[str, Any]:
    """What `metrics.json` keeps of a check: a record per part.

    Args:
        checks: as `check_exchangeability` gives them.
    """
    return {name: check.record() for name, check in checks.items()}


@dataclass(frozen=True)
class _Groups:
    """Held-out pairs, and pairs of the same users drawn from training.

    Args:
        users: of the pairs of both groups.
        items: of the same pairs.
        is_held_out: true for pairs of the part, false for those drawn.
        core_users: of the training pairs that were not drawn.
        core_items: of the same pairs.
    """

    users: np.ndarray
    items: np.ndarray
    is_held_out: np.ndarray
    core_users: np.ndarray
    core_items: np.ndarray


def _check_part(
    name: str,
    train: Interactions,
    part: Interactions,
    random: np.random.Generator,
    *,
    is_sampled: bool,
) -> PartCheck:
    # Half of a history at most is drawn, so that the affinity to the rest means something.
    can_compare = (part.user_counts() > 0) & (train.user_counts() > 1)
    compared = random.permutation(np.flatnonzero(can_compare))
    with_affinity = compared
    if is_sampled:
        compared, with_affinity = _samples(train, part, compared)
    groups = _draw(train, part, compared, random)
    item_counts = np.bincount(groups.core_items, minlength=train.n_items)
    is_new = item_counts[groups.items] == 0

    # As many pairs of one group as of the other: only then can a user's groups be swapped.
    everything = _balanced(groups, np.ones(len(groups.users), dtype=bool), random)
    known = _balanced(groups, ~is_new, random)
    n_pairs = int(np.count_nonzero(known & groups.is_held_out))
    n_users = len(np.unique(groups.users[known]))

    measures = []
    if n_users >= FEWEST_USERS and n_pairs >= FEWEST_PAIRS:
        popularity = np.log(item_counts[groups.items[known]])
        measures.append(_compare("popularity", popularity, groups, known, random))
        measured = known & np.isin(groups.users, with_affinity)
        # Of a small sample, few may be left whose items the core has.
        if len(np.unique(groups.users[measured])) >= FEWEST_USERS:
            affinity = _affinity(groups, measured, item_counts, train.n_users)
            measures.append(_compare("affinity", affinity, groups, measured, random))
        newness = is_new[everything].astype(np.float64)
        measures.append(_compare("new items", newness, groups, everything, random))
    if len(part) >= FEWEST_PAIRS:
        measures.append(_compare_new_users(train, part))
    return PartCheck(name, tuple(measures), n_users, n_pairs, len(part))


def _samples(
    train: Interactions, part: Interactions, users: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The first of the users, as many as can be compared quickly: in all, and by affinity."""
    # Both parts are counted together: who is sampled must not depend on which of a user's pairs are
    # held out, or the test would no longer be exact.
    n_pairs = train.user_counts() + part.user_counts()
    popularity = train.item_counts() + part.item_counts()
    products = np.full(train.n_users, train.n_users / CELLS_PER_PRODUCT)
    for each in (train, part):
        weights = popularity[each.items]
        products += np.bincount(each.users, weights=weights, minlength=train.n_users)
    n_compared = np.searchsorted(np.cumsum(n_pairs[users]), MOST_PAIRS, side="right")
    n_with_affinity = np.searchsorted(np.cumsum(products[users]), MOST_PRODUCTS, side="right")
    # A few users with long histories must not make the check say that there are too few.
    n_least = 4 * FEWEST_USERS
    compared = users[: max(int(n_compared), n_least)]
    return compared, compared[: max(int(n_with_affinity), n_least)]


def _draw(
    train: Interactions, part: Interactions, compared: np.ndarray, random: np.random.Generator
) -> _Groups:
    is_compared = np.zeros(train.n_users, dtype=bool)
    is_compared[compared] = True
    # By user and item, so that the order of rows in a file does not matter.
    held_out = part.select(is_compared[part.users]).sorted()
    positions = np.flatnonzero(is_compared[train.users])
    positions = positions[np.argsort(train.pair_keys()[positions])]

    n_wanted = np.minimum(part.user_counts(), train.user_counts() // 2)
    users = train.users[positions]
    drawn = positions[_places(users, random) < n_wanted[users]]
    in_core = np.ones(len(train), dtype=bool)
    in_core[drawn] = False
    return _Groups(
        users=np.concatenate([held_out.users, train.users[drawn]]),
        items=np.concatenate([held_out.items, train.items[drawn]]),
        is_held_out=np.arange(len(held_out) + len(drawn)) < len(held_out),
        core_users=train.users[in_core],
        core_items=train.items[in_core],
    )


def _places(keys: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The place of each entry among those with the same key, in random order, from 0."""
    order = np.lexsort((random.random(len(keys)), keys))
    ordered = keys[order]
    starts = np.searchsorted(ordered, ordered, side="left")
    places = np.empty(len(keys), dtype=np.int64)
    places[order] = np.arange(len(keys)) - starts
    return places


def _balanced(groups: _Groups, eligible: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A mask of eligible pairs, as many held-out as drawn ones of each user, chosen at random."""
    n_users = int(groups.users.max(initial=0)) + 1
    is_held_out = groups.is_held_out
    n_held_out = np.bincount(groups.users[eligible & is_held_out], minlength=n_users)
    n_drawn = np.bincount(groups.users[eligible & ~is_held_out], minlength=n_users)
    n_kept = np.minimum(n_held_out, n_drawn)
    kept = np.zeros(len(groups.users), dtype=bool)
    for group in (is_held_out, ~is_held_out):
        candidates = np.flatnonzero(eligible & group)
        users = groups.users[candidates]
        kept[candidates[_places(users, random) < n_kept[users]]] = True
    return kept


def _affinity(
    groups: _Groups, chosen: np.ndarray, item_counts: np.ndarray, n_users: int
) -> np.ndarray:
    """The mean cosine of each chosen pair's item with its user's items in the core."""
    n_items = len(item_counts)
    users, rows = np.unique(groups.users[chosen], return_inverse=True)
    items = groups.items[chosen]
    is_needed = np.zeros(n_users, dtype=bool)
    is_needed[users] = True
    histories = is_needed[groups.core_users]
    history_rows = np.searchsorted(users, groups.core_users[histories])
    history_items = groups.core_items[histories]
    # A cosine is n_ij / sqrt(n_i n_j), with n_ij the number of people in the core who have both.
    scaled = (1 / np.sqrt(item_counts[history_items])).astype(np.float32)
    scaled_histories = csr_matrix(
        (scaled, (history_rows, history_items)), shape=(len(users), n_items)
    )
    lengths = np.bincount(history_rows, minlength=len(users))
    ones = np.ones(len(groups.core_items), dtype=np.float32)
    people = csr_matrix((ones, (groups.core_items, groups.core_users)), shape=(n_items, n_users))

    affinity = np.empty(len(items))
    order = np.argsort(rows, kind="stable")
    ordered_rows = rows[order]
    step = max(1, CELLS_AT_ONCE // n_users)
    for first in range(0, len(users), step):
        # For each user and each person: the scaled number of items that the two share.
        shared = (scaled_histories[first : first + step] @ people).toarray()
        start, end = np.searchsorted(ordered_rows, [first, first + step])
        pairs = order[start:end]
        # Summed over the people who have the pair's item, this is the sum of n_ij / sqrt(n_j).
        counts = item_counts[items[pairs]]
        ends = np.cumsum(counts)
        offsets = np.repeat(people.indptr[items[pairs]] - (ends - counts), counts)
        who = people.indices[np.arange(ends[-1]) + offsets]
        values = shared[np.repeat(rows[pairs] - first, counts), who]
        sums = np.add.reduceat(values, ends - counts, dtype=np.float64)
        affinity[pairs] = sums / np.sqrt(counts) / lengths[rows[pairs]]
    return affinity


def _compare(
    name: str,
    values: np.ndarray,
    groups: _Groups,
    chosen: np.ndarray,
    random: np.random.Generator,
) -> Measure:
    """Compare the values of the chosen pairs by swapping the two groups of users."""
    is_held_out = groups.is_held_out[chosen]
    _, rows = np.unique(groups.users[chosen], return_inverse=True)
    n_users = int(rows.max()) + 1
    n_pairs = int(is_held_out.sum())
    held_out = float(values[is_held_out].mean())
    drawn = float(values[~is_held_out].mean())
    difference = held_out - drawn

    signed = np.where(is_held_out, values, -values)
    by_user = np.bincount(rows, weights=signed, minlength=n_users)
    # Users vary independently of each other, and the pairs of one user need not.
    n_by_user = np.bincount(rows[is_held_out], minlength=n_users)
    residuals = by_user - n_by_user * difference
    margin = 1.96 * math.sqrt(float(residuals @ residuals)) / n_pairs
    low = difference - margin
    high = difference + margin

    is_share = name.startswith("new ")
    p = _swap_test(by_user, is_one_sided=is_share, random=random)
    if is_share:
        effect = _cohens_h(held_out, drawn)
        return Measure(name, held_out, drawn, effect, (low, high), p, p, n_users, n_pairs)
    effect = 0.0
    deviation = float(values.std())
    if deviation > 0:
        effect = difference / deviation
    if name == "popularity":
        # Back from logarithms, whose differences are ratios.
        interval = (math.expm1(low), math.expm1(high))
        held_out = math.exp(held_out)
        drawn = math.exp(drawn)
    elif drawn > 0:
        interval = (low / drawn, high / drawn)
    else:
        interval = (0.0, 0.0)
    return Measure(name, held_out, drawn, effect, interval, p, p, n_users, n_pairs)


def _swap_test(by_user: np.ndarray, *, is_one_sided: bool, random: np.random.Generator) -> float:
    """The p-value of the sum of differences if each user's groups are swapped by chance."""
    if not by_user.any():
        return 1.0
    n_groups = min(len(by_user), N_GROUPS)
    group_of_user = random.permutation(len(by_user)) % n_groups
    by_group = np.bincount(group_of_user, weights=by_user, minlength=n_groups)
    n_bytes = math.ceil(n_groups / 8)
    bits = random.integers(256, size=(N_SWAPS, n_bytes), dtype=np.uint8)
    is_swapped = np.unpackbits(bits, axis=1, count=n_groups).astype(np.float64)
    # Swapping a group changes the sum by twice its difference.
    observed = float(by_group.sum())
    swapped = observed - 2 * (is_swapped @ by_group)
    # Sums that are equal but for rounding count as equal.
    tolerance = 1e-9 * float(np.abs(by_group).sum())
    if is_one_sided:
        n_extreme = np.count_nonzero(swapped >= observed - tolerance)
    else:
        n_extreme = np.count_nonzero(np.abs(swapped) >= abs(observed) - tolerance)
    # The observed sum is one of those that chance could have given.
    return float((1 + n_extreme) / (1 + N_SWAPS))


def _compare_new_users(train: Interactions, part: Interactions) -> Measure:
    """Compare the share of pairs of users without training pairs with drawing pairs at random.

    A new user has no pairs to draw from, so there is nothing to swap. Instead, all pairs of both
    parts are drawn from at random: a user with n pairs is new if all n are drawn.
    """
    n_train = train.user_counts()
    n_part = part.user_counts()
    n_both = n_train + n_part
    is_new = (n_part > 0) & (n_train == 0)
    n_new = int(np.count_nonzero(is_new))
    share = float(n_part[is_new].sum() / len(part))

    total = len(train) + len(part)
    sizes, n_with_size = np.unique(n_both[n_both > 0], return_counts=True)
    is_possible = sizes <= len(part)
    sizes = sizes[is_possible].astype(np.float64)
    n_with_size = n_with_size[is_possible]
    # Binomial coefficients as logarithms: they leave the range of a float.
    log_chance = gammaln(len(part) + 1) - gammaln(len(part) - sizes + 1)
    log_chance -= gammaln(total + 1) - gammaln(total - sizes + 1)
    chance = np.exp(log_chance)
    expected_users = float((n_with_size * chance).sum())
    expected = float((n_with_size * sizes * chance).sum() / len(part))
    p = 1.0
    if n_new > 0:
        # P(X >= n_new) of a Poisson number. The real one varies less, so p is on the safe side.
        p = float(gammainc(n_new, expected_users))
    margin = 1.96 * math.sqrt(share * (1 - share) / len(part))
    difference = share - expected
    return Measure(
        "new users",
        share,
        expected,
        _cohens_h(share, expected),
        (difference - margin, difference + margin),
        p,
        p,
        int(np.count_nonzero(n_part)),
        len(part),
    )


def _cohens_h(one: float, other: float) -> float:
    return 2 * (math.asin(math.sqrt(one)) - math.asin(math.sqrt(other)))


def _with_adjusted_p(checks: Mapping[str, PartCheck]) -> dict[str, PartCheck]:
    """The checks with p-values by Holm's method over all of their tests."""
    tests = []
    for name, check in checks.items():
        for place, measure in enumerate(check.measures):
            tests.append((measure.p, name, place))
    tests.sort()
    adjusted: dict[tuple[str, int], float] = {}
    highest = 0.0
    for rank, (p, name, place) in enumerate(tests):
        # Never below that of a smaller p-value, or a test could pass where a stronger one fails.
        highest = max(highest, min(1.0, p * (len(tests) - rank)))
        adjusted[name, place] = highest
    found = {}
    for name, check in checks.items():
        measures = []
        for place, measure in enumerate(check.measures):
            measures.append(replace(measure, adjusted_p=adjusted[name, place]))
        found[name] = replace(check, measures=tuple(measures))
    return found


def _direction(measure: Measure) -> str:
    # Shares are tested for being larger only.
    comparative = "more"
    if measure.difference < 0:
        comparative = "less"
    if measure.name == "popularity":
        return f"have {comparative} popular items"
    if measure.name == "affinity":
        return f"are {comparative} like their users' histories"
    return f"have {comparative} {measure.name}"


def _value_phrase(measure: Measure) -> str:
    p = f"p = {measure.adjusted_p:.2g}"
    if measure.adjusted_p < 0.001:
        p = "p < 0.001"
    if measure.is_share:
        held_out = f"{measure.held_out:.1%}"
        return f"share of {measure.name} {held_out} against {measure.random:.1%} ({p})"
    what = "mean cosine"
    if measure.name == "popularity":
        what = "typical popularity"
    phrase = f"{what} {measure.held_out:.3g} against {measure.random:.3g}"
    if measure.is_significant:
        return f"{phrase} ({p})"
    # What was not found is only as good as the precision with which it was looked for.
    return f"{phrase} ({100 * measure.difference:+.1f} ± {100 * measure.margin:.1f} %)"


def _and(phrases: list[str]) -> str:
    if len(phrases) < 2:
        return "".join(phrases)
    return f"{', '.join(phrases[:-1])} and {phrases[-1]}"
