"""Files in which something is in doubt: nothing is guessed without a word."""

import gzip
import json
import logging
import zipfile

import numpy as np
import polars as pl
import pytest

from pslrec.data import Columns, load, read_interactions, read_published
from pslrec.data.formats._bytes_of import unpack_limit
from pslrec.errors import DataError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "user,comment,item\nann,a, b, c,tea\nbob,x,milk\n\n",
            "line 2 has 5 fields where 3 were expected",
        ),
        (
            "user,comment,item,extra\nann,hello, world,tea,x\nbob,hi,milk\n",
            "line 2 has 5 fields where 4 were expected",
        ),
        (
            "user,comment,item,extra\nann,hello,tea,x\nbob,hi,milk\n",
            "line 3 has 3 fields where 4 were expected",
        ),
        (
            'user,item,note\nann,tea,"a,\nb"\nbob,milk,x,y\n\n',
            "line 4 has 4 fields where 3 were expected",
        ),
    ],
)
def test_surplus_fields_are_named_although_the_totals_agree(complaint, text, message):
    assert complaint("x.csv", text).startswith(f"x.csv: {message}")


def test_surplus_fields_are_named_far_down_a_file(complaint):
    rows = [f"u{n},x,i{n}" for n in range(300_000)]
    rows[250_000] = "u,a,b,c"
    text = "\n".join(["user,comment,item", *rows, "\n"])
    assert "line 250002 has 4 fields where 3 were expected" in complaint("x.csv", text)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "x.csv",
            "user,item,title\nann,tea,x\n,,lost\nbob,milk,y\n",
            "x.csv: line 3: `user` is empty",
        ),
        ("x.csv", "user,item,title\nann,tea,x\n,,\n", "x.csv: line 3: `user` is empty"),
        ("x.csv", "user,item\nann,tea\ntotal: 1\n", "x.csv: line 3: `item` is empty"),
        ("x.tsv", "user\titem\nann\ttea\n\t\nbob\tmilk\n", "x.tsv: line 3: `user` is empty"),
        (
            "x.jsonl",
            '{"user":1,"item":2}\n{}\n{"user":2,"item":2}\n',
            "x.jsonl: line 2: `user` is empty",
        ),
        ("x.jsonl", '{"user":1,"item":2}\n{"note":"lost"}\n', "x.jsonl: line 2: `user` is empty"),
    ],
)
def test_rows_with_gaps_never_vanish(complaint, name, text, message):
    assert complaint(name, text).startswith(message)


@pytest.mark.parametrize("frame", [pl.DataFrame, lambda columns: pl.DataFrame(columns).to_pandas()])
def test_rows_without_anything_in_a_frame_are_gaps(frame):
    with pytest.raises(DataError, match="row 2: `user` is empty"):
        read_interactions(frame({"user": ["ann", None], "item": ["tea", None]}))


@pytest.mark.parametrize("header", ["user,item,x", "x,user,item", "item,x,user"])
@pytest.mark.parametrize("blank", ["", "   ", "\t", "\r"])
def test_blank_lines_are_passed_over_whatever_the_order_of_columns(read, header, blank):
    text = f"{header}\na,b,c\n{blank}\nd,e,f\n"
    assert read("x.csv", text).height == 2


@pytest.mark.parametrize("at", [1, 120, 250])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"user":{"id":7},"item":"x"}',
            "`user` must hold ids, whole numbers or text, it holds an object",
        ),
        (
            '{"user":"a","item":["x"]}',
            "`item` must hold ids, whole numbers or text, it holds an array",
        ),
        ('{"user":"a","user":"b","item":"x"}', "has `user` more than once"),
        ('{"user":"a","item":"x\0"}', "is not UTF-8 text but binary"),
        ('{"user":"a","item":NaN}', "has `NaN`, which is not JSON"),
    ],
)
def test_json_lines_are_checked_to_the_last(complaint, at, line, message):
    lines = ['{"user":"u","item":"i"}'] * 250
    lines.insert(at - 1, line)
    told = complaint("x.jsonl", "\n".join(lines))
    assert told.startswith(f"x.jsonl: line {at}")
    assert message in told


def test_json_lines_may_begin_with_a_byte_order_mark(read):
    assert read("x.jsonl", b'\xef\xbb\xbf{"user":1,"item":2}\n').rows() == [(1, 2)]


def test_large_whole_numbers_do_not_merge_beside_a_float(read, complaint):
    text = '{"user":9007199254740992,"item":1}\n{"user":9007199254740993,"item":1}\n{"user":1.0,"item":1}\n'
    assert read("x.jsonl", text)["user"].to_list() == [2**53, 2**53 + 1, 1]
    told = complaint("x.jsonl", '{"user":1,"item":1}\n{"user":9007199254740992.0,"item":1}\n')
    assert told.startswith(
        "x.jsonl: line 2: `user` is 9007199254740992.0, ids must be whole numbers or text"
    )


def test_floats_that_may_stand_for_two_whole_numbers_are_refused_in_frames():
    with pytest.raises(DataError, match=r"row 1: `user` is 9007199254740992\.0"):
        read_interactions(pl.DataFrame({"user": [2.0**53, 1.0], "item": [1, 2]}))
    assert (
        read_interactions(pl.DataFrame({"user": [2.0**53 - 1], "item": [1]})).to_frame()["user"][0]
        == 2**53 - 1
    )


def test_numbers_beside_text_are_text_in_json_lines(read):
    assert read("x.jsonl", '{"user":7,"item":"a"}\n{"user":"x","item":true}\n').rows() == [
        ("7", "a"),
        ("x", "true"),
    ]


@pytest.mark.parametrize("line", [2, 202, 5002])
@pytest.mark.parametrize("name", ["x.csv", "x.inter", "x.dat"])
def test_nul_bytes_are_refused_on_every_line(complaint, name, line):
    separator = {"x.csv": ",", "x.inter": "\t", "x.dat": "::"}[name]
    header = ["user_id:token", "item_id:token"] if name == "x.inter" else ["user", "item"]
    rows = [header, *(["u", "i"] for _ in range(6000))]
    rows[line - 1] = ["u\0", "i"]
    text = "\n".join(separator.join(row) for row in rows)
    assert f"line {line} is not UTF-8 text but binary" in complaint(name, text)


@pytest.mark.parametrize(
    "text",
    [
        "user,item\na,b\nuser,item\nc,d\n",
        "uid;note;asin\na;;b\nuid;note;asin\n",
        "user , item\na,b\nuser , item\n",
    ],
)
def test_header_that_stands_again_is_no_data(complaint, text):
    assert complaint("x.csv", text) == "x.csv: line 3 repeats the header; remove it"


def test_separator_of_several_characters_needs_a_stand_in(complaint):
    controls = "\x1c\x1d\x1e\x1f"
    assert "control characters" in complaint("x.dat", f"user::item\n{controls}::b\n")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("20240501", 1714521600),
        ("20240501.0", 1714521600),
        ("202405011230", 1714566600),
        ("20240501123015", 1714566615),
    ],
)
def test_dates_without_marks_are_dates(read, caplog, value, seconds):
    with caplog.at_level(logging.INFO, logger="pslrec"):
        frame = read("x.csv", f"user,item,date\na,b,{value}\na,c,{value}\n")
    assert frame["timestamp"].to_list() == [seconds, seconds]
    assert "is read as dates written as YYYYMMDD" in caplog.text


def test_numbers_that_are_almost_dates_are_refused(complaint):
    told = complaint("x.csv", "user,item,date\na,b,20240501\na,c,20240532\n")
    assert told.startswith(
        "x.csv: line 3: `date` must be a date, as the other rows seem to be (`20240501`)"
    )


@pytest.mark.parametrize("value", ["1e30", "9.3e18", "-1e30"])
def test_times_beyond_all_units_are_told_as_such(complaint, value):
    told = complaint("x.csv", f"user,item,time\na,b,1700000000\na,c,{value}\n")
    assert "line 3: `time` must be seconds since 1970 or a date" in told
    assert "before 1970" not in told


@pytest.mark.parametrize("n_items", [2, 3])
def test_lists_of_two_or_three_items_are_not_taken_for_ratings(complaint, read, n_items):
    text = "".join(
        f"{user} {' '.join(str(user + 7 * n) for n in range(n_items))}\n" for user in range(50)
    )
    told = complaint("train.txt", text)
    assert "may be a user with its items, or a user, an item and a rating; say which with" in told
    assert read("train.txt", text, format="lightgcn").height == 50 * n_items
    assert read("train.txt", text, format="delimited").height == 50


@pytest.mark.parametrize(
    "text",
    [
        "196 242 3 881250949\n186 302 3 891717742\n",
        "1 31 4\n1 5 3\n2 8 1\n",
        "".join(f"{user} {user * 3} {user % 5 + 1}\n" for user in range(30)),
    ],
)
def test_ratings_separated_by_spaces_are_still_recognised(read, text):
    assert read("ratings.txt", text)["rating"].max() <= 5


@pytest.mark.parametrize("mark", ["\t", "\0", "\x0b"])
def test_lists_of_items_separated_otherwise_are_refused(complaint, mark):
    assert complaint("x.txt", f"0 1 2\n1 2{mark}3\n", format="lightgcn").startswith(
        "x.txt: line 2 has "
    )


def test_index_column_of_pandas_is_named(complaint, read):
    text = ",0,1,2\n0,ann,tea,5\n1,bob,milk,4\n"
    told = complaint("x.csv", text)
    assert told.startswith(
        "x.csv: line 1 (`,0,1,2`) is the header that pandas writes for columns without names"
    )
    frame = read("x.csv", text, columns=Columns(user="0", item="1"), header=True)
    assert frame.rows() == [("ann", "tea"), ("bob", "milk")]


def test_index_column_of_pandas_beside_names_is_passed_over(read):
    assert read("x.csv", ",user,item\n0,ann,tea\n1,bob,milk\n").rows() == [
        ("ann", "tea"),
        ("bob", "milk"),
    ]


def test_words_that_mark_gaps_are_kept_counted_and_told(read, caplog):
    with caplog.at_level(logging.WARNING, logger="pslrec"):
        frame = read("x.csv", "user,item\nann,NaN\nbob,NaN\nNone,null\n")
    assert frame.height == 3
    assert "x.csv: `item` is the text `NaN` in 2 rows, which is kept as an id" in caplog.text
    assert "`item` is the text `null` in 1 row," in caplog.text
    assert "`user` is the text `None` in 1 row," in caplog.text


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setenv("PSLREC_UNPACK_LIMIT", "1MB")


BOMB = gzip.compress(b"user,item\n" + b"a,b\n" * 1_000_000)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv.gz", BOMB),
        ("x.csv.gz", gzip.compress(b"user,item\na,b\n" + b" " * 5_000_000)),
        ("x.jsonl.gz", gzip.compress(b'{"user":1,"item":2}\n' * 100_000)),
        ("x.txt.gz", gzip.compress(b"1 2 3 4 5 6\n" * 100_000)),
    ],
)
@pytest.mark.usefixtures("small_limit")
def test_gzip_bombs_end_in_one_sentence(complaint, name, content):
    told = complaint(name, content)
    assert told.startswith(f"{name}: it unpacks to more than 0.001 GB, which is refused")
    assert "PSLREC_UNPACK_LIMIT=50GB" in told


def test_limit_of_unpacking_can_be_raised(read, monkeypatch):
    monkeypatch.setenv("PSLREC_UNPACK_LIMIT", "0.01 gb")
    assert read("x.csv.gz", BOMB).height == 1_000_000


@pytest.mark.parametrize("value", ["", "lots", "-1GB", "5"])
def test_limit_of_unpacking_must_be_a_size(monkeypatch, value):
    monkeypatch.setenv("PSLREC_UNPACK_LIMIT", value)
    with pytest.raises(DataError, match="must be a size such as 500MB or 20GB, got"):
        unpack_limit()


def test_endless_lines_are_refused(complaint, monkeypatch):
    monkeypatch.setattr("pslrec.data.formats._bytes_of.LONGEST_LINE", 1000)
    assert complaint("x.csv", "user,item\n" + "a" * 2000).startswith("x.csv: line 2 is longer than")


def test_memory_that_does_not_suffice_is_told_in_one_sentence(complaint, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("pslrec.data.formats._bytes_of.limited", fail)
    told = complaint("x.csv.gz", gzip.compress(b"user,item\na,b\n"))
    assert told == "x.csv.gz: unpacked, it does not fit into memory; split it into smaller files"


def write_zip(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


SPLIT = {"train.tsv": "user\titem\n1\t1\n1\t2\n2\t1\n", "test.tsv": "user\titem\n2\t2\n"}


@pytest.mark.usefixtures("small_limit")
def test_zip_bombs_end_in_one_sentence(tmp_path):
    path = tmp_path / "x.zip"
    write_zip(path, SPLIT | {"test.tsv": SPLIT["test.tsv"] + "\n" * 2_000_000})
    with pytest.raises(DataError, match=r"x\.zip: it unpacks to more than 0\.001 GB"):
        read_published(path)


@pytest.mark.usefixtures("small_limit")
def test_only_what_is_needed_of_a_zip_is_unpacked(tmp_path):
    path = tmp_path / "x.zip"
    write_zip(path, SPLIT | {"readme.bin": b"\0" * 5_000_000, "other/train.bak": b"x" * 5_000_000})
    assert len(read_published(path).train) == 3


@pytest.mark.usefixtures("small_limit")
def test_several_files_of_a_zip_count_together(tmp_path):
    path = tmp_path / "x.zip"
    padding = "\n" * 600_000
    write_zip(path, {name: text + padding for name, text in SPLIT.items()})
    with pytest.raises(DataError, match=r"x\.zip: it unpacks to more than 0\.001 GB"):
        load(path)


def test_json_lines_hold_ids_of_every_size(read):
    values = [2**62, -(2**62), 0]
    text = "\n".join(json.dumps({"user": value, "item": 1}) for value in values)
    assert read("x.jsonl", text)["user"].to_list() == values
    assert (
        read("y.jsonl", text + '\n{"user":99999999999999999999,"item":1}')["user"].to_list()[-1]
        == "9" * 20
    )


def test_ratings_and_times_of_json_lines_may_be_numbers_or_text(read):
    text = '{"user":1,"item":2,"rating":4,"ts":1577836800}\n{"user":1,"item":3,"rating":"4.5","ts":1577836801.5}\n'
    frame = read("x.jsonl", text)
    assert frame["rating"].to_list() == [4.0, 4.5]
    assert np.array_equal(frame["timestamp"].to_numpy(), [1577836800, 1577836801])


def test_all_lines_with_other_fields_are_counted_and_the_first_ones_named(complaint):
    rows = [f"u{n},x,i{n}" for n in range(300_000)]
    rows[5] = "u"
    rows[7] = "u,a,b,c"
    # In another piece of the file than the first ones.
    rows[290_000] = "u,a,b,c,d"
    text = "\n".join(["user,comment,item", *rows])
    assert complaint("x.csv", text) == (
        "x.csv: line 7 has 1 field where 3 were expected; fill in those that are missing, or remove "
        "the line (3 lines have another number, also 9 with 4, 290002 with 5)"
    )
    many = "\n".join(["user,item", *["a,b,c"] * 12])
    assert complaint("x.csv", many).endswith(
        "(12 lines have another number, also 3 with 3, 4 with 3, 5 with 3, 6 with 3, 7 with 3, 8 with 3, "
        "9 with 3, 10 with 3, 11 with 3, ...)"
    )


def test_a_line_that_is_refused_is_refused_whatever_comes_after_it(complaint):
    """In a later piece of the file there are gaps alone, which are for another check."""
    rows = [f"u{n},x,i{n}" for n in range(300_000)]
    rows[5] = "u,a,b,c"
    rows[290_000] = "u"
    text = "\n".join(["user,comment,item", *rows])
    assert "line 7 has 4 fields where 3 were expected" in complaint("x.csv", text)
