import datetime
import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from pslrec.data import Columns, Interactions, read_interactions
from pslrec.data.formats import FORMATS
from pslrec.data.formats._quoting import check_quotes
from pslrec.data.formats._records import Shape, check_records, line_of_record
from pslrec.errors import DataError, UnknownNameError

PLAIN = [("ann", "tea"), ("bob", "milk")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "user,item\nann,tea\nbob,milk\n"),
        ("a.csv", "user,item\r\nann,tea\r\nbob,milk\r\n"),
        ("a.csv", "user,item\nann,tea\nbob,milk"),
        ("a.csv", "\ufeffuser,item\nann,tea\nbob,milk\n"),
        ("a.csv", '\ufeff"user","item"\n"ann","tea"\n"bob","milk"\n'),
        ("a.csv", "\n\nuser,item\nann,tea\n\n   \nbob,milk\n\n"),
        ("a.csv", "item,note,user\ntea,,ann\nmilk,x,bob\n"),
        ("a.csv", "user;item\nann;tea\nbob;milk\n"),
        ("a.csv", "user|item\nann|tea\nbob|milk\n"),
        ("a.csv", "user::item\nann::tea\nbob::milk\n"),
        ("a.tsv", "user\titem\nann\ttea\nbob\tmilk\n"),
        ("a.txt", "user item\nann tea\nbob milk\n"),
        ("noending", "user,item\nann,tea\nbob,milk\n"),
        ("A.CSV", "user,item\nann,tea\nbob,milk\n"),
        ("a.csv.gz", gzip.compress(b"user,item\nann,tea\nbob,milk\n")),
        ("a.csv.GZ", gzip.compress(b"user,item\nann,tea\n") + gzip.compress(b"bob,milk\n")),
        ("compressed.csv", gzip.compress(b"user,item\nann,tea\nbob,milk\n")),
        ("a.jsonl", '{"user":"ann","item":"tea"}\n{"item":"milk","user":"bob","x":[1]}\n'),
        ("a.json", '\n{"user":"ann","item":"tea"}\n\n{"user":"bob","item":"milk"}'),
        (
            "a.jsonl.gz",
            gzip.compress(b'{"user":"ann","item":"tea"}\n{"user":"bob","item":"milk"}\n'),
        ),
        ("a.inter", "user_id:token\titem_id:token\nann\ttea\nbob\tmilk\n"),
        ("a.inter.gz", gzip.compress(b"user_id:token\titem_id:token\nann\ttea\nbob\tmilk\n")),
    ],
)
def test_common_files_are_read(read, name, content):
    assert read(name, content).rows() == PLAIN


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet", "inter", "txt"])
@pytest.mark.parametrize("stem", ["a[1]", "a*", "a?", "{a,b}", "~", "a b", "%41", "[", "ü"])
def test_names_of_files_are_not_patterns(tmp_path, stem, ending):
    frame = pl.DataFrame({"user": ["ann", "bob"], "item": ["tea", "milk"]})
    directory = tmp_path / "x[y]*"
    directory.mkdir()
    path = directory / f"{stem}.{ending}"
    if ending == "parquet":
        frame.write_parquet(tmp_path / "plain")
        path.write_bytes((tmp_path / "plain").read_bytes())
    else:
        text = frame.write_ndjson() if ending == "jsonl" else frame.write_csv(separator="\t")
        text = (
            text.replace("user", "user_id:token").replace("item", "item_id:token")
            if ending == "inter"
            else text
        )
        path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    assert read_interactions(path).to_frame().rows() == PLAIN


@pytest.mark.parametrize("name", ["ratings.dat", "ratings.txt", "ratings.csv"])
def test_file_without_header_is_user_item_rating_time(read, name):
    frame = read(name, "1::31::2.5::1260759144\n2::1029::3.0::1260759179\n")
    assert frame.rows() == [(1, 31, 2.5, 1260759144), (2, 1029, 3.0, 1260759179)]


def test_lone_separator_characters_within_fields_of_a_doubled_separator_stay(read):
    assert read("a.dat", 'a:b::"c::3\nd::e::4\n').rows() == [("a:b", '"c', 3.0), ("d", "e", 4.0)]


@pytest.mark.parametrize("separator", ["--", ",-", "§", "\x01", " | "])
def test_any_separator_may_be_given(read, separator):
    text = "user,item\nann,tea\nbob,milk\n".replace(",", separator)
    assert read("a.csv", text, separator=separator).rows() == PLAIN


@pytest.mark.parametrize("separator", ["", '"', "\n", "a\r"])
def test_separators_that_can_not_work_are_refused(complaint, separator):
    assert complaint("a.csv", "user,item\na,b\n", separator=separator).startswith(
        "`separator` must be one or more characters"
    )


def test_header_can_be_denied(read):
    assert read("a.csv", "ann,tea\nbob,milk\n", header=False).rows() == PLAIN


def test_header_can_be_demanded(read):
    frame = read(
        "a.csv", "1,2\nann,tea\nbob,milk\n", header=True, columns=Columns(user="1", item="2")
    )
    assert frame.rows() == PLAIN


def test_quotes_protect_separators_quotes_and_ends_of_lines(read):
    text = 'user,note,item\n"a,b","5"" disk\n2,3","x""y"\nc,,"line\nbreak"\n"\r",";","\ttab"\n'
    assert read("a.csv", text).rows() == [("a,b", 'x"y'), ("c", "line\nbreak"), ("\r", "\ttab")]


def test_fields_of_any_length_are_read(read):
    assert read("a.csv", f"user,item,note\nann,tea,{'x' * 300_000}\nbob,milk,\n").rows() == PLAIN


def test_ids_keep_their_spelling(read):
    assert read("a.csv", "user,item\n007,1.50\n7,1.5\n").rows() == [("007", "1.50"), ("7", "1.5")]
    assert read("a.csv", "user,item\n7,99999999999999999999\n8,1\n").rows() == [
        (7, "99999999999999999999"),
        (8, "1"),
    ]
    assert read("a.csv", "user,item\n日本,ü\n\u2028x,🍵\n").rows() == [
        ("日本", "ü"),
        ("\u2028x", "🍵"),
    ]
    assert read("a.csv", "user,item\nNA,null\nNone,nan\n").rows() == [
        ("NA", "null"),
        ("None", "nan"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "a.csv: the file is empty"),
        ("a.csv", "\n \n\n", "a.csv: the file is empty"),
        ("a.csv.gz", gzip.compress(b""), "a.csv.gz: the file is empty"),
        ("a.jsonl", "", "a.jsonl: the file is empty"),
        ("a.csv", "user,item\n", "a.csv: there are no interactions in it"),
        ("a.csv", "user,item\n\n\n", "a.csv: there are no interactions in it"),
        ("a.csv", "user,item\n,tea\n", "a.csv: line 2: `user` is empty; fill it in or remove the row"),
        ("a.csv", 'user,item\n"",tea\n', "a.csv: line 2: `user` is empty; fill it in or remove the row"),
        ("a.csv", "\n\nuser,item\na,b\n\nann\n", "a.csv: line 6: `item` is empty; fill it in or remove the row"),
        ("a.csv", 'user,item\n"a\nb",c\n,x\n', "a.csv: line 4: `user` is empty; fill it in or remove the row"),
        ("a.csv", "user,item\nö,b\n".encode("latin-1"), "a.csv: line 2 is not UTF-8 text; in cp1252"),
        ("a.csv", "user,item,x\na,b,ö\n".encode("latin-1"), "a.csv: line 2 is not UTF-8 text; in cp1252"),
        ("a.jsonl", b'{"user":"\xff","item":1}\n', "a.jsonl: line 1 is not UTF-8 text; in cp1252 (Windows, Latin-1) it would be"),
        ("a.csv", "user\ritem\r", "a.csv: its lines end with carriage returns only; convert them to line feeds"),
        ("a.csv", "user,item\na,b,c\n", "a.csv: line 2 has 3 fields where 2 were expected"),
        ("a.csv", "user,x,item\na,b,c\nd,e, f,g\n", "a.csv: line 3 has 4 fields where 3 were expected"),
        ("a.csv", "user,item,x\na,b,c\nd,e,f,g\n", "a.csv: line 3 has 4 fields where 3 were expected"),
        ("a.csv", "user^item\na^b\n", "a.csv: no user and no item column found among `user^item`; if ',' is not"),
        ("a.csv", "ann,tea\nbob,milk\n", "a.csv: no user and no item column found among `ann`, `tea`; if these are data"),
        ("a.csv", "4711\n4712\n", "a.csv: line 1 has one field only when split at ','; name the separator with"),
        ("a.inter", "user_id\titem_id\n1\t2\n", "a.inter: line 1 must name columns as `name:type`, tab separated"),
        ("a.inter", "u:token\titem_id:token\n1\t2\n", "a.inter: no user column found among `u`, `item_id`"),
        ("a.inter", "user_id:token\titem_id:token\tuser_id:float\n1\t2\t3\n", "a.inter: column `user_id` appears 2 times"),
        ("a.jsonl", "[1,2]\n", "a.jsonl: line 1 is an array; one JSON object per line is expected"),
        ("a.jsonl", "\n\n7\n", "a.jsonl: line 3 is a single value; one JSON object per line is expected"),
        ("a.jsonl", '{"user":1,"item":2\n', "a.jsonl: line 1 is not JSON"),
        ("a.jsonl", '{"user":1,"item":2}\n' * 200 + '{"user"\n', "a.jsonl: line 201 is not JSON"),
        ("a.jsonl", '{"user":1,"item":2,"rating":NaN}\n', "a.jsonl: line 1 has `NaN`, which is not JSON"),
        ("a.jsonl", '{"user":1,"user":2,"item":2}\n', "a.jsonl: line 1 has `user` more than once"),
        ("a.jsonl", '{"user":1,"item":2}\n\n{"item":2}\n', "a.jsonl: line 3: `user` is empty; fill it in or remove the row"),
        ("a.jsonl", '{"user":{"id":1},"item":2}\n', "a.jsonl: line 1: `user` must hold ids, whole numbers or text"),
        ("a.jsonl", '{"user":1.5,"item":2}\n', "a.jsonl: line 1: `user` is 1.5, ids must be whole numbers or text"),
        ("a.jsonl", '{"user":1e300,"item":2}\n', "a.jsonl: line 1: `user` is 1e+300, ids must be whole numbers or text"),
        ("a.jsonl", '{"user":1,"item":2,"rating":[3]}\n', "a.jsonl: line 1: `rating` must hold numbers or text, it holds an"),
        ("a.jsonl", '{"user":1,"item":2,"ts":{"x":3}}\n', "a.jsonl: line 1: `ts` must hold numbers or text, it holds an obj"),
        ("a.parquet", "no parquet", "a.parquet: not a Parquet file that can be read"),
        ("a.xlsx", "PK", "a.xlsx: spreadsheets are not read; save the sheet as a CSV file"),
        ("a.xyz", "PK", "a.xyz: files ending in `.xyz` are not known; name the format with `format=`"),
        ("a.csv.gz", "user,item\na,b\n", "a.csv.gz: the name ends in .gz but the content is not gzip"),
    ],
)  # fmt: skip
def test_bad_files_are_explained_in_one_sentence(complaint, name, content, message):
    assert complaint(name, content).startswith(message)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_are_recognised(complaint, encoding):
    message = complaint("a.csv", "user,item\nann,tea\n".encode(encoding))
    assert message == (
        f"a.csv: line 1 is not UTF-8 text but {encoding}; name the encoding with "
        f'`encoding="{encoding}"` (on the command line `--encoding {encoding}`), '
        "or convert the file to UTF-8"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('user,item\na,"b\nc,d\n', 2),
        ('user,item\na,b"\nc,d\n', 2),
        ('user,item\na,b\nc,"d"e\n', 3),
        ('user,item\na, "b"\n', 2),
        ('user,item\na,"b\nc,"d"\ne,f\n', 2),
        ('user,item\n"a\n,b",c\nd,"e\n', 4),
        # The fast reader would take these two as one row and lose the second user in silence.
        ('user,item,note\n1,2,5" disk\n3,4,7" disk\n5,6,x\n', 2),
    ],
)
def test_quotation_marks_that_would_tear_or_merge_rows_are_refused(complaint, text, line):
    message = complaint("a.csv", text)
    assert message.startswith(
        f"a.csv: line {line} has a quotation mark that is not closed, or that stands inside a field"
    )


def test_quotation_marks_may_mean_nothing(read):
    text = 'user,item,note\n"1,2,5" disk\n3,4",7" disk\n5,6,x\n'
    assert read("a.csv", text, format="unquoted").rows() == [('"1', "2"), ("3", '4"'), ("5", "6")]


@pytest.mark.parametrize("chunk", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "count", "blank"),
    [
        ("a,b,c\nd,e,f\n", 2, []),
        ("a,b,c\nd,e,f", 2, []),
        ('a,b,"c,,"\nd,"e\n\n",f', 2, []),
        ("a,b,c\r\n\r\nd,e,f\r\n", 3, [1]),
        ("a,b,c\n\nd,e,f\n \t \n", 4, [1, 3]),
        ("\n \na,b,c\n\n\n", 3, [1, 2]),
    ],
)
def test_fields_are_counted_outside_of_quotes(monkeypatch, text, count, blank, chunk):
    monkeypatch.setattr("pslrec.data.formats._records.CHUNK", chunk)
    first_line = 3 if text.startswith("\n") else 1
    shape = Shape(",", ",", 3, 2, quoted=True, first_line=first_line)
    records = check_records("a.csv", text.encode(), shape)
    assert (records.count, records.blank.tolist()) == (count, blank)


@pytest.mark.parametrize("chunk", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,b,c\nd,e,f,g\n",
            "line 2 has 4 fields where 3 were expected; put a field that has ',' in it in quotes",
        ),
        (
            "a,b,c\nd,e\n",
            "line 2 has 2 fields where 3 were expected; fill in those that are missing",
        ),
        ('a,b,c\n"x\ny",e,f\n\n1,2,3,4\n1,2\n', "line 5 has 4 fields where 3 were expected"),
        ('a,b,c\n"x\ny",e,f\n\n1,2\n1,2,3,4\n', "line 5 has 2 fields where 3 were expected"),
        ("a,b,c\nd,e\r,f\n", "line 2 has a carriage return that does not end it"),
        ("a,b,c\nd,e,f\r", "line 2 has a carriage return that does not end it"),
        ("a,b,c\nd,e,f\n,\0,\n", "line 3 is not UTF-8 text but binary"),
    ],
)
def test_lines_of_another_shape_are_named(monkeypatch, text, message, chunk):
    monkeypatch.setattr("pslrec.data.formats._records.CHUNK", chunk)
    with pytest.raises(DataError, match=r"^a\.csv: ") as caught:
        check_records("a.csv", text.encode(), Shape(",", ",", 3, 1, quoted=True, first_line=1))
    assert message in str(caught.value)


def test_lines_of_records_are_found_behind_blank_lines_and_quotes():
    text = b'\n\nuser,item\n"a\nb",c\n\nd,e\n'
    shape = Shape(",", ",", 2, 1, quoted=True, first_line=3)
    assert [line_of_record("a.csv", text, shape, position) for position in range(4)] == [3, 4, 6, 7]


def test_quotes_are_checked_across_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("pslrec.data.formats._quoting.CHUNK", 3)
    path = tmp_path / "a.csv"
    good, bad = b'user,item\n"a,""b",c\n"d",e\n', b'user,item\n"a,""b",c\nd,e\nf"f,g\n'
    assert check_quotes(path, good, ",")
    assert not check_quotes(path, b"user,item\na,b\n", ",")
    with pytest.raises(DataError, match="line 4 has a quotation mark"):
        check_quotes(path, bad, ",")
    with pytest.raises(DataError, match="line 2 has a quotation mark"):
        check_quotes(path, good[:-8].replace(b'""', b'"'), ",")


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_truncated_gzip_is_refused(complaint, cut):
    packed = gzip.compress(b"user,item\n" + b"".join(b"u%d,i%d\n" % (n, n * n) for n in range(500)))
    assert complaint("a.csv.gz", packed[:-cut]).startswith(
        "a.csv.gz: the gzip file is truncated or damaged"
    )


def test_damaged_gzip_is_refused(complaint):
    packed = bytearray(
        gzip.compress(b"user,item\n" + b"".join(b"u%d,i%d\n" % (n, n * n) for n in range(500)))
    )
    packed[200] ^= 255
    assert complaint("a.csv.gz", bytes(packed)).startswith(
        "a.csv.gz: the gzip file is truncated or damaged"
    )


def test_missing_file_and_directory_are_told_apart(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.csv: no such file"):
        read_interactions(tmp_path / "nothing.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=r"folder\.csv: there is no `train\.tsv` in this directory"):
        read_interactions(tmp_path / "folder.csv")


def test_names_that_the_system_refuses_are_explained(tmp_path):
    with pytest.raises(DataError, match="cannot be read: file name too long"):
        read_interactions(tmp_path / ("x" * 5000 + ".csv"))


def test_devices_are_refused():
    with pytest.raises(DataError, match="is a pipe or a device"):
        read_interactions("/dev/null", format="delimited")


def test_unknown_format_lists_the_known_ones(read):
    with pytest.raises(
        UnknownNameError,
        match=r"unknown format `csv`.* Available: delimited, json-lines, lightgcn, parquet",
    ):
        read("a.csv", "user,item\na,b\n", format="csv")


def test_parquet_is_read(tmp_path):
    frame = pl.DataFrame(
        {"uid": ["ann", "bob"], "asin": [1, 2], "stars": [5, 3], "junk": [[1], [2]]}
    )
    frame.write_parquet(tmp_path / "a.parquet")
    assert read_interactions(tmp_path / "a.parquet").to_frame().rows() == [
        ("ann", 1, 5.0),
        ("bob", 2, 3.0),
    ]


def test_truncated_parquet_is_refused(complaint, tmp_path):
    pl.DataFrame({"user": ["ann"] * 100, "item": range(100)}).write_parquet(tmp_path / "b.parquet")
    assert "not a Parquet file that can be read" in complaint(
        "a.parquet", (tmp_path / "b.parquet").read_bytes()[:-30]
    )


def test_recbole_takes_what_it_knows_and_leaves_other_columns(read):
    text = (
        "user_id:token\titem_id:token\trating:float\treview:token_seq\ttimestamp:float\n"
        'u1\ti1\t4.5\tsaid "so\t1700000000\nu2\ti2\t3\t"\t1700000001\n'
    )
    assert read("a.inter", text).rows() == [
        ("u1", "i1", 4.5, 1700000000),
        ("u2", "i2", 3.0, 1700000001),
    ]


def test_recbole_columns_can_be_named_without_their_type(read):
    text = "a:token\tb:token\trating:float\n1\t2\t5\n2\t3\t4\n"
    assert read("a.inter", text, columns=Columns(user="a", item="b", rating="")).rows() == [
        (1, 2),
        (2, 3),
    ]


def test_lightgcn_text_is_recognised_by_its_ragged_lines(read):
    assert read("train.txt", "0 1 2 3\n1 2\n2\n3  4 \n").rows() == [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 2),
        (3, 4),
    ]
    assert read("train.txt", "0 1 2 3 4\n1 2 3 4 5\n").height == 8


def test_lightgcn_text_may_be_demanded(read):
    assert read("train.txt", "0 1 2\n1 2 3\n", format="lightgcn").rows() == [
        (0, 1),
        (0, 2),
        (1, 2),
        (1, 3),
    ]
    assert read("train.txt.gz", gzip.compress(b"a x y\r\nb x\r\n"), format="lightgcn").rows()[
        :2
    ] == [
        ("a", "x"),
        ("a", "y"),
    ]


def test_lightgcn_without_items_is_refused(complaint):
    message = complaint("a.txt", "0\n1\n", format="lightgcn")
    assert message == "a.txt: no line has a user followed by items"


def test_lightgcn_in_another_encoding_is_refused(complaint):
    message = complaint("a.txt", b"1 2 3\n4 5 6 7\n\xff 8\n", format="lightgcn")
    assert message.startswith(
        "a.txt: line 3 is not UTF-8 text; in cp1252 (Windows, Latin-1) it would be `ÿ 8`"
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("4,5", "`rating` must be a finite number, got `4,5`, write a decimal point"),
        ("nan", "`rating` must be a finite number, got `nan`"),
        ("inf", "`rating` must be a finite number, got `inf`"),
        ("1e300", "`rating` must be a finite number, got `1e300`"),
        ("good", "`rating` must be a finite number, got `good`"),
        ("", "`rating` is empty; fill it in or remove the row"),
    ],
)
def test_bad_ratings_are_named_with_their_line(complaint, value, message):
    text = f"user\titem\trating\na\tb\t4\na\tc\t{value}\n"
    assert complaint("a.tsv", text).startswith(
        f'a.tsv: line 3: {message} (or do without it: `rating=""`'
    )


def test_rating_column_can_be_done_without(read):
    assert read("a.csv", "user,item,rating\na,b,good\n", columns=Columns(rating="")).rows() == [
        ("a", "b")
    ]


def test_ratings_may_have_spaces_around_them(read):
    assert read("a.csv", "user,item,rating\na,b, 4.5 \nc,d,3\n")["rating"].to_list() == [4.5, 3.0]


@pytest.mark.parametrize(("value", "told"), [("0", "0"), ("-1", "-1")])
def test_weights_must_be_positive(complaint, value, told):
    message = complaint("a.csv", f"user,item,weight\na,b,{value}\n")
    assert message.startswith(
        f"a.csv: line 2: `weight` must be positive, got {told}; remove rows that are not interactions"
    )


def test_weights_are_read(read):
    assert read("a.csv", "user,item,weight\na,b,2.5\n").rows() == [("a", "b", 2.5)]


NEW_YEAR = 1577836800


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1577836800", NEW_YEAR),
        ("1577836800.9", NEW_YEAR),
        ("1.5778368e9", NEW_YEAR),
        ("1577836800123", NEW_YEAR),
        ("1577836800123456", NEW_YEAR),
        ("1577836800123456789", NEW_YEAR),
        ("2020-01-01", NEW_YEAR),
        ("2020/01/01", NEW_YEAR),
        ("2020-01-01 00:00", NEW_YEAR),
        ("2020-01-01 00:00:00", NEW_YEAR),
        ("2020-01-01T00:00:00.123", NEW_YEAR),
        ("2020-01-01T00:00:00Z", NEW_YEAR),
        ("2020-01-01 00:00:00 UTC", NEW_YEAR),
        ("2020-01-01T02:00:00+02:00", NEW_YEAR),
        ("2019-12-31T19:00:00-0500", NEW_YEAR),
        ("0", 0),
        ("7", 7),
    ],
)
def test_times_in_every_usual_spelling_become_seconds(read, value, seconds):
    assert read("a.csv", f"user,item,time\na,b,{value}\n")["timestamp"].to_list() == [seconds]


def test_dates_with_and_without_time_or_zone_may_be_mixed(read):
    text = "user,item,time\na,b,2020-01-01\na,c,2020-01-01 00:00:01.5\na,d,2020-01-01T01:00:02+01:00\na,e,2020-1-1 0:00:03\n"
    assert read("a.csv", text)["timestamp"].to_list() == [
        NEW_YEAR,
        NEW_YEAR + 1,
        NEW_YEAR + 2,
        NEW_YEAR + 3,
    ]


def test_unknown_times_written_as_zero_fit_any_unit(read):
    assert read("a.csv", "user,item,ts\na,b,0\na,c,1577836800123\n")["timestamp"].to_list() == [
        0,
        NEW_YEAR,
    ]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("1", "-5", "`time` must not be before 1970, got `-5`"),
        ("2020-01-01", "1969-12-31", "`time` must not be before 1970, got `1969-12-31`"),
        (
            "2020-01-01",
            "1577836800",
            "`time` must be a date as in the first row (`2020-01-01`), got `1577836800`",
        ),
        (
            "2020-01-01",
            "2020-02-30",
            "`time` must be a date as in the first row (`2020-01-01`), got `2020-02-30`",
        ),
        (
            "1577836800",
            "2020-01-01",
            "`time` must be seconds since 1970 or a date such as 2024-12-31 18:30:00 or 31.12.2024, got `2020",
        ),
        (
            "1577836800",
            "1577836800000",
            "`time` seems to count milliseconds, unlike the rows before it",
        ),
        (
            "1577836800000",
            "1577836800",
            "`time` seems to count seconds, unlike the rows before it",
        ),
        ("1577836800", "", "`time` is empty; fill it in or remove the row"),
        ("1577836800", "nan", "`time` must be seconds since 1970 or a date"),
        ("1577836800", "1e300", "`time` must be seconds since 1970 or a date"),
    ],
)
def test_bad_times_are_named_with_their_line(complaint, first, second, message):
    text = f"user,item,time\na,b,{first}\na,c,{second}\n"
    assert complaint("a.csv", text).startswith(f"a.csv: line 3: {message}")


def test_dates_that_can_be_read_in_two_ways_are_refused(complaint):
    assert "or a date such as 2024-12-31 18:30:00 or 31.12.2024, got `01/02/2020`" in complaint(
        "a.csv", "user,item,date\na,b,01/02/2020\n"
    )


def test_a_first_date_that_cannot_be_read_is_answered_with_one_that_can(complaint):
    assert (
        "must be a date such as 2024-12-31, 31.12.2024 or 2024-12-31T18:30:00+02:00, got "
        "`2025-06-27T10:00:00 Europe/Berlin`"
    ) in complaint("a.csv", "user,item,date\na,b,2025-06-27T10:00:00 Europe/Berlin\n")


FRAMES = {
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "pandas": pd.DataFrame,
    "pandas with its own index": lambda columns: pd.DataFrame(columns, index=[7, 7]),
    "pyarrow table": pa.table,
    "pyarrow batch": pa.RecordBatch.from_pydict,
    "pyarrow reader": lambda columns: pa.table(columns).to_reader(),
}


@pytest.mark.parametrize("library", FRAMES)
def test_frames_of_every_library_are_read(library):
    when = [datetime.datetime(2020, 1, 1), datetime.datetime(1970, 1, 2)]
    frame = FRAMES[library](
        {
            "uid": ["ann", "bob"],
            "asin": [7, 8],
            "stars": [5.0, 3.5],
            "when": when,
            "junk": ["x", "y"],
        }
    )
    rows = read_interactions(frame).to_frame().rows()
    assert rows == [("ann", 7, 5.0, NEW_YEAR), ("bob", 8, 3.5, 86400)]


def test_anything_with_the_arrow_stream_interface_is_a_frame():
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return pl.DataFrame({"user": [1], "item": [2]}).__arrow_c_stream__(requested_schema)

    assert read_interactions(Stream()).to_frame().rows() == [(1, 2)]


@pytest.mark.parametrize(
    "users",
    [
        pd.Categorical(["b", "a"]),
        pd.array(["b", "a"], dtype="string"),
        pd.Series(["b", "a"], dtype=object),
    ],
)
def test_pandas_text_types_are_ids(users):
    assert read_interactions(pd.DataFrame({"user": users, "item": [1, 2]})).to_frame().rows() == [
        ("b", 1),
        ("a", 2),
    ]


@pytest.mark.parametrize(
    "users", [pd.array([3, 4], dtype="Int64"), [3.0, 4.0], np.array([3, 4], dtype=np.uint8)]
)
def test_pandas_number_types_are_whole_number_ids(users):
    assert read_interactions(pd.DataFrame({"user": users, "item": [1, 2]})).to_frame().rows() == [
        (3, 1),
        (4, 2),
    ]


def test_pandas_times_with_zone_become_seconds():
    when = pd.to_datetime(["2020-01-01 01:00", "2020-01-01 01:00"]).tz_localize("Europe/Paris")
    log = read_interactions(pd.DataFrame({"user": [1, 2], "item": [1, 2], "when": when}))
    assert log.timestamps.tolist() == [NEW_YEAR, NEW_YEAR]


def test_pandas_columns_that_are_not_needed_may_hold_anything():
    frame = pd.DataFrame({"user": [1, 2], "item": [1, 2], "junk": [object(), "x"]})
    assert len(read_interactions(frame)) == 2


def test_pandas_columns_may_be_called_by_number():
    assert read_interactions(
        pd.DataFrame([[1, 2]]), columns=Columns(user="0", item="1")
    ).to_frame().rows() == [(1, 2)]


WITHOUT_PYARROW = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyarrow", "duckdb"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Absent())
import pandas as pd
from pslrec.data import read_interactions
frame = pd.DataFrame({"user": ["ann", "bob"], "item": pd.array([1, 2], dtype="Int64"), "rating": [5, 3.5],
                      "when": pd.to_datetime(["2020-01-01", "1970-01-02"]), "junk": pd.Categorical(["x", "y"])})
print(read_interactions(frame).to_frame().rows())
frame.loc[1, "user"] = None
try:
    read_interactions(frame)
except ValueError as error:
    print(error)
"""


def test_pandas_frames_are_read_without_pyarrow():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYARROW], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [
        "[('ann', 1, 5.0, 1577836800), ('bob', 2, 3.5, 86400)]",
        "the frame: row 2: `user` is empty; fill it in or remove the row",
    ], done.stderr


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            pd.DataFrame({"user": ["a", 3], "item": [1, 2]}),
            "`user` must hold values of one type, whole numbers or text",
        ),
        (pd.DataFrame({"user": ["a", None], "item": [1, 2]}), "row 2: `user` is empty"),
        (pd.DataFrame({"user": [1.0, np.nan], "item": [1, 2]}), "row 2: `user` is empty"),
        (
            pd.DataFrame({"user": [1, 2], "item": [1.5, 2]}),
            "row 1: `item` is 1.5, ids must be whole numbers or text",
        ),
        (
            pd.DataFrame([[1, 2, 3]], columns=["user", "item", "user"]),
            "column `user` appears 2 times",
        ),
        (
            pa.table([[1], [2], [3]], names=["user", "item", "user"]),
            "a column name appears more than once",
        ),
        (
            pl.DataFrame({"user": [1], "item": [1], "ts": pl.Series([None], dtype=pl.Datetime)}),
            "row 1: `ts` is empty",
        ),
        (
            pl.DataFrame({"user": [1], "item": [1], "rating": [datetime.date(2020, 1, 1)]}),
            "`rating` must hold numbers, it",
        ),
        (
            pl.DataFrame({"user": [1], "item": [1], "ts": [datetime.time(1)]}),
            "`ts` must hold seconds since 1970 or dates, it",
        ),
        (
            pl.DataFrame({"user": [b"a"], "item": [1]}),
            "`user` must hold ids, whole numbers or text, it holds Binary",
        ),
        (pl.DataFrame({"user": [], "item": []}), "there are no interactions in it"),
        (pl.DataFrame({"a": [1], "item": [1]}), "no user column found among `a`, `item`"),
        (pl.LazyFrame({"user": [1]}).filter(pl.col("nothing") == 1), "cannot be read"),
    ],
)
def test_bad_frames_are_explained(frame, message):
    with pytest.raises(DataError, match=r"^the frame") as caught:
        read_interactions(frame)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_beyond_64_bits_become_text():
    frame = pl.DataFrame({"user": pl.Series([2**64 - 1, 1], dtype=pl.UInt64), "item": [1, 2]})
    assert read_interactions(frame).to_frame()["user"].to_list() == ["18446744073709551615", "1"]


@pytest.mark.parametrize("source", [np.zeros((2, 2)), [(1, 2)], None, 7])
def test_other_sources_are_refused(source):
    with pytest.raises(DataError, match="`source` must be a path, a frame or a sparse matrix, got"):
        read_interactions(source)


def test_interactions_pass_through():
    log = Interactions.from_ids([1], [2])
    assert read_interactions(log) is log


SPARSE = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("layout", SPARSE)
def test_sparse_matrices_of_every_layout_are_read(layout, kind):
    dense = np.array([[0, 1.5, 2], [3, 0, 0], [0, 0, 0]])
    log = read_interactions(getattr(scipy.sparse, f"{layout}_{kind}")(dense))
    assert log.sorted().to_frame().rows() == [(0, 1, 1.5), (0, 2, 2.0), (1, 0, 3.0)]
    assert (log.n_users, log.n_items) == (3, 3)
    assert log.matrix().toarray().tolist() == dense.tolist()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32, np.float64])
def test_ones_need_no_weights(dtype):
    assert read_interactions(scipy.sparse.csr_array(np.eye(2, dtype=dtype))).weights is None


def test_stored_zeros_are_no_interactions_and_repeated_entries_add_up():
    matrix = scipy.sparse.coo_array(([1.0, 0.0, 2.0], ([0, 0, 0], [1, 0, 1])), shape=(1, 2))
    assert read_interactions(matrix).to_frame().rows() == [(0, 1, 3.0)]


def test_reading_a_matrix_leaves_it_as_it_was():
    matrix = scipy.sparse.csr_array(
        (np.array([1.0, 0.0, 2.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2)
    )
    read_interactions(matrix)
    assert matrix.data.tolist() == [1.0, 0.0, 2.0]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (scipy.sparse.csr_array(np.array([[1, -2.0]])), "1 are not; the first is -2 in row 0, column 1"),
        (scipy.sparse.csr_array(np.array([[np.nan, np.inf]])), "2 are not; the first is nan"),
        (scipy.sparse.csr_array((2, 2)), "has no entries other than zero"),
        (scipy.sparse.csr_array(([0.0], ([0], [1])), shape=(2, 2)), "has no entries other than zero"),
        (scipy.sparse.csr_array(np.array([[1j]])), "must be real numbers, got complex128"),
        (scipy.sparse.coo_array(np.array([1, 0, 1])), r"must have users as rows and items as columns, got shape \(3,\)"),
    ],
)  # fmt: skip
def test_bad_matrices_are_explained(matrix, message):
    with pytest.raises(DataError, match=message):
        read_interactions(matrix)


def test_guess_of_columns_is_logged(read, caplog):
    with caplog.at_level("INFO", logger="pslrec"):
        read("a.csv", "uid,asin,stars\n1,2,3\n")
        read("b.csv", "1,2,3\n4,5,6\n")
    assert "a.csv: read user = `uid`, item = `asin`, rating = `stars`" in caplog.messages[0]
    assert "b.csv: line 1 is taken as data, not as names of columns" in caplog.messages[1]
    assert "b.csv: read user = `user`, item = `item`, rating = `rating`" in caplog.messages[2]


def test_every_format_has_a_name_that_the_command_line_can_take():
    assert FORMATS.names() == [
        "delimited",
        "json-lines",
        "lightgcn",
        "parquet",
        "recbole",
        "unquoted",
    ]


def test_a_date_in_the_first_line_makes_it_data(tmp_path):
    path = tmp_path / "clicks.csv"
    path.write_text("ann,tea,2024-05-01\nbob,milk,2024-05-02\n")
    log = read_interactions(path)
    assert len(log) == 2
    assert log.ratings is None
    assert log.timestamps.tolist() == [1714521600, 1714608000]


@pytest.mark.parametrize("name", ["log.csv", "log.tsv", "log.tab", "log.dat", "log.data"])
def test_tables_of_text_are_known_by_their_usual_endings(tmp_path, name):
    path = tmp_path / name
    path.write_text("user\titem\nann\ttea\nbob\tmilk\n")
    assert read_interactions(path).to_frame().rows() == PLAIN
