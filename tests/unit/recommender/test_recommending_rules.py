"""Rules, item tables and explanations in Python, for backbones with a user table and without one."""

import polars as pl
import pytest

from pslrec import NotFittedError, Recommender
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.errors import ConfigError, DataError, UnknownNameError

N_ITEMS = 40


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "item": range(N_ITEMS),
            "title": [f"Film {item}" for item in range(N_ITEMS)],
            "genre": [("Comedy", "Drama", "War")[item % 3] for item in range(N_ITEMS)],
            "year": [1980 + item for item in range(N_ITEMS)],
        }
    )


@pytest.fixture(scope="module", params=["mf", "history"])
def fitted(request: pytest.FixtureRequest, table: pl.DataFrame) -> Recommender:
    log = planted_tastes(60, N_ITEMS, model=TasteModel(n_topics=3), seed=1).interactions
    # Whole numbers as ids of both sides.
    frame = pl.DataFrame({"user": log.users + 1000, "item": log.items})
    recommender = Recommender(
        "sl", request.param, epochs=2, dimension=8, negatives="catalog", preset="fixed"
    )
    return recommender.fit(frame).use_item_table(table)


def test_titles_stand_beside_ids(fitted: Recommender) -> None:
    frame = fitted.recommend(1003, k=3)
    assert frame.columns == ["user", "item", "score", "rank", "title"]
    assert frame["title"].to_list() == [f"Film {item}" for item in frame["item"]]
    similar = fitted.similar_items(5, k=2)
    assert similar["title"].to_list() == [f"Film {item}" for item in similar["similar"]]
    new = fitted.recommend_for([1, 2, 3], k=2, output="pandas")
    assert new["title"].tolist() == [f"Film {item}" for item in new["item"]]


def test_ids_may_be_given_as_text(fitted: Recommender) -> None:
    assert fitted.recommend("1003", k=3).equals(fitted.recommend(1003, k=3))
    assert fitted.recommend_for(["1", "2"], k=3).equals(fitted.recommend_for([1, 2], k=3))
    assert fitted.similar_items("5", k=3).equals(fitted.similar_items(5, k=3))
    assert fitted.score("1003", "5") == fitted.score(1003, 5)


def test_conditions_and_lists_of_ids_hold(fitted: Recommender) -> None:
    where = 'genre == "Comedy" and year >= 1990'
    for frame in (
        fitted.recommend(k=N_ITEMS, where=where, exclude_seen=False),
        fitted.recommend_for([1, 2], k=N_ITEMS, where=where, exclude_seen=False),
    ):
        assert set(frame["item"]) == {item for item in range(10, N_ITEMS) if item % 3 == 0}
    assert set(fitted.similar_items(0, k=N_ITEMS, where=where)["similar"]) == set(
        range(12, N_ITEMS, 3)
    )
    frame = fitted.recommend(1003, k=N_ITEMS, items=[1, "2", 3], exclude=3, exclude_seen=False)
    assert set(frame["item"]) == {1, 2}
    assert 7 not in fitted.similar_items(0, k=N_ITEMS, exclude=[7])["similar"]


def test_a_filtered_list_is_the_plain_one_without_what_is_forbidden(fitted: Recommender) -> None:
    plain = fitted.recommend(1003, k=N_ITEMS)
    filtered = fitted.recommend(1003, k=5, where='genre != "War"')
    expected = plain.filter(pl.col("item") % 3 != 2).head(5)
    assert filtered["item"].to_list() == expected["item"].to_list()
    assert filtered["score"].to_list() == pytest.approx(expected["score"].to_list(), rel=1e-5)
    assert filtered["rank"].to_list() == [1, 2, 3, 4, 5]


def test_items_are_left_out_for_single_users(fitted: Recommender) -> None:
    plain = fitted.recommend([1003, 1004], k=2)
    first = plain.filter(user=1003)["item"].to_list()
    for by_user in (
        {"1003": first},
        {1003: first[0], 1004: []} | {1003: first},
        pl.DataFrame({"user": [1003, 1003], "item": first}),
    ):
        frame = fitted.recommend([1003, 1004], k=2, exclude_by_user=by_user)
        assert not set(frame.filter(user=1003)["item"]) & set(first)
        assert frame.filter(user=1004).equals(plain.filter(user=1004))
    new = fitted.recommend_for({"zoe": [1, 2], "max": [1, 2]}, k=2)
    own = new.filter(user="zoe")["item"].to_list()
    frame = fitted.recommend_for({"zoe": [1, 2], "max": [1, 2]}, k=2, exclude_by_user={"zoe": own})
    assert not set(frame.filter(user="zoe")["item"]) & set(own)
    assert frame.filter(user="max")["item"].to_list() == own


def test_no_list_has_more_items_of_a_category_than_asked_for(fitted: Recommender) -> None:
    frame = fitted.recommend(k=6, at_most={"genre": 2})
    counts = frame.with_columns(genre=pl.col("item") % 3).group_by("user", "genre").len()
    assert counts["len"].max() == 2
    assert len(frame) == 6 * fitted.n_users_
    best = fitted.recommend(k=1)
    assert frame.filter(rank=1)["item"].equals(best["item"])


def test_unknown_ids_are_refused_or_skipped(fitted: Recommender) -> None:
    for arguments in (
        {"users": [1003, 7]},
        {"users": 1003, "exclude": 99},
        {"users": 1003, "items": [1, 99]},
        {"users": 1003, "exclude_by_user": {7: [1]}},
    ):
        with pytest.raises(UnknownNameError, match=r"unknown (user `7`|item `99`)"):
            fitted.recommend(k=2, **arguments)
        found = fitted.recommend(k=2, skip_unknown=True, exclude_seen=False, **arguments)
        assert set(found["user"]) == {1003}
    with pytest.raises(UnknownNameError, match="unknown item `99`"):
        fitted.recommend_for([1, 99], k=2)
    skipped = fitted.recommend_for([1, 99], k=2, skip_unknown=True)
    assert skipped.equals(fitted.recommend_for([1], k=2))


def test_mistakes_are_named(fitted: Recommender) -> None:
    with pytest.raises(
        ConfigError, match="`wher` is not an argument; the rules are items, exclude"
    ):
        fitted.recommend(1003, wher="x")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="did you mean `genre`"):
        fitted.recommend(1003, where="gerne == 'x'")
    with pytest.raises(ConfigError, match="`exclude_by_user` must be a mapping"):
        fitted.recommend(1003, exclude_by_user=[1, 2])


def test_reasons_come_from_the_history(fitted: Recommender) -> None:
    seen = fitted.model_.seen.list_of(fitted.model_.users.find(1003))
    history = set(fitted.model_.items.ids(seen))
    items = fitted.recommend(1003, k=3)["item"].to_list()
    frame = fitted.explain(1003, items, n_reasons=2)
    assert frame.columns == ["item", "because", "similarity", "rank", "title", "because_title"]
    assert frame["item"].to_list() == [item for item in items for _ in range(2)]
    assert set(frame["because"]) <= history
    assert frame["rank"].to_list() == [1, 2] * 3
    assert frame["because_title"].to_list() == [f"Film {item}" for item in frame["because"]]
    assert (frame["similarity"] <= 1.0001).all()
    same = fitted.explain_for(sorted(history), items, n_reasons=2)
    assert same.equals(frame)
    assert fitted.explain("1003", str(items[0]), output="numpy")["rank"].tolist() == [1, 2, 3]
    with pytest.raises(DataError, match="of one user, got those of 2"):
        fitted.explain_for([[1], [2]], 3)


def test_lists_carry_their_reasons(fitted: Recommender) -> None:
    frame = fitted.recommend([1003, 1004], k=3, explain=2)
    expected = fitted.explain(1003, frame.filter(user=1003)["item"], n_reasons=2)
    assert frame.filter(user=1003)["because"].explode().to_list() == expected["because"].to_list()
    titles = frame["because_titles"].explode().to_list()
    assert titles == [f"Film {item}" for item in frame["because"].explode()]
    new = fitted.recommend_for([1, 2], k=2, explain=1)
    assert set(new["because"].explode()) <= {1, 2}


def test_new_items_have_their_own_line_of_the_table(
    fitted: Recommender, table: pl.DataFrame
) -> None:
    more = pl.concat(
        [table, pl.DataFrame({"item": [500], "title": ["New"], "genre": ["War"], "year": [2030]})]
    )
    fitted.use_item_table(more)
    frame = fitted.recommend(1003, k=1, parents={500: 5}, where="year > 2025")
    assert frame.select("item", "title").rows() == [(500, "New")]
    fitted.use_item_table(table)


def test_the_table_can_be_forgotten_and_follows_another_fit(table: pl.DataFrame) -> None:
    log = pl.DataFrame({"user": [1, 1, 2, 2, 3, 3], "item": [1, 2, 2, 3, 1, 3]})
    recommender = Recommender("sl", epochs=1, dimension=4, preset="fixed")
    assert recommender.item_table is None
    with pytest.raises(NotFittedError, match="call `fit` first"):
        recommender.use_item_table(table)
    recommender.fit(log, validation="none").use_item_table(table)
    assert recommender.item_table is not None
    assert recommender.item_table.titles == ["Film 1", "Film 2", "Film 3"]
    recommender.fit(log.with_columns(item=pl.col("item") + 10), validation="none")
    assert recommender.item_table.titles == ["Film 11", "Film 12", "Film 13"]
    assert recommender.item_table is recommender.item_table
    assert recommender.use_item_table(None).item_table is None
    assert "title" not in recommender.recommend(1, k=1).columns
    with pytest.raises(ConfigError, match=r"`where` needs a table .*`use_item_table` in Python"):
        recommender.recommend(1, where="year > 3")
