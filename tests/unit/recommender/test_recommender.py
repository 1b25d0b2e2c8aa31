"""The Python door: external ids in and out, scikit-learn conventions, the same answers after saving."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from scipy.sparse import csr_matrix

import pslrec
from pslrec import NotFittedError, Recommender
from pslrec.data import Interactions
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.data.splits import split_by_name
from pslrec.errors import ConfigError, DataError, PslrecError, UnknownNameError

OPTIONS = {"epochs": 2, "dimension": 8, "negatives": "catalog"}


@pytest.fixture(scope="module")
def log() -> Interactions:
    return planted_tastes(60, 40, model=TasteModel(n_topics=3), seed=1).interactions


@pytest.fixture(scope="module")
def fitted(log: Interactions) -> Recommender:
    return Recommender("sl", **OPTIONS).fit(log)


def test_a_frame_of_lists_has_external_ids_and_ranks_from_one(
    fitted: Recommender, log: Interactions
) -> None:
    users = log.user_vocabulary.ids([3, 1])
    frame = fitted.recommend(users, k=4)
    assert frame.columns == ["user", "item", "score", "rank"]
    assert frame["user"].to_list() == [users[0]] * 4 + [users[1]] * 4
    assert frame["rank"].to_list() == [1, 2, 3, 4] * 2
    assert frame.filter(user=users[0])["score"].is_sorted(descending=True)
    seen = log.to_frame().filter(user=users[0])["item"]
    assert not set(frame.filter(user=users[0])["item"]) & set(seen)
    assert set(fitted.recommend(users[0], k=40, exclude_seen=False)["item"]) == set(
        log.item_vocabulary.series
    )


def test_everybody_is_recommended_to_by_default(fitted: Recommender) -> None:
    assert fitted.recommend(k=1)["user"].to_list() == fitted.users_.to_list()


def test_scores_are_those_of_the_lists(fitted: Recommender) -> None:
    frame = fitted.recommend(k=3)
    np.testing.assert_allclose(
        fitted.score(frame["user"], frame["item"]), frame["score"], rtol=1e-5
    )
    user = frame["user"][0]
    assert fitted.score(user, frame["item"][:3]).shape == (3,)
    with pytest.raises(DataError, match="must have the same length, got 2 and 3"):
        fitted.score(frame["user"][:2], frame["item"][:3])


def test_only_given_items_are_recommended(fitted: Recommender) -> None:
    items = fitted.items_[:3]
    assert set(fitted.recommend(k=5, items=items)["item"]) <= set(items)


def test_output_as_pandas_and_numpy_is_the_same(fitted: Recommender) -> None:
    frame = fitted.recommend(k=2)
    pandas = fitted.recommend(k=2, output="pandas")
    assert list(pandas.columns) == frame.columns
    assert pandas["item"].tolist() == frame["item"].to_list()
    array = fitted.recommend(k=2, output="numpy")
    assert array["rank"].tolist() == frame["rank"].to_list()
    with pytest.raises(ConfigError, match="`output` must be polars, pandas or numpy, got 'csv'"):
        fitted.recommend(k=2, output="csv")  # type: ignore[arg-type]


def test_new_people_come_as_a_list_lists_a_mapping_or_a_frame(fitted: Recommender) -> None:
    items = fitted.items_.to_list()
    one = fitted.recommend_for(items[:3], k=2)
    assert one["user"].to_list() == [0, 0]
    several = fitted.recommend_for([items[:3], items[5:9]], k=2)
    assert several["user"].to_list() == [0, 0, 1, 1]
    assert several["item"].to_list()[:2] == one["item"].to_list()
    named = fitted.recommend_for({"zoe": items[:3]}, k=2)
    assert named["user"].to_list() == ["zoe", "zoe"]
    frame = pl.DataFrame({"user": ["zoe"] * 3, "item": items[:3]})
    assert fitted.recommend_for(frame, k=2).equals(named)
    assert not set(one["item"]) & set(items[:3])


def test_odd_histories_are_refused_or_empty(fitted: Recommender) -> None:
    item = fitted.items_[0]
    with pytest.raises(DataError, match="`history` must be a list of item ids, got the text"):
        fitted.recommend_for(item)
    with pytest.raises(DataError, match="not both"):
        fitted.recommend_for([item, [item]])
    with pytest.raises(
        UnknownNameError, match="unknown item `gone` and 1 more; it was not in the training data"
    ):
        fitted.recommend_for([item, "gone", "lost"])
    assert fitted.recommend_for([], k=3).is_empty()


def test_a_new_item_is_refused_or_ranked_as_its_parent(fitted: Recommender) -> None:
    user, item = fitted.users_[0], fitted.recommend(fitted.users_[0], k=1)["item"][0]
    with pytest.raises(UnknownNameError, match=r"unknown item `new`; .* pass `parents="):
        fitted.score(user, "new")
    assert fitted.score(user, "new", parents={"new": item}) == fitted.score(user, item)
    shown = fitted.recommend(user, k=2, parents={"new": item})
    assert shown["item"].to_list() == [item, "new"]
    alone = fitted.recommend(user, k=1, items=["new"], parents={"new": item})
    assert alone["item"].to_list() == ["new"]
    other = fitted.recommend_for(["new"], k=40, parents={"new": item})
    assert "new" not in other["item"]
    assert item in other["item"]


def test_an_unknown_user_is_pointed_to_recommend_for(fitted: Recommender) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown user `nobody`; .* call `recommend_for`"):
        fitted.recommend("nobody")
    with pytest.raises(UnknownNameError, match="unknown user"):
        fitted.recommend([[1, 2]])


def test_neighbours_are_others(fitted: Recommender) -> None:
    item, user = fitted.items_[4], fitted.users_[2]
    items = fitted.similar_items(item, k=3)
    assert items.columns == ["item", "similar", "score", "rank"]
    assert item not in items["similar"]
    assert user not in fitted.similar_users([user], k=3)["similar"]


def test_saved_and_loaded_in_another_process_it_says_the_same(
    fitted: Recommender, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    fitted.save(path)
    program = (
        "import sys, pslrec; assert 'torch' not in sys.modules; r = pslrec.Recommender.load(sys.argv[1]); "
        "r.recommend(k=5).write_csv(sys.argv[2]); r.recommend_for(r.items_[:4], k=5).write_csv(sys.argv[3])"
    )
    files = tmp_path / "known.csv", tmp_path / "new.csv"
    subprocess.run([sys.executable, "-c", program, str(path), *map(str, files)], check=True)
    for file, frame in zip(
        files, (fitted.recommend(k=5), fitted.recommend_for(fitted.items_[:4], k=5)), strict=True
    ):
        found = pl.read_csv(file)
        assert found["item"].to_list() == frame["item"].to_list()
        np.testing.assert_allclose(found["score"], frame["score"], rtol=1e-4)


def test_a_loaded_one_can_be_saved_again_and_fitted_again(
    fitted: Recommender, log: Interactions, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "first")
    loaded = Recommender.load(tmp_path / "first")
    loaded.save(tmp_path / "second")
    assert Recommender.load(tmp_path / "second").recommend(k=2).equals(fitted.recommend(k=2))
    again = loaded.fit(log)
    torch.testing.assert_close(again.model_.user_vectors, fitted.model_.user_vectors)
    with pytest.raises(PslrecError, match=r"already holds a run.*overwrite=True"):
        fitted.save(tmp_path / "first")


def test_it_follows_scikit_learn_conventions(fitted: Recommender) -> None:
    sklearn = pytest.importorskip("sklearn.base")
    copy = sklearn.clone(fitted)
    given = {"loss": "sl", "backbone": "auto", **OPTIONS}
    assert copy.get_params() == fitted.get_params() == {**Recommender().get_params(), **given}
    assert not hasattr(copy, "model_")
    assert copy.set_params(epochs=7, loss="bpr") is copy
    assert (copy.epochs, copy.loss, fitted.epochs) == (7, "bpr", 2)


def test_before_fit_everything_says_so(tmp_path: Path) -> None:
    recommender = Recommender()
    for call in (
        recommender.recommend,
        lambda: recommender.save(tmp_path / "run"),
        lambda: recommender.users_,
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call()
    assert not hasattr(recommender, "model_")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = recommender.nonsense


def test_options_are_checked_when_they_are_set_or_used(log: Interactions) -> None:
    with pytest.raises(ConfigError, match="unknown option `epoch`; did you mean `epochs`"):
        Recommender(epoch=3)
    with pytest.raises(ConfigError, match="`training__epoch`; did you mean `training__epochs`"):
        Recommender().set_params(training__epoch=1)
    with pytest.raises(ConfigError, match=r"unknown option `temperature`.* BPRLoss has"):
        Recommender("bpr", temperature=0.1)
    with pytest.raises(ConfigError, match="`name` may mean several settings; write `backbone__n"):
        Recommender(name="mf")
    with pytest.raises(ConfigError, match=r"`training.epochs`"):
        Recommender(epochs=0).fit(log)


def test_every_input_gives_the_same_model(log: Interactions, tmp_path: Path) -> None:
    frame = log.to_frame()
    frame.write_csv(tmp_path / "log.csv")
    first = Recommender("sl", **OPTIONS).fit(frame).recommend(k=3)
    assert Recommender("sl", **OPTIONS).fit(tmp_path / "log.csv").recommend(k=3).equals(first)
    assert (
        Recommender("sl", **OPTIONS)
        .fit(frame.to_pandas())
        .recommend(k=3, output="polars")
        .equals(first)
    )
    by_number = Recommender("sl", **OPTIONS).fit(csr_matrix(log.matrix()))
    assert by_number.recommend(0, k=3)["user"].to_list() == [0, 0, 0]


def test_what_is_prepared_is_what_is_trained_on(log: Interactions) -> None:
    recommender = Recommender("sl", k_core=13, **OPTIONS).fit(log)
    assert 0 < recommender.n_users_ < log.n_users


def test_given_validation_chooses_the_epoch_and_is_hidden(log: Interactions) -> None:
    dataset = split_by_name(log, "iid")
    recommender = Recommender("sl", **OPTIONS).fit(dataset.train, validation=dataset.test)
    assert recommender.metrics_["validation"]["ndcg@20"] > 0
    shown = recommender.recommend(k=40).join(dataset.test.to_frame(), on=["user", "item"])
    assert shown.is_empty()
    strangers = pl.DataFrame({"user": ["a"], "item": ["b"]})
    with pytest.raises(DataError, match="`validation` has no interaction"):
        Recommender("sl", **OPTIONS).fit(dataset.train, validation=strangers)


def test_evaluate_leaves_out_who_is_not_known(log: Interactions) -> None:
    dataset = split_by_name(log, "iid")
    recommender = Recommender("sl", **OPTIONS).fit(dataset.train, validation="none")
    found = recommender.evaluate(dataset.test, k=[20])
    more = pl.concat([dataset.test.to_frame(), pl.DataFrame({"user": ["a"], "item": ["b"]})])
    assert found["ndcg@20"] > 0
    assert recommender.evaluate(more, k=[20]) == found


def test_refit_trains_on_everything(log: Interactions) -> None:
    recommender = Recommender("sl", refit=True, **OPTIONS).fit(log)
    assert recommender.metrics_["refit"]["pairs"] == len(log)


def test_the_package_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'recommender_of'"):
        _ = pslrec.recommender_of  # type: ignore[attr-defined]
