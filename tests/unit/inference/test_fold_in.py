"""Vectors of new users: every loss, every backbone, and what they must not depend on."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from pslrec.backbones import BACKBONES
from pslrec.data import Dataset
from pslrec.inference import RunFiles, TrainedModel
from pslrec.inference.fold_in import FoldIn, StepPlan
from pslrec.inference.ranking import lists_of
from pslrec.losses import LOSSES

MakeFiles = Callable[..., RunFiles]
EVEN, ODD = torch.tensor([0, 2, 4]), torch.tensor([1, 3])


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("loss", LOSSES)
def test_new_users_are_near_the_items_of_their_group(make_files: MakeFiles, loss: str, backbone: str) -> None:
    model = TrainedModel(make_files(loss, backbone))
    scores = model.fold_in([EVEN, ODD]) @ model.item_vectors.T
    for row, history in enumerate((EVEN, ODD)):
        others = torch.arange(1 - row, 8, 2)
        assert scores[row, history].min() > scores[row, others].max()


@pytest.mark.parametrize("loss", ["psl-relu", "sl", "bpr"])
def test_a_vector_does_not_depend_on_who_else_is_asked_for(make_files: MakeFiles, loss: str) -> None:
    model, small = TrainedModel(make_files(loss)), TrainedModel(make_files(loss), memory_budget=1)
    together = model.fold_in([EVEN, ODD, torch.tensor([7])])
    alone = torch.cat([model.fold_in([each]) for each in (EVEN, ODD, torch.tensor([7]))])
    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(together, small.fold_in([EVEN, ODD, torch.tensor([7])]), rtol=1e-3, atol=1e-4)


def test_steps_lead_away_from_the_start_as_far_as_the_plan_says(make_files: MakeFiles) -> None:
    model = TrainedModel(make_files())
    start, *reached = (
        functional.normalize(FoldIn(model.frozen(), memory_budget=2**20, plan=plan).vectors(lists_of([EVEN])), dim=1)[0]
        for plan in (StepPlan(3, 1e-6), StepPlan(3, 0.1), StepPlan(3, 0.5))
    )
    assert 1 > float(reached[0] @ start) > float(reached[1] @ start)


def test_order_and_repeats_in_a_history_change_nothing(make_files: MakeFiles) -> None:
    model = TrainedModel(make_files())
    torch.testing.assert_close(model.fold_in([torch.tensor([4, 0, 2, 0])]), model.fold_in([EVEN]))


def test_an_empty_history_gives_zeros_and_an_empty_list(make_files: MakeFiles) -> None:
    model = TrainedModel(make_files())
    nothing = torch.empty(0, dtype=torch.int64)
    assert not model.fold_in([nothing]).any()
    top = model.recommend_for([nothing, EVEN], 2)
    assert top.items[0].tolist() == [-1, -1]
    assert top.items[1, 0] == 6


def test_a_history_of_everything_is_not_an_error_for_graphs(make_files: MakeFiles) -> None:
    top = TrainedModel(make_files(backbone="xsimgcl")).recommend_for([torch.arange(8)], 2)
    assert top.items[0].tolist() == [-1, -1]


@pytest.mark.parametrize("backbone", ["mf", "lightgcn"])
def test_a_history_of_everything_has_no_negatives_and_still_gets_a_vector(make_files: MakeFiles, backbone: str) -> None:
    vectors = TrainedModel(make_files(backbone=backbone)).fold_in([torch.arange(8), EVEN])
    assert bool(vectors.isfinite().all())
    assert vectors.any(dim=1).all()


def test_it_works_where_gradients_are_forbidden(make_files: MakeFiles) -> None:
    model = TrainedModel(make_files())
    with torch.inference_mode():
        inside = model.fold_in([EVEN])
    torch.testing.assert_close(inside.clone(), model.fold_in([EVEN]))


def test_seen_items_of_a_history_come_back_when_asked_for(make_files: MakeFiles) -> None:
    top = TrainedModel(make_files()).recommend_for([EVEN], 8, exclude_seen=False)
    assert sorted(top.items[0].tolist()) == list(range(8))


@pytest.mark.parametrize("backbone", ["lightgcn", "xsimgcl"])
def test_messages_of_a_graph_equal_a_loop(board: Dataset, backbone: str) -> None:
    graph = BACKBONES[backbone](board.train, dimension=4, layers=2)
    pairs = set(zip(board.train.users.tolist(), board.train.items.tolist(), strict=True))
    degree = lambda side, row: sum(pair[side] == row for pair in pairs)  # noqa: E731
    users, items = graph.user_table.detach(), graph.item_table.detach()
    layer = torch.zeros_like(items)
    for user, item in pairs:
        layer[item] += users[user] / (degree(0, user) * degree(1, item)) ** 0.5
    divisor = 3 if backbone == "lightgcn" else 2
    expected = torch.stack([(items[i] + layer[i]) / (degree(1, i) + 1) ** 0.5 for i in range(8)]) / divisor
    rule = graph.new_users()
    torch.testing.assert_close(rule.messages, expected)
    assert rule.share == (1 / 3 if backbone == "lightgcn" else 0)
