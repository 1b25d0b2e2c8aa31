"""Vectors of new users: every loss, every backbone, and what they must not depend on."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn import functional

from pslrec.artifacts import ArtifactError, FinishedRun
from pslrec.backbones import BACKBONES
from pslrec.data import Dataset
from pslrec.errors import PslrecError
from pslrec.inference import TrainedModel
from pslrec.inference import _fold_in as fold_in_module
from pslrec.inference._fold_in import FoldIn, StepPlan
from pslrec.losses import LOSSES
from pslrec.rows import Rows
from pslrec.training._catalog_objective import CatalogObjective

MakeRun = Callable[..., FinishedRun]
EVEN, ODD = torch.tensor([0, 2, 4]), torch.tensor([1, 3])


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("loss", [*LOSSES, "psl-relu@5"])
def test_new_users_are_near_the_items_of_their_group(
    make_run: MakeRun, loss: str, backbone: str
) -> None:
    model = TrainedModel(make_run(loss, backbone))
    scores = model.fold_in([EVEN, ODD]) @ model.item_vectors.T
    for row, history in enumerate((EVEN, ODD)):
        others = torch.arange(1 - row, 8, 2)
        assert scores[row, history].min() > scores[row, others].max()


@pytest.mark.parametrize("loss", ["psl-relu", "sl", "bpr"])
def test_a_vector_does_not_depend_on_who_else_is_asked_for(make_run: MakeRun, loss: str) -> None:
    model, small = TrainedModel(make_run(loss)), TrainedModel(make_run(loss), memory_budget=1)
    together = model.fold_in([EVEN, ODD, torch.tensor([7])])
    alone = torch.cat([model.fold_in([each]) for each in (EVEN, ODD, torch.tensor([7]))])
    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(
        together, small.fold_in([EVEN, ODD, torch.tensor([7])]), rtol=1e-3, atol=1e-4
    )


def test_steps_lead_away_from_the_start_as_far_as_the_plan_says(make_run: MakeRun) -> None:
    model = TrainedModel(make_run())
    start, *reached = (
        functional.normalize(
            FoldIn(model.frozen(), memory_budget=2**20, plan=plan).vectors(Rows.from_lists([EVEN])),
            dim=1,
        )[0]
        for plan in (StepPlan(3, 1e-6), StepPlan(3, 0.1), StepPlan(3, 0.5))
    )
    assert 1 > float(reached[0] @ start) > float(reached[1] @ start)


def test_order_and_repeats_in_a_history_change_nothing(make_run: MakeRun) -> None:
    model = TrainedModel(make_run())
    torch.testing.assert_close(model.fold_in([torch.tensor([4, 0, 2, 0])]), model.fold_in([EVEN]))


def test_an_empty_history_gives_zeros_and_an_empty_list(make_run: MakeRun) -> None:
    model = TrainedModel(make_run())
    nothing = torch.empty(0, dtype=torch.int64)
    assert not model.fold_in([nothing]).any()
    top = model.recommend_for([nothing, EVEN], 2)
    assert top.items[0].tolist() == [-1, -1]
    assert top.items[1, 0] == 6


def test_a_history_of_everything_is_not_an_error_for_graphs(make_run: MakeRun) -> None:
    top = TrainedModel(make_run(backbone="xsimgcl")).recommend_for([torch.arange(8)], 2)
    assert top.items[0].tolist() == [-1, -1]


@pytest.mark.parametrize("backbone", ["mf", "lightgcn"])
def test_a_history_of_everything_has_no_negatives_and_still_gets_a_vector(
    make_run: MakeRun, backbone: str
) -> None:
    vectors = TrainedModel(make_run(backbone=backbone)).fold_in([torch.arange(8), EVEN])
    assert bool(vectors.isfinite().all())
    assert vectors.any(dim=1).all()


def test_it_works_where_gradients_are_forbidden(make_run: MakeRun) -> None:
    model = TrainedModel(make_run())
    with torch.inference_mode():
        inside = model.fold_in([EVEN])
    torch.testing.assert_close(inside.clone(), model.fold_in([EVEN]))


def test_seen_items_of_a_history_come_back_when_asked_for(make_run: MakeRun) -> None:
    top = TrainedModel(make_run()).recommend_for([EVEN], 8, exclude_seen=False)
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
    expected = (
        torch.stack([(items[i] + layer[i]) / (degree(1, i) + 1) ** 0.5 for i in range(8)]) / divisor
    )
    rule = graph.new_users()
    torch.testing.assert_close(rule.messages, expected)
    assert rule.share == (1 / 3 if backbone == "lightgcn" else 0)


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("loss", [*LOSSES, "psl-relu@5"])
def test_items_that_are_not_normalised_again_give_the_same_vectors(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, loss: str, backbone: str
) -> None:
    histories = [EVEN, ODD, torch.tensor([7])]
    found = TrainedModel(make_run(loss, backbone)).fold_in(histories)
    monkeypatch.setattr(fold_in_module, "_FrozenItemsObjective", CatalogObjective)
    plain = TrainedModel(make_run(loss, backbone)).fold_in(histories)
    torch.testing.assert_close(found, plain, rtol=1e-4, atol=1e-5)


def extreme(
    files: FinishedRun, *, user_scale: float, item_scale: float, decay: float
) -> FinishedRun:
    """The same run after a training that led its tables so far away."""
    scales = {
        "users": user_scale,
        "user_table": user_scale,
        "items": item_scale,
        "item_table": item_scale,
    }
    tables = {
        name: table.double().mul(scales[name]).float() for name, table in files.tables.items()
    }
    config = {**files.config, "training": {"weight_decay": decay}}
    return replace(files, tables=tables, config=config)


@pytest.mark.parametrize("backbone", ["mf", "lightgcn"])
@pytest.mark.parametrize("loss", ["psl-relu", "sl", "bpr", "mse"])
@pytest.mark.parametrize("decay", [1e10, 1e20, 1e30])
def test_a_large_weight_decay_gave_vectors_of_nan(
    make_run: MakeRun, loss: str, backbone: str, decay: float
) -> None:
    """Adam does not depend on the scale of the gradient, but the square of a large one is infinite in single precision."""
    model = TrainedModel(
        extreme(make_run(loss, backbone), user_scale=1.0, item_scale=1.0, decay=decay)
    )
    assert model.fold_in([EVEN, ODD]).isfinite().all()
    assert (model.recommend_for([EVEN, ODD], 3).items >= 0).all()


MAGNITUDES = st.floats(-45, 38).map(lambda power: 10.0**power)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(
    loss=st.sampled_from(sorted(LOSSES)),
    backbone=st.sampled_from(sorted(BACKBONES)),
    user_scale=MAGNITUDES,
    item_scale=MAGNITUDES,
    decay=st.one_of(st.just(0.0), MAGNITUDES),
)
def test_whatever_training_left_fold_in_is_finite_or_says_why_not(
    make_run: MakeRun,
    loss: str,
    backbone: str,
    user_scale: float,
    item_scale: float,
    decay: float,
) -> None:
    files = extreme(
        make_run(loss, backbone), user_scale=user_scale, item_scale=item_scale, decay=decay
    )
    if not all(table.isfinite().all() for table in files.tables.values()):
        return  # no run is saved with such tables
    model = TrainedModel(files)
    try:
        vectors = model.fold_in([EVEN, ODD, torch.arange(8)])
        assert vectors.isfinite().all()
        model.recommend_for([EVEN, ODD], 3)
    except PslrecError as error:
        assert "\n" not in str(error)  # noqa: PT017


def test_a_vector_that_is_not_finite_is_refused_with_what_to_do(make_run: MakeRun) -> None:
    model = TrainedModel(extreme(make_run("mse"), user_scale=1e38, item_scale=1.0, decay=1e30))
    with pytest.raises(
        ArtifactError, match=r"train again with a smaller learning rate or weight decay"
    ):
        model.recommend_for([EVEN], 3)
