"""The test part can not be looked at before its time, by any way in."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from pslrec.data import Dataset, Interactions
from pslrec.data._interactions import concatenate
from pslrec.data._sealing import SealedInteractions, SealedTestError
from pslrec.data._synthetic import checkerboard
from pslrec.evaluation import EmbeddingScorer, evaluate

WAYS_IN: dict[str, Callable[[SealedInteractions], Any]] = {
    "users": lambda test: test.users,
    "items": lambda test: test.items,
    "ratings": lambda test: test.ratings,
    "timestamps": lambda test: test.timestamps,
    "weights": lambda test: test.weights,
    "matrix": lambda test: test.matrix(),
    "select": lambda test: test.select(np.array([0])),
    "sorted": lambda test: test.sorted(),
    "pair_keys": lambda test: test.pair_keys(),
    "user_counts": lambda test: test.user_counts(),
    "item_counts": lambda test: test.item_counts(),
    "to_frame": lambda test: test.to_frame(),
    "replace": dataclasses.replace,
    "asdict": dataclasses.asdict,
    "concatenate": lambda test: concatenate([test]),
    "unbound method": Interactions.matrix,
    "getattr": lambda test: getattr(test, "items"),  # noqa: B009
    "copy": lambda test: copy.copy(test).items,
    "deepcopy": lambda test: copy.deepcopy(test).items,
    "pickle": lambda test: pickle.loads(pickle.dumps(test)).items,
}


@pytest.fixture
def sealed() -> Dataset:
    board = checkerboard(8, 8)
    return dataclasses.replace(board, test=SealedInteractions.of(board.test))


def scorer_of(dataset: Dataset) -> EmbeddingScorer:
    return EmbeddingScorer(torch.ones(dataset.n_users, 1), torch.ones(dataset.n_items, 1))


@pytest.mark.parametrize("way", WAYS_IN)
def test_no_way_in_before_it_is_unsealed(sealed: Dataset, way: str) -> None:
    with pytest.raises(SealedTestError, match="the test part is sealed until training has ended"):
        WAYS_IN[way](sealed.test)


def test_evaluating_on_a_sealed_test_part_is_refused(sealed: Dataset) -> None:
    with pytest.raises(SealedTestError):
        evaluate(scorer_of(sealed), sealed, split="test", k=[2])


def test_the_whole_of_a_sealed_dataset_is_refused(sealed: Dataset) -> None:
    with pytest.raises(SealedTestError):
        sealed.whole()


def test_sizes_and_vocabularies_are_no_secret(sealed: Dataset) -> None:
    assert len(sealed.test) == len(checkerboard(8, 8).test)
    assert (sealed.test.n_users, sealed.test.n_items) == (8, 8)
    assert repr(sealed.test) == "SealedInteractions(8 pairs of 8 users and 8 items)"
    assert "8 test" in repr(sealed)


@pytest.mark.parametrize("way", WAYS_IN)
def test_every_way_in_works_once_it_is_unsealed(sealed: Dataset, way: str) -> None:
    sealed.test.unseal("training has ended")
    assert sealed.test.reasons == ["training has ended"]
    assert repr(sealed.test).startswith("Unsealed")
    WAYS_IN[way](sealed.test)


def test_what_is_selected_after_opening_is_an_ordinary_part(sealed: Dataset) -> None:
    open_test = checkerboard(8, 8).test
    sealed.test.unseal("training has ended")
    some = sealed.test.select(np.array([3, 1]))
    assert some.items.tolist() == open_test.items[[3, 1]].tolist()
    assert len(some) == 2
    assert np.array_equal(some.sorted().pair_keys(), np.sort(some.pair_keys()))
    assert (
        evaluate(scorer_of(sealed), sealed, k=[2]).metrics
        == evaluate(scorer_of(sealed), checkerboard(8, 8), k=[2]).metrics
    )


def test_the_part_that_was_sealed_is_not_changed() -> None:
    part = checkerboard(8, 8).test
    SealedInteractions.of(part)
    assert len(part.items) == 8
