"""Data with column names of their own, from reading to recommending."""

from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from pslrec import Recommender
from pslrec.data import Columns, read_interactions
from pslrec.data._guessing import guessed_columns
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.errors import ColumnsError, DataError

OPTIONS = {"preset": "fixed", "epochs": 2, "dimension": 8}
COLUMNS = {"user": "wer", "item": "was"}


@pytest.fixture(scope="module")
def purchases() -> pl.DataFrame:
    log = planted_tastes(40, 30, model=TasteModel(n_topics=3), seed=1).interactions.to_frame()
    dates = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 3, 31), eager=True)
    wann = pl.Series("wann", [dates[row % len(dates)] for row in range(log.height)])
    return log.select(wer="user", was="item").with_columns(wann)


@pytest.fixture
def file(purchases: pl.DataFrame, tmp_path: Path) -> Path:
    purchases.write_csv(tmp_path / "kauf.csv", separator=";")
    return tmp_path / "kauf.csv"


@pytest.fixture
def articles(purchases: pl.DataFrame, tmp_path: Path) -> Path:
    """What is known of the items, below a header that none of our names is in."""
    lines = ["Gattung;Überschrift;Artikelnummer;Jahr"]
    for place, item in enumerate(sorted(purchases["was"].unique())):
        kind = ("Komödie", "Krimi")[place % 2]
        lines.append(f'{kind};"Nr. {place}; neu";{item};{1980 + place}')
    path = tmp_path / "artikel.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_ten_lines_from_a_file_with_foreign_names_to_filtered_recommendations(
    file: Path, articles: Path
) -> None:
    recommender = Recommender(preset="fixed", epochs=2, seed=7)
    recommender.fit(file, columns={"user": "wer", "item": "was", "time": "wann"})
    recommender.use_item_table(articles)
    where = 'Gattung == "Komödie" and Jahr >= 1985'
    lists = recommender.recommend(["user03", "user05"], k=3, where=where, exclude=["item07"])
    assert lists["user"].to_list() == ["user03"] * 3 + ["user05"] * 3
    table = pl.read_csv(articles, separator=";")
    allowed = table.filter(Gattung="Komödie").filter(pl.col("Jahr") >= 1985)
    assert set(lists["item"]) <= set(allowed["Artikelnummer"]) - {"item07"}
    assert set(lists["title"]) <= set(allowed["Überschrift"])
    assert recommender.config_.data.columns.timestamp == "wann"


def test_without_names_the_error_shows_header_guess_and_call(file: Path) -> None:
    with pytest.raises(ColumnsError) as caught:
        Recommender(**OPTIONS).fit(file)
    message = str(caught.value)
    assert "no user and no item column found among `wer`, `was`, `wann`" in message
    assert message.endswith(
        'name the columns, perhaps `columns={"user": "wer", "item": "was", "timestamp": "wann"}`'
    )
    assert len(read_interactions(file, columns=caught.value.guess)) > 0


def test_a_saved_run_reads_later_data_by_the_same_columns(
    file: Path, purchases: pl.DataFrame, tmp_path: Path
) -> None:
    Recommender(**OPTIONS).fit(file, columns=COLUMNS).save(tmp_path / "run")
    loaded = Recommender.load(tmp_path / "run")
    again = loaded.fit(purchases)
    assert again.n_users_ == purchases["wer"].n_unique()
    history = pl.DataFrame({"wer": ["neu", "neu"], "was": ["item01", "item02"]})
    assert again.recommend_for(history, k=2)["user"].to_list() == ["neu", "neu"]
    # The usual names are understood as well.
    usual = history.rename({"wer": "user", "was": "item"})
    assert again.recommend_for(usual, k=2).equals(again.recommend_for(history, k=2))


def test_options_of_the_constructor_name_columns_too(purchases: pl.DataFrame) -> None:
    named = {"data__columns__user": "wer", "data__columns__item": "was"}
    assert Recommender(**OPTIONS, **named).fit(purchases).n_items_ == 30


def test_numbered_labels_of_pandas_can_be_named(purchases: pl.DataFrame) -> None:
    frame = purchases.to_pandas()
    frame.columns = range(3)
    assert len(read_interactions(frame, columns={"user": 0, "item": 1})) == len(frame)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"users": "wer"}, "`columns` has no `users`; did you mean `user`"),
        ({"q": "wer"}, "`columns` has no `q`; It takes user, item, rating, timestamp, weight"),
        ({"time": "a", "timestamp": "b"}, "names the timestamp twice"),
        ("wer", "`columns` must be a mapping"),
        ({"user": "wem"}, "there is no column `wem` for the user; the columns are `wer`, `was`"),
    ],
)
def test_wrong_columns_are_explained(purchases, columns, message) -> None:
    with pytest.raises(DataError, match=message):
        read_interactions(purchases, columns=columns)


def test_columns_of_data_without_columns_are_refused(purchases: pl.DataFrame) -> None:
    log = read_interactions(purchases, columns=COLUMNS)
    for call in (
        lambda: read_interactions(log, columns=COLUMNS),
        lambda: Recommender(**OPTIONS).fit(log, columns=COLUMNS),
        lambda: Recommender(**OPTIONS).fit("debian", columns=COLUMNS),
    ):
        with pytest.raises(DataError, match="`columns` has no effect on"):
            call()


ROWS = [
    [n, f"u{n % 4}", f"x{n % 7}", 1.5 * (n % 3), 1_700_000_000 + n, "so so " * 12]
    for n in range(12)
]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        # Numbers of rows, fractions and sentences are no ids, and late numbers are times.
        (("a", "b", "c", "d", "e", "f"), {"user": "b", "item": "c", "timestamp": "e"}),
        (("Nr", "Kundennummer", "Artikelnummer", "Bewertung", "Zeitpunkt", "Text"), {
            "user": "Kundennummer", "item": "Artikelnummer", "rating": "Bewertung", "timestamp": "Zeitpunkt"}),
        (("a", "film", "who", "d", "e", "f"), {"user": "who", "item": "film", "timestamp": "e"}),
        # A name that does not fit the values is not believed.
        (("a", "b", "c", "note", "e", "date"), {"user": "b", "item": "c", "rating": "note", "timestamp": "e"}),
    ],
)  # fmt: skip
def test_guesses_go_by_names_and_values(names, expected) -> None:
    assert guessed_columns(names, ROWS, {}) == expected


def test_without_rows_the_first_two_columns_are_guessed() -> None:
    assert guessed_columns(["x", "y", "z"], [], {}) == {"user": "x", "item": "y"}
    assert guessed_columns(["x", "y"], [], {"item": "x"}) == {"user": "y", "item": "x"}
    assert guessed_columns(["x"], [], {}) == {}


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "frame", "pandas"])
def test_every_kind_of_table_has_a_guess(purchases: pl.DataFrame, tmp_path: Path, ending) -> None:
    table = purchases.select(pl.col("wer").alias("a"), pl.col("was").alias("b"), "wann")
    source = {"frame": table, "pandas": table.to_pandas()}.get(ending, tmp_path / f"t.{ending}")
    if ending == "parquet":
        table.write_parquet(source)
    elif ending == "jsonl":
        table.write_ndjson(source)
    with pytest.raises(ColumnsError) as caught:
        read_interactions(source)
    assert (caught.value.guess["user"], caught.value.guess["item"]) == ("a", "b")
    # Of a frame with dates the values tell as well.
    assert caught.value.guess.get("timestamp") in ("wann", None)


def test_pandas_in_pandas_out_and_a_setting_fixes_it(purchases: pl.DataFrame) -> None:
    frame = purchases.to_pandas()
    recommender = Recommender(**OPTIONS).fit(frame, columns=COLUMNS)
    users = ["user01", "user02"]
    assert isinstance(recommender.recommend(users, k=2), pd.DataFrame)
    assert isinstance(recommender.similar_items("item01", k=2), pd.DataFrame)
    # What is given to the call comes before what was given to `fit`.
    assert isinstance(recommender.recommend(pl.Series(users), k=2), pl.DataFrame)
    assert isinstance(recommender.recommend(users, k=2, output="polars"), pl.DataFrame)
    recommender.set_params(output="polars")
    assert isinstance(recommender.recommend(frame["wer"][:2], k=2), pl.DataFrame)
    by_polars = Recommender(**OPTIONS).fit(purchases, columns=COLUMNS)
    assert isinstance(by_polars.recommend(users, k=2), pl.DataFrame)
    assert isinstance(by_polars.recommend(pd.Series(users), k=2), pd.DataFrame)
    assert by_polars.set_params(output="numpy").recommend(users, k=2).dtype.names[0] == "user"


def test_evaluating_takes_the_columns_of_the_training_data(purchases: pl.DataFrame) -> None:
    later = purchases.sample(fraction=0.2, seed=1)
    earlier = purchases.join(later, on=["wer", "was"], how="anti")
    recommender = Recommender(**OPTIONS).fit(earlier, columns=COLUMNS)
    found = recommender.evaluate(later, k=[5])
    renamed = later.select(who="wer", what="was")
    assert recommender.evaluate(renamed, k=[5], columns={"user": "who", "item": "what"}) == found
    assert Columns.of(None) == Columns()


def test_the_encoding_may_be_given_where_the_columns_are(file: Path, tmp_path: Path) -> None:
    """`fit(..., encoding=...)`, as the error message suggests, was a bare TypeError."""
    text = file.read_text(encoding="utf-8").replace("item07", "Gebäck")
    copy = tmp_path / "kauf-cp1252.csv"
    copy.write_bytes(text.encode("cp1252"))
    recommender = Recommender(**OPTIONS)
    recommender.fit(copy, columns=COLUMNS, encoding="cp1252")
    assert "Gebäck" in recommender.model_.items.series.to_list()
    assert recommender.config_.data.encoding == "cp1252"
