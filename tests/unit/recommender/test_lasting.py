"""Models that go on: pickled, sent to other processes, saved over, trained on with more data."""

import copy
import multiprocessing
import pickle
import pickletools
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import polars as pl
import pytest
import torch

from pslrec import Recommender
from pslrec.artifacts import ArtifactError
from pslrec.data import Interactions
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.errors import ConfigError, DataError, PslrecError, UnknownNameError

OPTIONS = {"preset": "fixed", "epochs": 3, "dimension": 8}


@pytest.fixture(scope="module")
def log() -> Interactions:
    return planted_tastes(60, 40, model=TasteModel(n_topics=3), seed=1).interactions


@pytest.fixture(scope="module")
def fitted(log: Interactions) -> Recommender:
    return Recommender("sl", **OPTIONS).fit(log.to_frame())


def test_a_pickle_names_nothing_but_the_recommender(fitted: Recommender) -> None:
    content = pickle.dumps(fitted)
    texts = []
    named = []
    for opcode, argument, _ in pickletools.genops(content):
        if isinstance(argument, str):
            texts.append(argument)
        if opcode.name == "STACK_GLOBAL":
            named.append(tuple(texts[-2:]))
        assert opcode.name not in ("GLOBAL", "REDUCE", "INST", "OBJ", "EXT1")
    assert named == [("pslrec.recommender._estimator", "Recommender")]


def test_a_pickled_model_says_the_same_and_can_be_saved(
    fitted: Recommender, tmp_path: Path
) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    assert again.recommend(k=3).equals(fitted.recommend(k=3))
    assert again.get_params() == fitted.get_params()
    assert repr(again) == repr(fitted)
    # Once more, and into a directory.
    pickle.loads(pickle.dumps(again)).save(tmp_path / "run")
    assert Recommender.load(tmp_path / "run").recommend(k=3).equals(fitted.recommend(k=3))
    assert copy.deepcopy(fitted).recommend(k=3).equals(fitted.recommend(k=3))
    assert pickle.loads(pickle.dumps(Recommender("bpr"))).loss == "bpr"


def test_a_damaged_pickle_is_refused(fitted: Recommender) -> None:
    for name, content in (("metrics.json", b"{"), ("../escaped", b"")):
        state = fitted.__getstate__()
        state["files"] = {**state["files"], name: content}
        with pytest.raises(PslrecError):
            Recommender().__setstate__(state)


def _best(recommender: Recommender, user: str) -> list[str]:
    return recommender.recommend(user, k=3)["item"].to_list()


def test_a_process_pool_takes_it(fitted: Recommender) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(_best, fitted, "user03").result() == _best(fitted, "user03")


def _unpickle(content: bytes, answers: Connection) -> None:
    try:
        answers.send(str(pickle.loads(content)))
    except PslrecError as error:
        answers.send(str(error))


# Newer Pythons warn of every fork of a process with threads.
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_gets_an_error_where_it_would_wait_for_ever(fitted: Recommender) -> None:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_unpickle, args=(pickle.dumps(fitted), sender), daemon=True)
    child.start()
    assert receiver.poll(60)
    assert 'start processes with `multiprocessing.get_context("spawn")`' in receiver.recv()
    child.join()


def test_joblib_stores_it(fitted: Recommender, tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    joblib.dump(fitted, tmp_path / "model.joblib")
    assert joblib.load(tmp_path / "model.joblib").recommend(k=2).equals(fitted.recommend(k=2))


@pytest.mark.slow
def test_joblib_runs_it_in_parallel(fitted: Recommender) -> None:
    joblib = pytest.importorskip("joblib")
    users = ["user01", "user02"]
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(_best)(fitted, user) for user in users)
    assert found == [_best(fitted, user) for user in users]


def titled(recommender: Recommender) -> pl.DataFrame:
    """Lists that only a recommender with the item table can make."""
    return recommender.recommend(["user03", "user05"], k=5, where="number >= 10")


@pytest.fixture
def described(log: Interactions) -> Recommender:
    items = sorted(log.to_frame()["item"].unique())
    table = pl.DataFrame(
        {
            "item": ["not in the log", *items],
            "title": ["New", *[f"Film {item}" for item in items]],
            "number": range(len(items) + 1),
            "cast": [["Ann", "Bob"]] * (len(items) + 1),
            # Of no use in conditions, and not to be written.
            "cover": [b"\x00"] * (len(items) + 1),
        }
    )
    return Recommender("sl", **OPTIONS).fit(log).use_item_table(table)


def test_the_item_table_is_saved_and_pickled_with_the_model(
    described: Recommender, tmp_path: Path
) -> None:
    lists = titled(described)
    assert "title" in lists.columns
    described.save(tmp_path / "run")
    loaded = Recommender.load(tmp_path / "run")
    assert titled(loaded).equals(lists)
    assert loaded.recommend("user03", k=1, where='cast contains "Bob"').height == 1
    # Lines about items that come later are kept.
    new = loaded.recommend("user03", k=1, parents={"not in the log": "item01"}, where="number < 1")
    assert new["title"].to_list() == ["New"]
    unpickled = pickle.loads(pickle.dumps(loaded))
    assert titled(unpickled).equals(lists)
    unpickled.save(tmp_path / "again")
    assert titled(Recommender.load(tmp_path / "again")).equals(lists)


def test_a_table_that_was_forgotten_is_not_saved(described: Recommender, tmp_path: Path) -> None:
    described.save(tmp_path / "run")
    for recommender in (described, Recommender.load(tmp_path / "run")):
        recommender.use_item_table(None).save(tmp_path / "without", overwrite=True)
        assert Recommender.load(tmp_path / "without").item_table is None
        assert pickle.loads(pickle.dumps(recommender)).item_table is None
    copied = pickle.loads(pickle.dumps(Recommender.load(tmp_path / "run")))
    assert pickle.loads(pickle.dumps(copied.use_item_table(None))).item_table is None


def test_a_damaged_item_table_is_refused_by_name(described: Recommender, tmp_path: Path) -> None:
    described.save(tmp_path / "run")
    (tmp_path / "run" / "item-table.parquet").write_bytes(b"PAR1 no table")
    with pytest.raises(ArtifactError, match=r"item-table.parquet cannot be read .* remove it"):
        Recommender.load(tmp_path / "run")


def test_only_a_run_is_overwritten(fitted: Recommender, log: Interactions, tmp_path: Path) -> None:
    place = tmp_path / "run"
    fitted.save(place, overwrite=True)
    with pytest.raises(PslrecError, match="already holds a run"):
        fitted.save(place)
    other = Recommender("bpr", **OPTIONS).fit(log)
    other.save(place, overwrite=True)
    loaded = Recommender.load(place)
    assert loaded.loss == "bpr"
    # Over the directory that it was loaded from.
    loaded.save(place, overwrite=True)
    assert Recommender.load(place).recommend(k=2).equals(other.recommend(k=2))
    with pytest.raises(ConfigError, match=r"exists already.*overwrite=True"):
        loaded.save(place)
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "letter.txt").write_text("dear")
    with pytest.raises(ConfigError, match="is not a run directory, so it is not overwritten"):
        fitted.save(documents, overwrite=True)
    assert (documents / "letter.txt").read_text() == "dear"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["documents", "run"]


def test_a_failed_overwrite_leaves_the_old_run(
    fitted: Recommender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted.save(tmp_path / "run")
    broken = copy.copy(fitted)

    def fail(*_: object, **__: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr("pslrec.recommender._storage.write_bytes", fail)
    with pytest.raises((OSError, PslrecError)):
        broken.save(tmp_path / "run", overwrite=True)
    assert Recommender.load(tmp_path / "run").recommend(k=2).equals(fitted.recommend(k=2))
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("backbone", ["mf", "history"])
def test_more_interactions_bring_new_users_and_items(log: Interactions, backbone: str) -> None:
    recommender = Recommender("sl", backbone, **OPTIONS).fit(log)
    held_out = recommender.model_.validation_pairs.to_frame()
    best = recommender.recommend("user01", k=1)["item"][0]
    new = pl.DataFrame(
        {"user": ["new"] * 3 + ["user01"] * 2, "item": ["item01", "item02", "novel", "novel", best]}
    )
    grown = recommender.partial_fit(pl.concat([new, held_out.head(4)]))
    assert grown is recommender
    assert (grown.n_users_, grown.n_items_) == (61, 41)
    assert len(grown.model_.seen.items) == len(log) + 5
    # Known pairs are hidden from the lists, and what was held out is still held out.
    assert best not in grown.recommend("user01", k=40)["item"].to_list()
    assert grown.recommend("new", k=3).height == 3
    assert (
        grown.model_.validation_pairs.to_frame()
        .sort("user", "item")
        .equals(held_out.sort("user", "item"))
    )
    assert grown.metrics_["learnt_before"]["validation"] == 0
    assert grown.config_.training.warm_start == "(in memory)"


def test_partial_fit_starts_from_the_model_before(log: Interactions) -> None:
    recommender = Recommender("sl", "mf", **OPTIONS).fit(log, "none")
    before = recommender.model_.item_vectors
    # So small a rate that the tables stay where they start.
    recommender.config_ = recommender.config_.from_settings(
        {"training.learning_rate": 1e-9}, base=recommender.config_
    )
    recommender.partial_fit(log.to_frame().head(5))
    torch.testing.assert_close(recommender.model_.item_vectors, before, atol=1e-4, rtol=0)


def test_partial_fit_of_an_unfitted_one_fits(log: Interactions) -> None:
    first = Recommender("sl", **OPTIONS).partial_fit(log)
    assert first.recommend(k=2).equals(Recommender("sl", **OPTIONS).fit(log).recommend(k=2))


def test_after_a_refit_training_is_as_long_as_before(log: Interactions) -> None:
    recommender = Recommender("sl", refit=True, **OPTIONS).fit(log)
    best = recommender.metrics_["best_epoch"]
    recommender.partial_fit(pl.DataFrame({"user": ["user01"], "item": ["new"]}))
    assert recommender.metrics_["trained_epochs"] == best
    assert recommender.model_.validation_pairs is None
    assert len(recommender.model_.seen.items) == len(log) + 1


def test_prepared_data_grow_by_what_is_rated_well_enough(log: Interactions) -> None:
    frame = log.to_frame().with_columns(rating=pl.lit(5.0))
    recommender = Recommender("sl", k_core=2, minimum_rating=3, **OPTIONS).fit(frame)
    new = pl.DataFrame({"user": ["x", "x"], "item": ["item01", "item02"], "rating": [5.0, 1.0]})
    recommender.partial_fit(new)
    assert recommender.model_.seen.lengths[recommender.users_.index_of("x")] == 1


def test_low_ratings_of_another_id_type_are_remembered(log: Interactions) -> None:
    numbered = log.to_frame().select(
        pl.col("user").str.slice(4).cast(pl.Int64),
        pl.col("item").str.slice(4).cast(pl.Int64),
        rating=pl.lit(5.0),
    )
    recommender = Recommender("sl", minimum_rating=3, **OPTIONS).fit(numbered)
    user, item = recommender.recommend(k=1).select("user", "item").row(0)
    new = {"user": [str(user), "77"], "item": [str(item), str(item)], "rating": [1.0, 5.0]}
    recommender.partial_fit(pl.DataFrame(new))
    disliked = recommender.model_.disliked_pairs.to_frame().select("user", "item")
    assert disliked.rows() == [(user, item)]


def test_nobody_is_recommended_what_they_rated_too_low(log: Interactions, tmp_path: Path) -> None:
    """A minimum rating left disliked items out of training, and so among the recommended ones."""
    frame = log.to_frame().with_columns(
        rating=pl.when(pl.int_range(pl.len()) % 3 == 0).then(1.0).otherwise(5.0)
    )
    disliked = set(frame.filter(pl.col("rating") == 1.0).select("user", "item").iter_rows())
    recommender = Recommender("sl", minimum_rating=3, **OPTIONS).fit(frame)
    n_items = len(recommender.items_)

    def listed(model: Recommender) -> set[tuple[str, str]]:
        found = model.recommend(k=n_items).select("user", "item")
        return set(found.iter_rows())

    assert len(recommender.model_.disliked_pairs)
    assert not disliked & listed(recommender)
    recommender.save(tmp_path / "run")
    again = Recommender.load(tmp_path / "run")
    assert listed(again) == listed(recommender)
    everything = again.recommend(k=n_items, exclude_seen=False).select("user", "item")
    assert disliked & set(everything.iter_rows())
    # More data, among which is another pair that is disliked.
    user, item = sorted(listed(again))[0]
    new = pl.DataFrame({"user": [user, "x"], "item": [item, item], "rating": [1.0, 5.0]})
    again.partial_fit(new)
    assert not (disliked | {(user, item)}) & listed(again)


def test_ids_of_another_kind_are_read_as_the_known_ones() -> None:
    numbered = planted_tastes(30, 20, model=TasteModel(n_topics=2), seed=1).interactions.to_frame()
    numbered = numbered.select(
        pl.col("user").str.slice(4).cast(pl.Int64), pl.col("item").str.slice(4).cast(pl.Int64)
    )
    recommender = Recommender("sl", **OPTIONS).fit(numbered)
    recommender.partial_fit(pl.DataFrame({"user": ["77"], "item": ["1"]}))
    assert 77 in recommender.users_.to_list()
    with pytest.raises(DataError, match="has the user `ann`, and ids of the users in the training"):
        recommender.partial_fit(pl.DataFrame({"user": ["ann"], "item": ["1"]}))
    # User 7 is somebody else.
    with pytest.raises(DataError, match="has the user `007`, and ids of the users in the training"):
        recommender.partial_fit(pl.DataFrame({"user": ["007"], "item": ["1"]}))
    with pytest.raises(UnknownNameError, match="unknown user `007`"):
        recommender.recommend(["007"])
    assert recommender.recommend(["7"]).equals(recommender.recommend([7]))


def test_a_warm_start_takes_the_model_before_and_what_auto_found(log: Interactions) -> None:
    recommender = Recommender("sl", epochs=2, warm_start=True).fit(log)
    found = recommender.config_.auto.chosen
    assert recommender.config_.training.warm_start is None
    again = recommender.fit(log)
    assert again.config_.auto.chosen == found
    assert again.config_.training.warm_start == "(in memory)"
    assert "auto" not in again.metrics_


def test_a_path_starts_from_a_saved_run(log: Interactions, tmp_path: Path) -> None:
    first = Recommender("sl", "mf", **OPTIONS).fit(log)
    items = first.items_.to_list()
    titles = [f"Film {item}" for item in items]
    first.use_item_table(pl.DataFrame({"item": items, "title": titles})).save(tmp_path / "run")
    warm = Recommender("sl", "mf", warm_start=tmp_path / "run", **OPTIONS).fit(log)
    assert warm.config_.training.warm_start == str(tmp_path / "run")
    assert list(warm.item_table.titles) == titles
