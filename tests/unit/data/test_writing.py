import os
import stat
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pslrec.data import Dataset, Interactions, read_interactions, read_published
from pslrec.data._writing import write_dataset, write_interactions
from pslrec.data.splits import split_by_name
from pslrec.errors import DataError
from pslrec.files import whole_file

AWKWARD = ['com,ma', 'quo"te', '"', '""', "tab\tbed", "line\nbreak", "car\rriage", "\r", " lead", "trail ", " ", "007", "ünï",
           "日本", "🍵", "-", "nan", "null", "user", "#", "\\", "'", "1e5", "\u2028", "a;b|c::d"]  # fmt: skip


def same(one, other):
    assert one.to_frame().equals(other.to_frame())
    assert one.user_vocabulary == other.user_vocabulary
    assert one.item_vocabulary == other.item_vocabulary


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_awkward_ids_come_back(tmp_path, ending):
    log = Interactions.from_ids(AWKWARD, AWKWARD[::-1])
    write_interactions(log, tmp_path / f"a.{ending}")
    same(read_interactions(tmp_path / f"a.{ending}"), log)


@pytest.mark.parametrize("identifier", AWKWARD)
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_each_awkward_id_comes_back_alone(tmp_path, ending, identifier):
    log = Interactions.from_ids([identifier, "x"], [identifier, "y"])
    write_interactions(log, tmp_path / f"a.{ending}")
    same(read_interactions(tmp_path / f"a.{ending}"), log)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_every_column_comes_back(tmp_path, ending):
    ratings = np.array([1 / 3, 1e-20, 3e38], dtype=np.float32)
    log = Interactions.from_ids(
        [2, 1, 2],
        ["b", "a", "a"],
        ratings=ratings,
        timestamps=[3, 0, 1_700_000_000],
        weights=ratings,
    )
    write_interactions(log, tmp_path / f"a.{ending}")
    same(read_interactions(tmp_path / f"a.{ending}"), log)


def test_data_set_comes_back_with_every_column_and_the_order_of_rows(tmp_path):
    log = Interactions.from_ids(
        np.repeat(np.arange(20), 10),
        np.tile([f"it\t{n}" for n in range(10)], 20),
        ratings=np.arange(200) % 5,
        timestamps=np.arange(200),
        weights=np.arange(200) + 0.5,
    )
    dataset = split_by_name(log, validation="paper")
    write_dataset(dataset, tmp_path / "split")
    again = read_published(tmp_path / "split")
    assert list(again.parts()) == ["train", "validation", "test"]
    for name, part in dataset.parts().items():
        same(part, again.parts()[name])


def test_awkward_ids_of_a_data_set_come_back(tmp_path):
    log = Interactions.from_ids(AWKWARD * 2, [*AWKWARD, *AWKWARD[1:], AWKWARD[0]])
    write_dataset(
        Dataset(log.select(np.arange(len(AWKWARD))), log.select(np.arange(len(AWKWARD), len(log)))),
        tmp_path / "s",
    )
    same(read_published(tmp_path / "s").whole(), log)


def test_paths_may_be_text_and_directories_are_made(tmp_path):
    log = Interactions.from_ids([1, 2], [1, 2])
    write_interactions(log, str(tmp_path / "a" / "b.csv"))
    write_dataset(Dataset(log, log), str(tmp_path / "c" / "d"))
    assert sorted(path.name for path in (tmp_path / "c" / "d").iterdir()) == [
        "item_list.tsv", "test.tsv", "train.tsv", "user_list.tsv",
    ]  # fmt: skip


def test_written_files_have_the_usual_permissions(tmp_path):
    log = Interactions.from_ids([1, 2], [1, 2])
    mask = os.umask(0o022)
    try:
        write_interactions(log, tmp_path / "a.csv")
        write_dataset(Dataset(log, log), tmp_path / "d")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o755


def test_existing_file_is_replaced_and_nothing_else_left(tmp_path):
    (tmp_path / "a.csv").write_text("old")
    write_interactions(Interactions.from_ids([1], [2]), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "user,item\n1,2\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize(
    "failure", [KeyboardInterrupt, OSError(28, "No space left on device"), ValueError]
)
def test_interrupted_writing_keeps_the_old_file_and_leaves_nothing_half_written(
    tmp_path, monkeypatch, failure
):
    def fail(frame, file, **options):
        file.write(b"half")
        raise failure

    (tmp_path / "a.csv").write_text("old")
    monkeypatch.setattr(pl.DataFrame, "write_csv", fail)
    log = Interactions.from_ids([1], [2])
    with pytest.raises((KeyboardInterrupt, DataError, ValueError)):
        write_interactions(log, tmp_path / "a.csv")
    with pytest.raises((KeyboardInterrupt, DataError, ValueError)):
        write_dataset(Dataset(log, log), tmp_path / "d")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "old"


def test_full_disk_is_explained(tmp_path):
    message = (
        r"a\.csv cannot be written: no space left on device; make room or choose another place"
    )
    with pytest.raises(DataError, match=message), whole_file(tmp_path / "a.csv", error=DataError):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("name", ["a.txt", "a", "a.json", "a.csv.gz"])
def test_unknown_endings_are_refused_before_anything_is_made(tmp_path, name):
    with pytest.raises(
        DataError, match=r"interactions are written as \.csv, \.tsv or \.parquet, not as"
    ):
        write_interactions(Interactions.from_ids([1], [2]), tmp_path / "new" / name)
    assert list(tmp_path.iterdir()) == []


def test_place_that_can_not_be_written_is_named(tmp_path):
    log = Interactions.from_ids([1, 2], [1, 2])
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file", Path("/proc")):
        with pytest.raises(DataError, match=r"b\.csv cannot be written: .*; choose another place"):
            write_interactions(log, directory / "b.csv")
        with pytest.raises(DataError, match=r"d cannot be written: .*; choose another place"):
            write_dataset(Dataset(log, log), directory / "d")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_directory_in_the_place_of_a_file_is_named(tmp_path):
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(DataError, match=r"a\.csv is a directory; give the name of a file in it"):
        write_interactions(Interactions.from_ids([1], [2]), tmp_path / "a.csv")


def test_data_set_never_overwrites(tmp_path):
    log = Interactions.from_ids([1, 2], [1, 2])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("x")
    (tmp_path / "file").write_text("x")
    for name in ("full", "file"):
        with pytest.raises(DataError, match=f"{name} exists already and is not empty"):
            write_dataset(Dataset(log, log), tmp_path / name)
    assert (tmp_path / "full" / "precious").read_text() == "x"


def test_data_set_may_take_an_empty_directory(tmp_path):
    log = Interactions.from_ids([1, 2], [1, 2])
    (tmp_path / "empty").mkdir()
    write_dataset(Dataset(log, log), tmp_path / "empty")
    assert (tmp_path / "empty" / "train.tsv").is_file()
