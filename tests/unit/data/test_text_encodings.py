"""Text files that are not UTF-8: read as they are said to be, and refused with advice otherwise."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from pslrec.data import Vocabulary, load, read_interactions
from pslrec.data.formats._encodings import probable_encoding
from pslrec.data.items import ItemTable, TableFile
from pslrec.errors import DataError, EncodingError

PAIRS = [("Jörg", "Käse"), ("Zoë", "Crème brûlée"), ("Jörg", "Tee")]
HEADER = "Käufer;Ware"
NAMES = {"user": "Käufer", "item": "Ware"}
ENCODINGS = ("latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig")


def text_of(rows: list[tuple[str, str]], end: str = "\n") -> str:
    return end.join([HEADER, *(f"{user};{item}" for user, item in rows)]) + end


def pairs_in(path: Path, **options: object) -> list[tuple[str, str]]:
    frame = read_interactions(path, **options).to_frame()
    return sorted(frame.select("user", "item").iter_rows())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_table_is_read_in_the_encoding_that_is_named(
    tmp_path: Path, encoding: str, end: str
) -> None:
    path = tmp_path / "kauf.csv"
    path.write_bytes(text_of(PAIRS, end).encode(encoding))
    # Without a mark, UTF-16 in either order is named with its order.
    assert pairs_in(path, columns=NAMES, encoding=encoding) == sorted(PAIRS)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_text_format_takes_an_encoding(tmp_path: Path, encoding: str) -> None:
    records = [json.dumps({"user": u, "item": i}, ensure_ascii=False) for u, i in PAIRS]
    typed = ["user_id:token\titem_id:token", *(f"{u}\t{i}" for u, i in PAIRS)]
    plain = {"a.jsonl": "\n".join(records), "a.inter": "\n".join(typed), "a.csv": text_of(PAIRS)}
    for name, text in plain.items():
        path = tmp_path / f"{name}.gz"
        path.write_bytes(gzip.compress(text.encode(encoding)))
        columns = NAMES if name == "a.csv" else None
        assert pairs_in(path, columns=columns, encoding=encoding) == sorted(PAIRS)
    lists = tmp_path / "a.txt"
    lists.write_bytes("Jörg Käse Tee\nZoë Crème\n".encode(encoding))
    found = pairs_in(lists, format="lightgcn", encoding=encoding)
    assert found == [("Jörg", "Käse"), ("Jörg", "Tee"), ("Zoë", "Crème")]


def test_the_advice_of_the_error_works(tmp_path: Path) -> None:
    path = tmp_path / "kauf.csv"
    for encoding in ("latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        # A euro sign is in cp1252, not in Latin-1.
        rows = [*PAIRS, ("Zoë", "Brot 3 €")] if encoding != "latin-1" else PAIRS
        path.write_bytes(text_of(rows).encode(encoding))
        with pytest.raises(EncodingError) as refused:
            read_interactions(path, columns=NAMES)
        assert pairs_in(path, columns=NAMES, encoding=refused.value.guess) == sorted(rows)


def test_a_header_in_another_encoding_is_not_shown_with_replaced_letters(tmp_path: Path) -> None:
    path = tmp_path / "kauf.csv"
    path.write_bytes(text_of(PAIRS).encode("latin-1"))
    with pytest.raises(EncodingError, match="line 1 is not UTF-8 text") as refused:
        read_interactions(path)
    assert "\N{REPLACEMENT CHARACTER}" not in str(refused.value)


@pytest.mark.parametrize(
    ("line", "encoding"),
    [
        # Windows has the same letters in the same places, and more.
        ("Müßiggang".encode("latin-1"), "cp1252"),
        ("„Kür“".encode("cp1252"), "cp1252"),
        # 0x81 is no letter of Windows.
        ("Kür".encode("cp850"), "cp850"),
        (b"\x00\x01\xff", None),
    ],
)
def test_the_probable_encoding_of_a_line(line: bytes, encoding: str | None) -> None:
    assert probable_encoding(line) == encoding


@pytest.mark.parametrize("name", ["latin-7000", "base64", "rot13", ""])
def test_what_is_no_encoding_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item\na,b\n")
    with pytest.raises(DataError, match="`encoding` must be the name of a text encoding"):
        read_interactions(path, encoding=name)


def test_a_file_in_another_encoding_than_named_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("user,item\nJörg,b\n".encode("latin-1"))
    for encoding in ("ascii", "utf-16"):
        with pytest.raises(DataError, match=f"it is not text in {encoding}"):
            read_interactions(path, encoding=encoding)


def test_both_parts_and_lists_of_a_split_take_the_encoding(tmp_path: Path) -> None:
    parts = {
        "train.tsv": "user\titem\n0\t0\n0\t1\n1\t0\n",
        "test.tsv": "user\titem\n1\t1\n",
        "user_list.tsv": "original\tnew\nJörg\t0\nZoë\t1\n",
        "item_list.tsv": "original\tnew\nKäse\t0\nTee\t1\n",
    }
    for name, text in parts.items():
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    dataset = load(tmp_path, encoding="latin-1")
    assert dataset.user_vocabulary.series.to_list() == ["Jörg", "Zoë"]
    with pytest.raises(DataError, match=r"user_list\.tsv: line 2 is not UTF-8 text"):
        load(tmp_path)


def test_an_item_table_keeps_its_letters_or_is_refused(tmp_path: Path) -> None:
    items = Vocabulary([1, 2], kind="item")
    table = "id;Titel;Größe\n1;Käse;3\n2;Crème brûlée;4\n"
    records = pl.DataFrame({"id": [1, 2], "title": ["Käse", "Crème brûlée"]}).write_ndjson()
    for name, text in {"ware.csv": table, "ware.jsonl": records}.items():
        path = tmp_path / name
        path.write_bytes(text.encode("latin-1"))
        read = ItemTable.read(TableFile(path, "latin-1"), items)
        assert list(read.titles) == ["Käse", "Crème brûlée"]
        with pytest.raises(EncodingError, match="`--item-table-encoding cp1252`"):
            ItemTable.read(path, items)
