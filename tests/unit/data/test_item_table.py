"""Tables of items: titles, columns of several kinds, ids as text, and what is no such table."""

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pslrec.data import Vocabulary
from pslrec.data.items import ItemTable
from pslrec.errors import ConfigError, DataError

ITEMS = Vocabulary([1, 2, 3], kind="item")


def read_titles(source: Any, items: Vocabulary) -> list[str | None]:
    return ItemTable.read(source, items).titles


TABLES = {
    "commas.csv": 'item_id,name\n1,"One, two"\n3,Three\n9,Nine\n',
    "other-order.csv": "title,id,year\nOne,1,1990\nThree,3,1991\n",
    "tabs.tsv": 'item\ttitle\n1\t"One" more\n3\tThree\n',
    "colons.dat": "1::One::Drama\n2::::\n3::Three::Comedy\n",
    "lines.jsonl": '{"asin": "1", "title": "One"}\n{"asin": "3", "title": "Three"}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_titles_are_read_from_tables_of_many_kinds(tmp_path: Path, name: str):
    (tmp_path / name).write_text(TABLES[name])
    titles = read_titles(tmp_path / name, ITEMS)
    assert titles[0] is not None
    assert "One" in titles[0]
    assert titles[1:] == [None, "Three"]


def test_titles_are_read_from_parquet(tmp_path: Path):
    pl.DataFrame({"movieId": [1, 3], "title": [" One\n two", None]}).write_parquet(
        tmp_path / "titles.parquet"
    )
    assert read_titles(tmp_path / "titles.parquet", ITEMS) == ["One two", None, None]


BAD_TABLES = {
    "others.csv": "item,title\n8,Eight\n",
    "narrow.csv": "item\n1\n",
    "empty.csv": "",
    "rows.csv": "item,title\n",
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_table_without_titles_for_the_model_is_an_error(tmp_path: Path, name: str):
    (tmp_path / name).write_text(BAD_TABLES[name])
    with pytest.raises(DataError, match=name):
        read_titles(tmp_path / name, ITEMS)


TABLES_WITH_MARKS = {
    "rating-first.csv": "item,rating,text\n1,5,One\n2,3,Two\n3,4.5,Three\n",
    "marks-before.csv": "grade,votes,item,text\n4,10,1,One\n5,20,2,Two\n3,30,3,Three\n",
    "text-before.csv": "text,item,grade\nOne,1,4\nTwo,2,5\nThree,3,3\n",
    "with-gaps.csv": "item,grade,text\n1,5,One\n2,n/a,Two\n3,,Three\n",
    "days.csv": "item,day,liked,text\n1,2024-05-01,true,One\n2,2024-05-02,false,Two\n3,2024-05-02 10:00,true,Three\n",
    "no-header.tsv": "1\t5\t881250949\tOne\n2\t3\t881250950\tTwo\n3\t4\t881250951\tThree\n",
    "labels.csv": "item,label,text\n1,0,One\n2,1,Two\n3,1,Three\n",
    "commas.csv": "item;grade;text\n1;4,5;One\n2;3,0;Two\n3;80 %;Three\n",
    "lines.jsonl": "".join(
        f'{{"asin": "{row}", "overall": {row}.0, "helpful": [1, 2], "text": "{text}"}}\n'
        for row, text in enumerate(("One", "Two", "Three"), 1)
    ),
}


@pytest.mark.parametrize("name", TABLES_WITH_MARKS)
def test_marks_are_not_taken_for_titles(tmp_path: Path, name: str):
    """The column after the ids was taken, whatever it held, so that lists showed ratings for titles."""
    (tmp_path / name).write_text(TABLES_WITH_MARKS[name])
    assert read_titles(tmp_path / name, ITEMS) == ["One", "Two", "Three"]


TABLES_OF_MARKS = {
    "ratings.csv": "userId,movieId,rating,timestamp\n7,1,4.0,964982703\n7,2,5.0,964981247\n",
    "u.data": "1\t242\t3\t881250949\n2\t302\t3\t891717742\n",
    "named.csv": "item,user,rating\n1,ann,5\n2,bob,4\n",
}


@pytest.mark.parametrize("name", TABLES_OF_MARKS)
def test_a_table_of_ratings_has_no_titles(tmp_path: Path, name: str):
    (tmp_path / name).write_text(TABLES_OF_MARKS[name])
    with pytest.raises(
        DataError, match=r"must hold a column of titles .* name the right one `title`"
    ):
        read_titles(tmp_path / name, ITEMS)


def test_numbers_of_a_binary_table_are_not_taken_for_titles(tmp_path: Path):
    path = tmp_path / "titles.parquet"
    frame = pl.DataFrame(
        {"id": [1, 2, 3], "grade": [5.0, 4.0, 3.0], "text": ["One", "Two", "Three"]}
    )
    frame.with_columns(pl.col("text").cast(pl.Categorical)).write_parquet(path)
    assert read_titles(path, ITEMS) == ["One", "Two", "Three"]
    frame.drop("text").write_parquet(path)
    with pytest.raises(DataError, match="column of titles"):
        read_titles(path, ITEMS)


def test_a_column_called_title_is_taken_though_it_holds_numbers(tmp_path: Path):
    (tmp_path / "films.csv").write_text("item,rating,title\n1,5,1984\n2,4,300\n3,3,1917\n")
    assert read_titles(tmp_path / "films.csv", ITEMS) == ["1984", "300", "1917"]


MARKS = st.one_of(
    st.integers(-5, 10**10).map(str),
    st.floats(0, 5).map("{:.2f}".format),
    st.dates().map(str),
    st.sampled_from(["true", "false", "NaN", "4/5", "70%", "3,5", "1e-3"]),
)


# Files are written and read, which takes long on a busy machine.
@settings(deadline=None)
@given(data=st.data(), has_header=st.booleans(), n_marks=st.integers(0, 4), has_text=st.booleans())
def test_no_mix_of_marks_is_ever_taken_for_titles(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    has_header: bool,
    n_marks: int,
    has_text: bool,
):
    columns = {
        f"c{number}": data.draw(st.lists(MARKS, min_size=3, max_size=3))
        for number in range(n_marks)
    }
    if has_text:
        columns["text"] = ["One", "Two", "Three"]
    order = data.draw(st.permutations(sorted(columns)))
    rows = [["item", *order]] if has_header else []
    rows += [[str(row + 1), *(columns[name][row] for name in order)] for row in range(3)]
    path = tmp_path_factory.mktemp("marks") / "table.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    if has_text:
        assert read_titles(path, ITEMS) == ["One", "Two", "Three"]
    else:
        with pytest.raises(DataError):
            read_titles(path, ITEMS)


def test_missing_table_is_an_error(tmp_path: Path):
    with pytest.raises(DataError, match="absent"):
        read_titles(tmp_path / "absent.csv", ITEMS)


def test_columns_of_a_text_file_are_numbers_truths_or_text(tmp_path: Path):
    path = tmp_path / "items.csv"
    path.write_text(
        "movieId,title,year,price,is_new,code\n"
        "3,Three,1990,1.5,true,007\n1,One,,2,FALSE,12\n9,Nine,1,1,true,1\n"
    )
    table = ItemTable.read(path, ITEMS)
    kinds = {name: column.kind for name, column in table.columns.items()}
    assert kinds == {
        "title": "text",
        "year": "number",
        "price": "number",
        "is_new": "truth",
        "code": "text",
    }
    assert table.details(2) == {"year": 1990, "price": 1.5, "is_new": True, "code": "007"}
    assert table.details(0) == {"price": 2.0, "is_new": False, "code": "12"}
    assert table.details(1) == {}


def test_columns_of_a_frame_keep_what_they_are():
    frame = pl.DataFrame(
        {
            "item": ["1", "2", "3"],
            "genres": [["Drama", "War"], ["Comedy"], None],
            "day": [date(2020, 1, 2), date(2021, 1, 2), None],
            "stars": [4.0, float("nan"), None],
            "shape": [{"a": 1}, {"a": 2}, {"a": 3}],
        }
    )
    table = ItemTable.read(frame, ITEMS)
    assert not table.has_titles
    assert table.details(0) == {"genres": "Drama|War", "day": "2020-01-02", "stars": 4.0}
    assert table.where('genres contains "War"').tolist() == [True, False, False]
    assert table.where('day >= "2020-06-01"').tolist() == [False, True, False]
    assert table.where("stars is missing").tolist() == [False, True, True]
    assert "shape" not in table.columns


def test_a_pandas_frame_is_a_table():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"item": [1, 2, 3], "title": ["One", None, "Three"], "year": [1, np.nan, 3]}
    )
    table = ItemTable.read(frame, ITEMS)
    assert table.titles == ["One", None, "Three"]
    assert table.where("year > 1").tolist() == [False, False, True]


def test_categories_without_titles_are_a_table(tmp_path: Path):
    (tmp_path / "items.csv").write_text("item,genre\n1,Drama\n2,Drama\n3,Drama\n")
    table = ItemTable.read(tmp_path / "items.csv", ITEMS)
    assert (table.has_titles, table.titles) == (False, [None] * 3)
    assert table.column("genre").categories.tolist() == [0, 0, 0]


def test_categories_number_the_values_and_leave_out_the_missing():
    frame = pl.DataFrame({"item": [1, 2, 3], "name": ["a", "b", "c"], "year": [1990, None, 1990]})
    codes = ItemTable.read(frame, ITEMS).column("year").categories
    assert codes[0] == codes[2] >= 0
    assert codes[1] == -1


def test_most_frequent_values_come_first():
    items = Vocabulary(list(range(5)), kind="item")
    frame = pl.DataFrame(
        {"item": range(5), "name": list("vwxyz"), "genre": ["b", "a", "b", None, "c"]}
    )
    column = ItemTable.read(frame, items).column("genre")
    assert column.most_frequent(2) == ["b", "a"]
    assert column.most_frequent(9) == ["b", "a", "c"]


@pytest.mark.parametrize("values", [[-1, 10**15, 3], [0.5, -2.0, 1e300], [True, False, True]])
def test_only_texts_are_counted(values: list[Any]):
    frame = pl.DataFrame({"item": [1, 2, 3], "title": ["One", "Two", "Three"], "value": values})
    assert ItemTable.read(frame, ITEMS).column("value").most_frequent(5) == []


def test_a_table_follows_other_items():
    frame = pl.DataFrame({"item": [1, 2], "title": ["One", "Two"]})
    table = ItemTable.read(frame, ITEMS)
    assert table.for_items(ITEMS) is table
    assert table.for_items(Vocabulary([2, 1], kind="item")).titles == ["Two", "One"]


def test_unknown_columns_are_named_with_those_there_are():
    table = ItemTable.read(pl.DataFrame({"item": [1], "title": ["One"], "genre": ["x"]}), ITEMS)
    with pytest.raises(
        ConfigError, match=r"`at_most` names the column `gene`.*did you mean `genre`"
    ):
        table.column("gene")


@pytest.mark.parametrize("source", [7, None, [1, 2]])
def test_what_is_no_table_is_refused(source: Any):
    with pytest.raises(DataError, match="`item_table` must be a file or a frame"):
        ItemTable.read(source, ITEMS)


def test_ids_below_a_header_in_another_language_are_found(tmp_path: Path):
    path = tmp_path / "artikel.csv"
    path.write_text("Gruppe;Nummer;Preis\nBücher;7;1,50\nMusik;10;12\n", encoding="utf-8")
    table = ItemTable.read(path, Vocabulary([10, 7], kind="item"))
    assert list(table.columns) == ["Gruppe", "Preis"]
    assert table.where("Preis < 2").tolist() == [False, True]


def test_a_first_line_with_an_id_or_a_number_is_no_header(tmp_path: Path):
    path = tmp_path / "items.csv"
    path.write_text("a,Alien\nb,Big\n")
    assert read_titles(path, Vocabulary(["a", "b"], kind="item")) == ["Alien", "Big"]
    # The model does not know the first item of the table.
    path.write_text("7,Alien\n8,Big\n")
    assert read_titles(path, Vocabulary([8], kind="item")) == ["Big"]


def test_commas_before_three_digits_are_not_decimals(tmp_path: Path):
    path = tmp_path / "items.csv"
    path.write_text("item;title;price\n1;Up;1,500\n2;Big;2,50\n")
    table = ItemTable.read(path, Vocabulary([1, 2], kind="item"))
    assert table.columns["price"].kind == "text"


def test_lines_about_the_same_item_that_differ_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    frame = pl.DataFrame({"item": [1, 2, 1, 2, 3], "title": ["One", "Two", "Eins", "Two", "Three"]})
    # Missing numbers are alike.
    frame = frame.with_columns(price=pl.lit(float("nan")))
    assert read_titles(frame, ITEMS) == ["Eins", "Two", "Three"]
    assert caplog.messages == [
        "the item table has several lines about one item, such as `1`, which differ; the last one of "
        "each counts"
    ]
