"""A model without rows of users: new people are served as known ones are, to the bit."""

from pathlib import Path

import pytest
import torch

from pslrec import Recommender
from pslrec.artifacts import ArtifactError, FinishedRun
from pslrec.data import Interactions
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.inference import TrainedModel
from pslrec.inference import _fold_in as fold_in_module
from pslrec.losses import LOSSES

N_USERS, N_ITEMS = 60, 40


@pytest.fixture(scope="module")
def log() -> Interactions:
    return planted_tastes(N_USERS, N_ITEMS, model=TasteModel(n_topics=3), seed=1).interactions


def fitted(log: Interactions, loss: str = "psl-relu", **options: object) -> Recommender:
    settings = {"epochs": 2, "dimension": 24, "negatives": "catalog", **options}
    return Recommender(loss, backbone="history", **settings).fit(log)


@pytest.fixture(scope="module")
def recommender(log: Interactions) -> Recommender:
    return fitted(log)


def training_histories(model: TrainedModel) -> list[torch.Tensor]:
    rows = model.frozen().train.rows
    return [torch.tensor(rows.list_of(user)) for user in range(model.n_users)]


@pytest.mark.parametrize("loss", ["psl-relu", "sl", "bpr", "mse"])
def test_a_training_history_gets_the_list_of_its_user_to_the_bit(
    log: Interactions, loss: str
) -> None:
    assert loss in LOSSES
    model = fitted(log, loss).model_
    histories = training_histories(model)
    together = model.recommend_for(histories, 10, exclude_seen=False)
    expected = model.recommend(torch.arange(N_USERS), 10, exclude_seen=False)
    assert torch.equal(model.fold_in(histories), model.user_vectors)
    assert torch.equal(together.items, expected.items)
    assert torch.equal(together.scores, expected.scores)
    for user in (0, 17, 59):
        one = model.recommend_for([histories[user]], 10, exclude_seen=False)
        known = model.recommend(torch.tensor([user]), 10, exclude_seen=False)
        assert torch.equal(one.items, known.items)
        assert torch.equal(one.scores, known.scores)


def test_by_external_ids_the_lists_are_the_same_too(log: Interactions) -> None:
    # Without a validation part, what is hidden is the training history.
    recommender = fitted(log, validation="none")
    for row in (3, 44):
        user = recommender.users_.to_list()[row]
        history = [recommender.items_.to_list()[item] for item in log.rows.list_of(row)]
        known = recommender.recommend(user, k=5)
        new = recommender.recommend_for(history, k=5)
        assert new["item"].to_list() == known["item"].to_list()
        assert new["score"].to_list() == known["score"].to_list()


def test_nobody_is_trained_and_a_new_interaction_counts_at_once(
    recommender: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("somebody was trained")

    monkeypatch.setattr(fold_in_module.FoldIn, "_train", refuse)
    monkeypatch.setattr(fold_in_module.FoldIn, "_vectors_of", refuse)
    model = recommender.model_
    before, after = model.fold_in([torch.tensor([1, 5]), torch.tensor([1, 5, 9])])
    assert not torch.equal(before, after)
    backbone = model.frozen().backbone
    tastes = backbone.user_table[[1, 5, 9], :-1].sum(dim=0)
    weight = (1 - backbone.popularity**2) ** 0.5
    torch.testing.assert_close(after[:-1], 0.5 * weight * tastes / tastes.norm())
    assert after[-1] == pytest.approx(-0.5 * backbone.popularity)


def test_an_empty_history_and_a_user_without_training_items_get_empty_lists(
    log: Interactions,
) -> None:
    without = log.select(log.users != 4)
    model = fitted(without, validation="none").model_
    assert not model.user_vectors[4].any()
    nothing = torch.empty(0, dtype=torch.int64)
    for top in (
        model.recommend_for([nothing, torch.tensor([3])], 3),
        model.recommend(torch.tensor([4, 5]), 3),
    ):
        assert top.items[0].tolist() == [-1, -1, -1]
        assert (top.items[1] >= 0).all()


def test_a_history_of_everything_has_a_vector_and_nothing_to_recommend(
    recommender: Recommender,
) -> None:
    model = recommender.model_
    everything = torch.arange(N_ITEMS)
    assert model.fold_in([everything]).any()
    assert (model.recommend_for([everything], 3).items == -1).all()


def test_similar_items_are_those_of_the_ranked_table_and_users_of_their_sums(
    recommender: Recommender,
) -> None:
    model = recommender.model_
    for vectors, top in (
        (model.item_vectors, model.similar_items(torch.tensor([7]), 5)),
        (model.user_vectors, model.similar_users(torch.tensor([7]), 5)),
    ):
        cosines = torch.cosine_similarity(vectors[7:8], vectors, dim=1)
        cosines[7] = -2.0
        assert top.items[0].tolist() == cosines.topk(5).indices.tolist()


def test_a_saved_model_is_the_same_and_keeps_no_table_twice(
    recommender: Recommender, tmp_path: Path
) -> None:
    recommender.save(tmp_path / "run")
    loaded = Recommender.load(tmp_path / "run").model_
    model = recommender.model_
    histories = [torch.tensor([2, 3]), torch.tensor([11])]
    assert torch.equal(loaded.user_vectors, model.user_vectors)
    assert torch.equal(loaded.fold_in(histories), model.fold_in(histories))
    assert set(loaded._run.tables) == {"users", "items", "user_table"}
    assert len(loaded._run.user_table) == N_ITEMS


def test_parents_stand_for_new_items_in_histories(recommender: Recommender) -> None:
    items = recommender.items_.to_list()
    known, new = (
        recommender.recommend_for([items[3], last], k=5, parents={"new": items[8]})
        for last in (items[8], "new")
    )
    # The new item is hidden where it is in the history, its parent elsewhere.
    shown = [item for item in known["item"].to_list() if item not in ("new", items[8])]
    assert [item for item in new["item"].to_list() if item not in ("new", items[8])][:3] == shown[
        :3
    ]


def test_tables_of_another_backbone_were_read_beyond_their_end(make_run) -> None:
    """The board has 6 users and 8 items, so that a table of users is too short for histories."""
    run: FinishedRun = make_run(backbone="lightgcn")
    run.config["backbone"]["name"] = "history"
    model = TrainedModel(run)
    with pytest.raises(
        ArtifactError,
        match=r"`user_table` of the run must have the shape \(8, 4\) for the backbone `history`",
    ):
        model.recommend_for([torch.tensor([7])], 3)


def test_the_run_is_refitted_on_histories_with_validation_items(log: Interactions) -> None:
    model = fitted(log, refit=True).model_
    rows = model.seen
    histories = [torch.tensor(rows.list_of(user)) for user in range(N_USERS)]
    # After a refit, the items that are hidden are those that users are made of.
    top = model.recommend_for(histories, 5)
    expected = model.recommend(torch.arange(N_USERS), 5)
    assert torch.equal(top.items, expected.items)
    assert torch.equal(top.scores, expected.scores)
