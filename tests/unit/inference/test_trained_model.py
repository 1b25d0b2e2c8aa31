"""Ranked lists, similar items and users of a trained model, against a sort of all scores."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from pslrec.artifacts import FinishedRun
from pslrec.data import Dataset
from pslrec.errors import ConfigError, DataError, PslrecError, UnknownNameError
from pslrec.inference import TrainedModel, top_items

MakeRun = Callable[..., FinishedRun]


def seen_of(board: Dataset, user: int) -> set[int]:
    parts = [board.train, board.validation]
    return {
        int(item) for part in parts if part is not None for item in part.items[part.users == user]
    }


def naive_list(scores: torch.Tensor, hidden: set[int], k: int) -> list[int]:
    order = sorted(range(len(scores)), key=lambda item: (-float(scores[item]), item))
    return [item for item in order if item not in hidden][:k]


@pytest.mark.parametrize("loss", ["psl-relu", "bpr"])
def test_recommend_equals_a_sort_without_training_and_validation_items(
    make_run: MakeRun, board: Dataset, loss: str
) -> None:
    model = TrainedModel(make_run(loss))
    top = model.recommend(torch.arange(6), 3)
    tables = make_run().tables
    users, items = tables["users"], tables["items"]
    if loss == "psl-relu":
        users, items = functional.normalize(users, dim=1) / 2, functional.normalize(items, dim=1)
    for user in range(6):
        expected = naive_list(users[user] @ items.T, seen_of(board, user), 3)
        assert top.items[user].tolist() == expected
        torch.testing.assert_close(top.scores[user], (users[user] @ items.T)[expected])


def test_seen_items_come_back_when_asked_for(make_run: MakeRun) -> None:
    model = TrainedModel(make_run())
    shown = model.recommend(torch.tensor([0]), 8, exclude_seen=False).items[0]
    assert sorted(shown.tolist()) == list(range(8))


def test_lists_shorter_than_k_end_in_nothing(make_run: MakeRun) -> None:
    top = TrainedModel(make_run()).recommend(torch.tensor([0, 1]), 10**9)
    assert top.items.shape == (2, 8)
    assert top.items[0].tolist()[-3:] == [-1, -1, -1]
    assert top.scores[0].isinf().sum() == 3
    assert (top.items[1] == -1).sum() == 4  # one of its items is in validation


def test_only_the_given_items_are_ranked(make_run: MakeRun) -> None:
    model = TrainedModel(make_run())
    top = model.recommend(torch.tensor([0]), 5, items=torch.tensor([7, 6, 0, 6]))
    assert top.items[0].tolist() == [6, 7, -1]  # 0 was seen


def test_the_memory_budget_changes_nothing(make_run: MakeRun) -> None:
    large, small = TrainedModel(make_run()), TrainedModel(make_run(), memory_budget=1)
    for one, other in zip(
        large.recommend(torch.arange(6), 4), small.recommend(torch.arange(6), 4), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_similar_items_equal_a_sort_of_cosines_without_the_item_itself(
    make_run: MakeRun,
) -> None:
    model = TrainedModel(make_run("bpr"))
    items = functional.normalize(make_run().tables["items"], dim=1)
    top = model.similar_items(torch.tensor([5, 2]), 4)
    assert [row.tolist() for row in top.items] == [
        naive_list(items[row] @ items.T, {row}, 4) for row in (5, 2)
    ]
    assert 0 not in model.similar_users(torch.tensor([0]), 5).items[0]


def test_score_is_that_of_the_list(make_run: MakeRun) -> None:
    model = TrainedModel(make_run())
    top = model.recommend(torch.tensor([3]), 2)
    torch.testing.assert_close(model.score(torch.tensor([3, 3]), top.items[0]), top.scores[0])


def test_an_item_with_a_parent_is_ranked_as_its_parent_is(make_run: MakeRun) -> None:
    model = TrainedModel(make_run()).with_parents({999: 106})
    (row,) = model.items.rows([999])
    scores = model.score(torch.tensor([1, 1]), torch.tensor([int(row), 6]))
    assert scores[0] == scores[1]
    # User 0 has seen the parent's neighbours, but not the new item.
    assert int(row) in model.recommend(torch.tensor([0]), 8).items[0]
    torch.testing.assert_close(
        model.fold_in([torch.tensor([int(row)])]), model.fold_in([torch.tensor([6])])
    )


def test_parents_must_be_known_and_children_must_not(make_run: MakeRun) -> None:
    model = TrainedModel(make_run())
    with pytest.raises(UnknownNameError, match="unknown item `55`, the parent of `999`"):
        model.with_parents({999: 55})
    with pytest.raises(DataError, match="`101` was in the training data"):
        model.with_parents({101: 100})
    with pytest.raises(DataError, match="ids of the type Int64"):
        model.with_parents({"new": 100})


@pytest.mark.parametrize("k", [0, -1, True, 2.5])
def test_a_k_that_is_no_length_is_refused(make_run: MakeRun, k: int) -> None:
    with pytest.raises(ConfigError, match="`k` must be a whole number of at least 1"):
        TrainedModel(make_run()).recommend(torch.tensor([0]), k)


@pytest.mark.parametrize(
    "rows", [torch.tensor([6]), torch.tensor([-1]), torch.tensor([0.5]), torch.tensor([[0]])]
)
def test_rows_that_are_none_are_refused(make_run: MakeRun, rows: torch.Tensor) -> None:
    with pytest.raises(DataError, match="`user_rows` must be"):
        TrainedModel(make_run()).recommend(rows, 3)


def test_no_users_and_no_candidates_give_no_lists(make_run: MakeRun) -> None:
    model = TrainedModel(make_run())
    nothing = torch.empty(0, dtype=torch.int64)
    assert model.recommend(nothing, 3).items.shape == (0, 3)
    assert model.recommend(torch.tensor([0]), 3, items=nothing).items.shape == (1, 0)


def test_equal_scores_are_ordered_by_row() -> None:
    top = top_items(torch.ones(1, 2), torch.ones(5, 2), 3)
    assert top.items.tolist() == [[0, 1, 2]]


def test_a_loaded_run_is_the_one_that_was_written(run_path: Path, make_run: MakeRun) -> None:
    loaded, made = TrainedModel.load(run_path), TrainedModel(make_run("sl"))
    torch.testing.assert_close(loaded.user_vectors, made.user_vectors)
    np.testing.assert_array_equal(loaded.seen.items, made.seen.items)
    assert loaded.users == made.users
    assert loaded.information["epoch"] == 3
    assert loaded.metrics == {"test": {"ndcg@20": 0.5}}


def test_settings_that_make_no_sense_are_refused(make_run: MakeRun) -> None:
    files = make_run("sl", temperature="warm")
    with pytest.raises(PslrecError, match="the settings of the run's loss `sl` make no sense"):
        TrainedModel(files)
    with pytest.raises(PslrecError, match="unknown backbone `os`"):
        TrainedModel(replace(files, config={"loss": {"name": "sl"}, "backbone": {"name": "os"}}))
    with pytest.raises(PslrecError, match="must name a loss"):
        TrainedModel(replace(files, config={"loss": "sl"}))


@pytest.mark.parametrize("candidates", [None, torch.arange(5, 41), torch.tensor([7, 40])])
def test_new_items_have_the_scores_of_their_parents_to_the_bit(
    candidates: torch.Tensor | None,
) -> None:
    """Matrix products round equal columns differently on some processors."""
    generator = torch.Generator().manual_seed(0)
    users = torch.randn(50, 24, generator=generator)
    parents = torch.cat([torch.arange(40), torch.tensor([7, 2])])
    items = torch.randn(40, 24, generator=generator)[parents]
    # Rows that are said to be equal, and are not quite, as if products had rounded them.
    items[40:] += 1e-6
    top = top_items(users, items, 42, parents=parents, candidates=candidates)
    for listed, scores in zip(top.items.tolist(), top.scores.tolist(), strict=True):
        place = listed.index(40)
        assert listed[place - 1] == 7
        assert scores[place] == scores[place - 1]
