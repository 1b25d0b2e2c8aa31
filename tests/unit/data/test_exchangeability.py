"""The check of held-out parts: what it computes, when it alarms, and that it alarms by chance no more than it says."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pslrec.data import Dataset, Interactions, SealedInteractions, check_exchangeability
from pslrec.data import _exchangeability as module
from pslrec.data._exchangeability import Measure, PartCheck
from pslrec.data._sealing import SealedTestError
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.data.embedded import debian_packages
from pslrec.data.splits import carve_validation, iid_split, split_by_name


@pytest.fixture(scope="module")
def log() -> Interactions:
    return planted_tastes(600, 300, with_timestamps=True, seed=5).interactions


def measures(check: PartCheck) -> dict[str, Measure]:
    return {measure.name: measure for measure in check.measures}


def naive_affinity(core: set[tuple[int, int]], user: int, item: int) -> float:
    people: dict[int, set[int]] = {}
    for who, what in core:
        people.setdefault(what, set()).add(who)
    cosines = []
    for who, what in core:
        if who == user:
            common = len(people[item] & people[what])
            cosines.append(common / np.sqrt(len(people[item]) * len(people[what])))
    return float(np.mean(cosines))


@pytest.mark.parametrize("cells", [1, 70, 2_000_000])
def test_affinity_equals_a_loop_over_pairs(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    monkeypatch.setattr(module, "CELLS_AT_ONCE", cells)
    dataset = iid_split(planted_tastes(40, 30, seed=1).interactions)
    random = np.random.default_rng(0)
    users = np.unique(dataset.test.users)
    groups = module._draw(dataset.train, dataset.test, users, random)
    counts = np.bincount(groups.core_items, minlength=dataset.n_items)
    known = module._balanced(groups, counts[groups.items] > 0, random)
    found = module._affinity(groups, known, counts, dataset.n_users)
    core = set(zip(groups.core_users.tolist(), groups.core_items.tolist(), strict=True))
    pairs = zip(groups.users[known], groups.items[known], strict=True)
    expected = [naive_affinity(core, user, item) for user, item in pairs]
    assert found == pytest.approx(expected, rel=1e-5)


def test_groups_are_equally_large_and_apart_from_the_core(log: Interactions) -> None:
    dataset = iid_split(log)
    random = np.random.default_rng(0)
    users = np.unique(dataset.test.users)
    groups = module._draw(dataset.train, dataset.test, users, random)
    kept = module._balanced(groups, np.ones(len(groups.users), dtype=bool), random)
    held_out = np.bincount(groups.users[kept & groups.is_held_out], minlength=log.n_users)
    drawn = np.bincount(groups.users[kept & ~groups.is_held_out], minlength=log.n_users)
    assert (held_out == drawn).all()
    assert (held_out == dataset.test.user_counts()).all()
    keys = groups.users.astype(np.int64) * log.n_items + groups.items
    core = groups.core_users.astype(np.int64) * log.n_items + groups.core_items
    assert not np.isin(keys, core).any()
    assert len(keys) + len(core) == len(log)


def test_swaps_agree_with_all_swaps_of_few_users() -> None:
    by_user = np.array([0.3, -0.1, 0.5, 0.2, 0.4, -0.2])
    bits = np.unpackbits(np.arange(64, dtype=np.uint8)[:, None], axis=1)[:, 2:]
    sums = (1 - 2 * bits.astype(int)) @ by_user
    exact = np.mean(np.abs(sums) >= by_user.sum() - 1e-9)
    found = module._swap_test(by_user, is_one_sided=False, random=np.random.default_rng(0))
    assert found == pytest.approx(exact, abs=0.02)


def test_same_seed_gives_the_same_check_in_any_order_of_rows(log: Interactions) -> None:
    dataset = iid_split(log)
    order = np.random.default_rng(0).permutation(len(dataset.train))
    shuffled = replace(dataset, train=dataset.train.select(order))
    first = check_exchangeability(dataset, seed=3)["test"].record()
    assert check_exchangeability(shuffled, seed=3)["test"].record() == first
    assert check_exchangeability(dataset, seed=4)["test"].record() != first


def false_alarms(
    log: Interactions, n_seeds: int, monkeypatch: pytest.MonkeyPatch, *, validation: bool = False
) -> None:
    """Over splits by seeds, p-values must be uniform, and a family of tests rarely alarm."""
    monkeypatch.setattr(module, "N_SWAPS", 499)
    found: dict[tuple[str, str], list[float]] = {}
    n_alarms = 0
    for seed in range(n_seeds):
        dataset = iid_split(log, seed=seed)
        if validation:
            dataset = carve_validation(dataset, "fraction", seed=seed)
        checks = check_exchangeability(dataset, seed=seed)
        n_alarms += any(check.shifts for check in checks.values())
        for part, check in checks.items():
            for name in ("popularity", "affinity"):
                found.setdefault((part, name), []).append(measures(check)[name].p)
    # Each bound is passed by chance once in a thousand times.
    for values in found.values():
        assert stats.kstest(values, "uniform").pvalue > 0.001
        n_below = np.count_nonzero(np.array(values) < 0.05)
        assert n_below <= stats.binom.ppf(0.999, n_seeds, 0.05)
    assert n_alarms <= stats.binom.ppf(0.999, n_seeds, 0.05)


def test_random_splits_of_planted_tastes_alarm_no_more_than_chance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = planted_tastes(300, 200, seed=2).interactions
    false_alarms(log, 150, monkeypatch, validation=True)


def test_items_with_a_single_pair_do_not_look_like_a_shift(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Held-out pairs whose item is not in training are left out of a split, so training has more
    # rare items than the test part has. That is no shift.
    model = TasteModel(median_history=5, minimum_history=2, popularity_exponent=1.2)
    log = planted_tastes(600, 1500, model=model).interactions
    assert np.mean(log.item_counts() == 1) > 0.2
    false_alarms(log, 150, monkeypatch)


def test_random_splits_of_debian_alarm_no_more_than_chance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The products are what takes time, and fewer users test the sampling of users as well.
    monkeypatch.setattr(module, "MOST_PRODUCTS", 1_000_000)
    monkeypatch.setattr(module, "MOST_PAIRS", 20_000)
    false_alarms(debian_packages(), 25, monkeypatch)


def test_a_popularity_split_has_less_popular_items(log: Interactions) -> None:
    check = check_exchangeability(split_by_name(log, "popularity"))["test"]
    assert check.verdict == "shifted"
    assert measures(check)["popularity"].difference < -0.05
    assert "have less popular items" in check.sentence()
    assert check.sentence().endswith("validation carved out at random will mislead")


def test_a_temporal_split_is_less_like_the_histories(log: Interactions) -> None:
    dataset = split_by_name(log, "temporal", validation="fraction")
    for name, check in check_exchangeability(dataset).items():
        assert check.part == name
        assert check.verdict == "shifted"
        assert measures(check)["affinity"].difference < -0.05
        assert "are less like their users' histories" in check.sentence()


def test_pairs_like_the_history_are_a_shift_the_other_way() -> None:
    # Users have items of their own camp and some of the next; only the former are held out.
    random = np.random.default_rng(0)
    users, items, in_test = [], [], []
    for user in range(200):
        own = 5 * random.permutation(20)[:12] + user % 5
        others = 5 * random.permutation(20)[:4] + (user + 1) % 5
        users += [f"user{user:03}"] * 16
        items += [f"item{item:03}" for item in (*own, *others)]
        in_test += [True] * 3 + [False] * 13
    log = Interactions.from_ids(users, items)
    is_test = np.array(in_test)
    check = check_exchangeability(Dataset(log.select(~is_test), log.select(is_test)))["test"]
    assert check.verdict == "shifted"
    assert measures(check)["affinity"].difference > 0.05
    assert "are more like their users' histories" in check.sentence()


def test_new_users_and_items_are_found(log: Interactions) -> None:
    is_new_user = log.users < 60
    check = check_exchangeability(Dataset(log.select(~is_new_user), log.select(is_new_user)))
    users = measures(check["test"])["new users"]
    assert users.held_out == 1
    assert users.random < 0.01
    assert check["test"].verdict == "shifted"
    assert "have more new users" in check["test"].sentence()

    dataset = iid_split(log)
    # Some items lose all of their training pairs, and others keep theirs.
    is_rare = dataset.train.items % 10 == 0
    shifted = replace(dataset, train=dataset.train.select(~is_rare))
    items = measures(check_exchangeability(shifted)["test"])["new items"]
    assert items.held_out > 0.05
    assert items.random < 0.01
    assert items.is_significant


def test_few_users_or_pairs_cannot_tell() -> None:
    dataset = iid_split(planted_tastes(20, 40).interactions)
    check = check_exchangeability(dataset)["test"]
    assert check.verdict == "unknown"
    assert check.sentence().startswith("cannot tell whether test pairs are like")
    assert "20 users" in check.sentence()
    assert "popularity" not in measures(check)


def test_a_wide_interval_cannot_tell() -> None:
    wide = Measure("popularity", 20.0, 22.0, -0.05, (-0.35, 0.15), 0.3, 0.6, 50, 120)
    check = PartCheck("test", (wide,), 50, 120, 120)
    assert check.verdict == "unknown"
    assert "-9.1 ± 25.0 %" in check.sentence()
    narrow = replace(check, measures=(replace(wide, interval=(-0.1, 0.02)),))
    assert narrow.verdict == "alike"


def test_a_significant_difference_that_is_small_is_slight() -> None:
    small = Measure("affinity", 0.103, 0.1, 0.02, (0.02, 0.04), 0.0001, 0.0004, 9000, 90_000)
    check = PartCheck("test", (small,), 9000, 90_000, 90_000)
    assert check.verdict == "slight"
    assert check.sentence() == (
        "test pairs are more like their users' histories than pairs held out at random: "
        "mean cosine 0.103 against 0.1 (p < 0.001), a slight shift"
    )


def test_p_values_are_corrected_by_holms_method() -> None:
    def measure(p: float) -> Measure:
        return Measure("affinity", 1.0, 1.0, 0.0, (0.0, 0.0), p, p, 100, 100)

    one = PartCheck("validation", (measure(0.01), measure(0.5)), 100, 100, 100)
    other = PartCheck("test", (measure(0.02), measure(0.015)), 100, 100, 100)
    found = module._with_adjusted_p({"validation": one, "test": other})
    assert [each.adjusted_p for each in found["validation"].measures] == pytest.approx([0.04, 0.5])
    # 0.015 times 3 is more than 0.02 times 2, which may not be smaller.
    assert [each.adjusted_p for each in found["test"].measures] == pytest.approx([0.045, 0.045])


def test_modes_and_empty_parts(log: Interactions, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = iid_split(log)
    assert check_exchangeability(dataset, mode="off") == {}
    nothing = log.select(np.zeros(0, dtype=np.int64))
    assert check_exchangeability(replace(dataset, test=nothing)) == {}
    monkeypatch.setattr(module, "LARGEST_AUTO", 10)
    assert check_exchangeability(dataset) == {}
    monkeypatch.setattr(module, "MOST_PRODUCTS", 1)
    everybody = measures(check_exchangeability(dataset, mode="on")["test"])
    assert everybody["affinity"].n_users == everybody["popularity"].n_users == 600
    monkeypatch.setattr(module, "LARGEST_AUTO", 10**9)
    sampled = measures(check_exchangeability(dataset)["test"])
    assert sampled["affinity"].n_users < sampled["popularity"].n_users == 600


def test_repeated_pairs_count_once(log: Interactions) -> None:
    dataset = iid_split(log)
    twice = np.repeat(np.arange(len(dataset.train)), 2)
    repeated = replace(dataset, train=dataset.train.select(twice))
    once = check_exchangeability(dataset)["test"].record()
    assert check_exchangeability(repeated)["test"].record() == once


def test_a_sealed_test_part_stays_sealed(log: Interactions) -> None:
    dataset = iid_split(log)
    sealed = replace(dataset, test=SealedInteractions.of(dataset.test))
    with pytest.raises(SealedTestError):
        check_exchangeability(sealed)
