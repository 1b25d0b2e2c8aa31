"""Logs in many files: directories, hive partitions, patterns, and the same at addresses."""

from pathlib import Path

import polars as pl
import pytest

from pslrec.data import Dataset, load, read_interactions
from pslrec.errors import DataError

FRAME = pl.DataFrame(
    {"user": [1, 2, 3, 1, 2, 9], "item": list("abcbca"), "rating": [5, 4, 3, 2, 1, 5]}
)


def write_parts(directory: Path, ending: str) -> Path:
    for number in range(3):
        part = FRAME[2 * number : 2 * number + 2]
        place = directory / f"day=2024-05-0{number + 1}"
        place.mkdir(parents=True)
        file = place / f"part-{number}{ending}"
        if ending == ".parquet":
            part.write_parquet(file)
        elif ending == ".jsonl":
            part.write_ndjson(file)
        else:
            part.write_csv(file)
    return directory


def same(one, other) -> bool:
    return one.to_frame().equals(other.to_frame())


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
def test_a_directory_and_a_pattern_are_read_as_one_log(tmp_path, ending):
    directory = write_parts(tmp_path / "log", ending)
    (directory / "_SUCCESS").write_text("")
    (directory / ".hidden.csv").write_text("x")
    whole = read_interactions(FRAME)
    assert same(load(directory), whole)
    assert same(load(f"{directory}/*/*{ending}"), whole)
    assert same(read_interactions(f"{directory}/**/part-*"), whole)


def test_partitions_are_columns_for_those_who_name_them(tmp_path):
    directory = write_parts(tmp_path / "log", ".parquet")
    assert load(directory).timestamps is None
    named = load(directory, columns={"timestamp": "day"})
    days = pl.Series(named.timestamps).cast(pl.Int64) // 86_400
    assert (days - days[0]).to_list() == [0, 0, 1, 1, 2, 2]


def test_a_bad_value_is_found_in_its_file(tmp_path):
    directory = write_parts(tmp_path / "log", ".csv")
    (directory / "day=2024-05-02" / "part-1.csv").write_text("user,item,rating\n1,a,5\n2,,4\n")
    with pytest.raises(DataError, match=r"part-1\.csv: line 3: `item` is empty"):
        load(directory)


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    directory = write_parts(tmp_path / "log", ".csv")
    (directory / "more.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"must have one format, they end in \.csv, \.parquet"):
        load(directory)
    (directory / "more.parquet").unlink()
    (directory / "more.csv").write_text("user,item\n1,a\n")
    with pytest.raises(DataError, match=r"more\.csv has the columns .*part-0\.csv has .*`rating`"):
        load(directory)
    with pytest.raises(DataError, match="no file has a name of this pattern"):
        load(f"{directory}/*.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"give a file, or a directory with train and test, or"):
        load(tmp_path / "empty")


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path):
    FRAME.write_parquet(tmp_path / "log[1].parquet")
    assert same(load(tmp_path / "log[1].parquet"), read_interactions(FRAME))


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_the_same_at_an_address(tmp_path, ending):
    fsspec = pytest.importorskip("fsspec")
    storage = fsspec.filesystem("memory")
    directory = write_parts(tmp_path / "log", ending)
    for file in directory.rglob("*.*"):
        if file.is_file():
            storage.put_file(str(file), f"/bucket/log/{file.relative_to(directory).as_posix()}")
    try:
        whole = read_interactions(FRAME)
        assert same(load("memory://bucket/log"), whole)
        assert same(read_interactions(f"memory://bucket/log/*/*{ending}"), whole)
        assert same(
            load(Path(f"memory://bucket/log/day=2024-05-01/part-0{ending}")),
            load(directory / "day=2024-05-01" / f"part-0{ending}"),
        )
        with pytest.raises(DataError, match=r"^memory://bucket/log.*no column `who` for the user"):
            load("memory://bucket/log", columns={"user": "who"})
        for name in ("train", "test"):
            storage.pipe(
                f"/bucket/split/{name}.csv",
                b"user,item\n1,%s\n2,%s\n" % ((b"a", b"b") if name == "train" else (b"b", b"a")),
            )
        assert isinstance(load("memory://bucket/split"), Dataset)
    finally:
        storage.store.clear()
