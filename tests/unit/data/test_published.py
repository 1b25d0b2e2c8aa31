import gzip
import stat
import zipfile

import polars as pl
import pytest

from pslrec.data import Columns, read_published
from pslrec.data._published import is_published_split
from pslrec.data.formats import ReadOptions
from pslrec.errors import DataError

TRAIN = "user\titem\nann\ttea\nann\tmilk\nbob\ttea\nbob\twine\n"
TEST = "user\titem\nann\twine\nbob\tmilk\n"
GOOD = {"train.tsv": TRAIN, "test.tsv": TEST}
LISTED = {
    "train.tsv": "user_procid\titem_procid\n0\t0\n1\t1\n",
    "test.tsv": "user_procid\titem_procid\n0\t1\n",
    "user_list.tsv": "user_orgid\tuser_procid\nzoe\t0\nann\t1\n",
    "item_list.tsv": 'item_orgid\titem_procid\n"tea\t1"\t0\nmilk\t1\n',
}


@pytest.fixture(params=["directory", "zip", "zip with a folder"])
def publish(request, tmp_path):
    """Lays files out as a directory or a zip and gives its path."""

    def publish(files):
        if request.param == "directory":
            path = tmp_path / "data"
            path.mkdir()
            for name, content in files.items():
                (path / name).write_bytes(
                    content if isinstance(content, bytes) else content.encode()
                )
            return path
        path = tmp_path / "data.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in files.items():
                archive.writestr(name if request.param == "zip" else f"inner/{name}", content)
        return path

    return publish


def rows(interactions):
    return interactions.to_frame().rows()


def complaint(path, **options):
    with pytest.raises(DataError) as caught:
        read_published(path, **options)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "/tmp/tmp" not in message
    return message.removeprefix(f"{path}: ")


def test_parts_are_read_over_shared_vocabularies(publish):
    path = publish(GOOD)
    dataset = read_published(path)
    assert rows(dataset.train) == [("ann", "tea"), ("ann", "milk"), ("bob", "tea"), ("bob", "wine")]
    assert rows(dataset.test) == [("ann", "wine"), ("bob", "milk")]
    assert dataset.validation is None
    assert dataset.name == "data"
    assert dataset.item_vocabulary.ids([0, 1, 2]) == ["milk", "tea", "wine"]


@pytest.mark.parametrize("name", ["validation.tsv", "valid.csv"])
def test_validation_part_is_read_under_both_names(publish, name):
    text = "user\titem\nann\twine\n" if name.endswith("tsv") else "user,item\nann,wine\n"
    dataset = read_published(publish({**GOOD, name: text, "test.tsv": "user\titem\nbob\tmilk\n"}))
    assert rows(dataset.validation) == [("ann", "wine")]


def test_lists_give_original_ids_and_the_order_of_rows(publish):
    dataset = read_published(publish(LISTED))
    assert rows(dataset.train) == [("zoe", "tea\t1"), ("ann", "milk")]
    assert dataset.user_vocabulary.ids([0, 1]) == ["zoe", "ann"]


def test_lists_of_number_ids_give_numbers(publish):
    listed = {**LISTED, "user_list.tsv": "user_orgid\tuser_procid\n20\t0\n3\t1\n"}
    assert rows(read_published(publish(listed)).train) == [(20, "tea\t1"), (3, "milk")]


def test_other_columns_of_the_parts_are_kept(publish):
    part = "user\titem\trating\tts\tweight\n1\t2\t4.5\t100\t2\n2\t2\t3\t50\t1\n"
    test = "user\titem\trating\tts\tweight\n1\t3\t4.5\t100\t2\n"
    dataset = read_published(publish({"train.tsv": part + "3\t3\t1\t1\t1\n", "test.tsv": test}))
    assert rows(dataset.test) == [(1, 3, 4.5, 100, 2.0)]


def test_ids_are_numbers_only_if_they_are_in_every_part(publish):
    dataset = read_published(
        publish({"train.tsv": "user\titem\n1\t2\n007\t3\n", "test.tsv": "user\titem\n1\t3\n"})
    )
    assert rows(dataset.test) == [("1", 3)]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "txt", "jsonl", "inter", "parquet"])
def test_parts_may_be_in_any_format(publish, ending, tmp_path):
    def content(pairs):
        if ending == "parquet":
            pl.DataFrame(pairs, schema=["user", "item"], orient="row").write_parquet(
                tmp_path / "part"
            )
            return (tmp_path / "part").read_bytes()
        if ending == "jsonl":
            return "".join(f'{{"user":{user},"item":{item}}}\n' for user, item in pairs)
        head = "user_id:token\titem_id:token\n" if ending == "inter" else "user\titem\n"
        text = head + "".join(f"{user}\t{item}\n" for user, item in pairs)
        return gzip.compress(text.encode()) if ending.endswith("gz") else text

    train, test = [(1, 5), (1, 6), (2, 5)], [(2, 6)]
    dataset = read_published(
        publish({f"train.{ending}": content(train), f"test.{ending}": content(test)})
    )
    assert (rows(dataset.train), rows(dataset.test)) == (train, test)


def test_lightgcn_parts_are_recognised_together(publish):
    # Each line of the test part alone could as well be user, item, rating.
    dataset = read_published(
        publish({"train.txt": "0 1 2 3\n1 3 2 5 4\n2\n", "test.txt": "0 4 5\n1 1 4\n"}), repair=True
    )
    assert rows(dataset.test) == [(0, 4), (0, 5), (1, 1)]
    assert dataset.train.ratings is None


def test_columns_of_the_parts_can_be_named(publish):
    files = {
        name: text.replace("user", "who").replace("item", "what") for name, text in GOOD.items()
    }
    path = publish(files)
    assert complaint(path).startswith(
        "train.tsv: no user and no item column found among `who`, `what`"
    )
    dataset = read_published(path, options=ReadOptions(Columns(user="who", item="what")))
    assert len(dataset.train) == 4


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train.tsv": TRAIN}, "there is no `test.tsv` in it, nor one that ends in .csv"),
        ({**GOOD, "train.tsv": ""}, "train.tsv: the file is empty"),
        ({**GOOD, "test.tsv": "user\titem\n"}, "test.tsv: there are no interactions in it"),
        ({**GOOD, "test.tsv": 'user\titem\nann\t"x\n'}, "test.tsv: line 2 has a quotation mark that is not closed"),
        ({**GOOD, "test.tsv": "user\titem\nann\t\n"}, "test.tsv: line 2: `item` is empty; fill it in or remove the row"),
        ({**LISTED, "user_list.tsv": "user\nzoe\n"}, "user_list.tsv: it must have a header and two columns"),
        ({**LISTED, "user_list.tsv": ""}, "user_list.tsv: the file is empty"),
        ({**LISTED, "user_list.tsv": "o\tn\nzoe\t0\n"}, "user `1` is not in user_list.tsv; add it there or remove that file"),
        ({**LISTED, "user_list.tsv": "o\tn\nzoe\t0\nann\t0\n"}, "user_list.tsv: new user ids of a vocabulary must be unique"),
        ({**LISTED, "user_list.tsv": "o\tn\nzoe\t0\nzoe\t1\n"}, "user_list.tsv: user ids of a vocabulary must be unique"),
        ({**LISTED, "user_list.tsv": "o\tn\nzoe\t0\n\t1\n"}, "user_list.tsv: line 3: `o` is empty"),
        ({**LISTED, "user_list.tsv": 'o\tn\nzoe\t0\n"\t1\n'}, "user_list.tsv: line 3 has a quotation mark"),
    ],
)  # fmt: skip
def test_bad_parts_are_explained_with_their_file(publish, files, message):
    assert complaint(publish(files)).startswith(message)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"test.tsv": "user\titem\nann\ttea\nann\twine\n"},
            "1 test pair is in training or validation as well, the first is user `ann` with item `tea`; remove them, or "
            "read with `repair=True` (on the command line --repair)",
        ),
        (
            {"test.tsv": "user\titem\nann\tcake\nbob\trum\nbob\tmilk\n"},
            "2 test pairs are of items that are never trained on, the first is user `ann` with item `cake`",
        ),
        (
            {"test.tsv": "user\titem\nbob\tmilk\nzoe\ttea\n"},
            "1 test pair is of users that are never trained on, the first is user `zoe` with item `tea`",
        ),
        (
            {"validation.tsv": "user\titem\nbob\twine\n"},
            "1 validation pair is in training as well, the first is user `bob` with item `wine`",
        ),
        (
            {"validation.tsv": "user\titem\nbob\tmilk\n"},
            "1 test pair is in training or validation as well, the first is user `bob` with item `milk`",
        ),
    ],
)
def test_what_would_spoil_an_evaluation_is_refused_and_can_be_repaired(publish, files, message):
    path = publish({**GOOD, **files})
    assert complaint(path).startswith(message)
    repaired = read_published(path, repair=True)
    assert len(repaired.test) >= 1
    assert not set(rows(repaired.test)) & set(rows(repaired.train))
    assert rows(repaired.train) == rows(read_published(path, repair=True).train)


def test_item_that_validation_took_from_training_is_no_stranger_to_the_test(publish):
    files = {
        **GOOD,
        "validation.tsv": "user\titem\nbob\tcake\n",
        "test.tsv": "user\titem\nann\tcake\n",
    }
    assert rows(read_published(publish(files)).test) == [("ann", "cake")]


def test_repair_that_leaves_no_test_part_is_refused(publish):
    with pytest.raises(DataError, match="nothing is left of the test part"):
        read_published(publish({**GOOD, "test.tsv": TRAIN}), repair=True)


@pytest.fixture
def packed(tmp_path):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in GOOD.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("keep", [0, 1, 30, -1, -30])
def test_truncated_zip_is_refused(packed, keep):
    packed.write_bytes(packed.read_bytes()[:keep])
    assert complaint(packed).startswith("not a zip, or it is truncated or damaged (")


def test_damaged_content_of_a_zip_is_refused(packed):
    content = bytearray(packed.read_bytes())
    content[40:60] = bytes(20)
    packed.write_bytes(bytes(content))
    assert complaint(packed).startswith("not a zip, or it is truncated or damaged (")


def test_encrypted_zip_is_refused(packed):
    content = packed.read_bytes()
    # Bit 0 of the flags says so, in the entry's own header and in the directory at the end.
    content = content.replace(b"PK\x03\x04\x14\x00\x00", b"PK\x03\x04\x14\x00\x01")
    packed.write_bytes(
        content.replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01")
    )
    assert complaint(packed).startswith("the zip is encrypted or packed in an unusual way (")


@pytest.mark.parametrize(
    "name", ["../evil.tsv", "/etc/evil.tsv", "a/../../evil.tsv", "..\\evil.tsv", "C:\\evil.tsv"]
)
def test_zip_with_unsafe_paths_is_not_unpacked(packed, name, tmp_path):
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr(name, "evil")
    assert "has an unsafe path" in complaint(packed)
    assert [path.name for path in tmp_path.rglob("*")] == ["data.zip"]


def test_link_in_a_zip_is_not_followed(packed):
    with zipfile.ZipFile(packed, "a") as archive:
        link = zipfile.ZipInfo("validation.tsv")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    assert complaint(packed).startswith("validation.tsv: ")


def test_zip_without_a_split_says_what_to_do(tmp_path):
    path = tmp_path / "ratings.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ml/ratings.csv", "user,item\n1,2\n")
    assert complaint(path).endswith(
        "this one has none; unpack it and give the file or directory you mean"
    )


def test_zip_with_two_splits_says_what_to_do(tmp_path):
    path = tmp_path / "both.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for folder in ("iid", "ood"):
            for name, content in GOOD.items():
                archive.writestr(f"{folder}/{name}", content)
    assert "this one has 2; unpack it" in complaint(path)


def test_other_files_in_a_zip_do_no_harm(packed):
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("__MACOSX/._train.tsv", b"\x00")
        archive.writestr("train.log", "x")
        archive.writestr("README", "x")
    assert len(read_published(packed).train) == 4


def test_missing_path_is_named(tmp_path):
    assert complaint(tmp_path / "nothing.zip") == "no such file or directory"


def test_a_path_may_be_text(packed):
    assert len(read_published(str(packed)).train) == 4


def test_published_splits_are_recognised(packed, tmp_path):
    assert is_published_split(packed)
    assert is_published_split(tmp_path / "missing.ZIP")
    assert not is_published_split(tmp_path)
    (tmp_path / "train.csv.gz").write_bytes(b"")
    assert is_published_split(tmp_path)
