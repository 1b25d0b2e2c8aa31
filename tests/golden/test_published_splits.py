"""The published splits, made again from the union of their parts.

The files are those of the authors' data repository (see docs/reference/sources.md); seed 0 and the rules of `pslrec.data.splits`
must give the very pairs that every published number was made with.
"""

import hashlib

import numpy as np
import pytest

from pslrec.data import describe, read_published
from pslrec.data.splits import iid_split, paper_validation, popularity_split

# Users, items, pairs; training and test pairs of the IID split; training and validation pairs of the paper's rule.
IID = {
    "amazon2014-electronic": (13_455, 8_360, 234_521, 182_398, 52_123, 165_257, 17_141),
    "amazon2014-health": (1_974, 1_200, 48_189, 37_784, 10_405, 34_476, 3_308),
    "amazon2014-beauty": (1_237, 719, 25_736, 20_101, 5_635, 18_338, 1_763),
    "movielens-100k": (939, 1_016, 80_393, 63_944, 16_449, 57_947, 5_997),
    "gowalla": (29_858, 40_988, 1_027_464, 810_128, 217_336, 737_091, 73_037),
}
# Of the sorted validation pairs, as little-endian 32-bit numbers, users before items.
VALIDATION_CHECKSUMS = {
    "amazon2014-electronic": "a4e1a6900bf4f5ffa1fe4d0da2f6b363cd5952ca1c39af5657c9a869f9e658c9",
    "amazon2014-health": "4fa6ab6f5c8966bb38ddafb4632a1f57f7ac9fe40b09957bb053c3df890cc495",
    "amazon2014-beauty": "2d898ba3cd8ac546a8096a32b1abdbda38b4ee5c27f301e8fe373bbd1ca80fb8",
    "movielens-100k": "bb3eefdbfaefcb2d38b6202c028b98b5bc00b7045d1279b96d39631768478bb6",
    "gowalla": "065722517242929c6cd6db8ea6fa6b36b3a9d2ec8472329915caef7d2474d820",
}

_read = {}


@pytest.fixture
def published(data_directory):
    def published(folder, name):
        path = data_directory / folder / f"{name}.zip"
        if not path.is_file():
            pytest.skip(f"no {path}")
        if path not in _read:
            _read[path] = read_published(path)
        return _read[path]

    return published


def checksum(interactions):
    ordered = interactions.sorted()
    digest = hashlib.sha256(ordered.users.astype("<i4").tobytes())
    digest.update(ordered.items.astype("<i4").tobytes())
    return digest.hexdigest()


def assert_same_pairs(one, other):
    assert np.array_equal(one.sorted().pair_keys(), other.sorted().pair_keys())


@pytest.mark.parametrize("name", IID)
def test_published_data_set_has_the_published_size(published, name):
    dataset = published("iid", name)
    summary = describe(dataset.whole())
    sizes = (
        summary.n_users,
        summary.n_items,
        summary.n_interactions,
        len(dataset.train),
        len(dataset.test),
    )
    assert sizes == IID[name][:5]


@pytest.mark.parametrize("name", IID)
def test_iid_split_of_the_union_is_the_published_one(published, name):
    dataset = published("iid", name)
    again = iid_split(dataset.whole(), seed=0)
    assert_same_pairs(again.train, dataset.train)
    assert_same_pairs(again.test, dataset.test)


def test_iid_split_with_another_seed_is_not_the_published_one(published):
    dataset = published("iid", "amazon2014-beauty")
    assert checksum(iid_split(dataset.whole(), seed=1).test) != checksum(dataset.test)


@pytest.mark.parametrize("name", IID)
def test_paper_validation_has_the_published_size_and_never_changes(published, name):
    carved = paper_validation(published("iid", name))
    assert (len(carved.train), len(carved.validation)) == IID[name][5:]
    assert checksum(carved.validation) == VALIDATION_CHECKSUMS[name]


def test_popularity_split_of_the_union_is_the_published_one(published):
    shifted = published("ood", "amazon2014-electronic-popularity")
    assert (len(shifted.train), len(shifted.test)) == (187_616, 46_905)
    again = popularity_split(shifted.whole(), seed=0)
    assert_same_pairs(again.train, shifted.train)
    assert_same_pairs(again.test, shifted.test)


def test_popularity_split_can_be_made_from_the_iid_files(published):
    again = popularity_split(published("iid", "amazon2014-electronic").whole(), seed=0)
    assert_same_pairs(again.test, published("ood", "amazon2014-electronic-popularity").test)


def test_popularity_test_part_is_nearly_uniform(published):
    shifted = published("ood", "amazon2014-electronic-popularity")
    drawn = shifted.test.item_counts()
    assert round(drawn.mean(), 1) == 5.6
    assert drawn.max() == 16
    assert (shifted.test.user_counts() == 0).sum() == 845
    assert (shifted.train.item_counts().min(), shifted.train.user_counts().min()) == (1, 2)
