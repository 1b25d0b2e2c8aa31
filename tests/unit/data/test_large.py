"""Preparation out of core: the same data set as in memory, kept and checked, within the memory stated."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pslrec.data import Dataset, Preparation, load, prepare
from pslrec.data.formats import ReadOptions
from pslrec.data.large import (
    Plan,
    _preparing,
    cached_datasets,
    can_be_out_of_core,
    clean_cache,
    is_large,
    prepared_dataset,
)
from pslrec.data.large import _cache as cache
from pslrec.data.large import _plan as plans
from pslrec.data.large._chunks import spelling_of_times
from pslrec.data.splits import carve_validation, split_by_name
from pslrec.errors import DataError

SPLITS = ("iid", "leave-one-out", "temporal", "temporal-per-user", "popularity")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PSLREC_CACHE_DIR", str(tmp_path / "cache"))
    # Several pieces of even the smallest log.
    monkeypatch.setattr(_preparing, "FEWEST_ROWS", 50)


def made_up(n_rows: int, seed: int, kind: str = "numbers") -> pl.DataFrame:
    random = np.random.default_rng(seed)
    users = random.integers(0, 30, n_rows)
    items = (random.random(n_rows) ** 2 * 25).astype(np.int64)
    frame = pl.DataFrame(
        {
            "user": users,
            "item": items,
            "rating": random.integers(1, 6, n_rows),
            "timestamp": random.integers(10**9, 10**9 + 50, n_rows),
        }
    )
    if kind == "text":
        frame = frame.with_columns(pl.format("u{}", "user").alias("user"))
    if kind == "spelled":
        # Whole numbers as text: they are numbers again unless one of them is not.
        frame = frame.with_columns(pl.col("user", "item").cast(pl.String))
    return frame


def write_log(frame: pl.DataFrame, directory: Path, ending: str = ".parquet", n: int = 3) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    step = -(-len(frame) // n)
    for number in range(n):
        part = frame[number * step : (number + 1) * step]
        path = directory / f"part-{number}{ending}"
        if ending == ".parquet":
            part.write_parquet(path)
        else:
            part.write_csv(path)
    return directory


def in_memory(plan: Plan) -> Dataset:
    log = load(plan.source)
    if plan.preparation is not None:
        log = prepare(log, plan.preparation)
    dataset = split_by_name(
        log, plan.split, train_fraction=plan.train_fraction, seed=plan.split_seed
    )
    return carve_validation(dataset, plan.validation, split=plan.split, seed=plan.validation_seed)


def assert_same(one: Dataset, other: Dataset) -> None:
    assert one.user_vocabulary == other.user_vocabulary
    assert one.item_vocabulary == other.item_vocabulary
    assert one.n_left_out == other.n_left_out
    assert one.parts().keys() == other.parts().keys()
    for name, part in one.parts().items():
        same = other.parts()[name]
        assert part.to_frame().equals(same.to_frame()), name
        assert np.array_equal(part.rows.offsets, same.rows.offsets)
        assert np.array_equal(part.rows.items, same.rows.items)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n_rows=st.integers(300, 700),
    kind=st.sampled_from(["numbers", "text", "spelled"]),
    ending=st.sampled_from([".parquet", ".csv"]),
    split=st.sampled_from(SPLITS),
    validation=st.sampled_from(["none", "fraction", "paper"]),
    preparation=st.sampled_from([None, Preparation(3, 0), Preparation(None, 4), Preparation(2, 3)]),
)
def test_the_same_as_in_memory(
    tmp_path_factory, seed, n_rows, kind, ending, split, validation, preparation
):
    directory = write_log(made_up(n_rows, seed, kind), tmp_path_factory.mktemp("log"), ending)
    plan = Plan(
        str(directory),
        preparation=preparation,
        split=split,
        split_seed=seed,
        validation=validation,
        validation_seed=seed + 1,
    )
    assert_same(prepared_dataset(plan), in_memory(plan))


@pytest.mark.parametrize("weights", ["none", "count", "rating"])
def test_repeated_pairs_are_weighted_alike(tmp_path, weights):
    directory = write_log(made_up(900, 1), tmp_path / "log")
    plan = Plan(str(directory), preparation=Preparation(2, 3, weights))
    assert_same(prepared_dataset(plan), in_memory(plan))


def test_numbers_here_and_names_there_are_text_everywhere(tmp_path):
    directory = write_log(made_up(400, 2), tmp_path / "log", ".csv", n=2)
    rows = "ann,3,5,1000000000\nann,4,5,1000000001\n"
    (directory / "part-9.csv").write_text(f"user,item,rating,timestamp\n{rows}")
    plan = Plan(str(directory))
    assert_same(prepared_dataset(plan), in_memory(plan))


def test_a_prepared_data_set_is_used_again_until_something_changes(tmp_path, monkeypatch):
    directory = write_log(made_up(500, 3), tmp_path / "log")
    plan = Plan(str(directory), validation="fraction")
    first = prepared_dataset(plan)
    monkeypatch.setattr(_preparing, "_prepare", _must_not_be_called)
    assert_same(prepared_dataset(plan), first)
    monkeypatch.undo()
    monkeypatch.setenv("PSLREC_CACHE_DIR", str(tmp_path / "cache"))
    prepared_dataset(Plan(str(directory), validation="fraction", split_seed=1))
    made_up(500, 4).write_parquet(directory / "part-0.parquet")
    assert_same(prepared_dataset(plan), in_memory(plan))
    kept = cached_datasets()
    assert [each.source for each in kept] == [str(directory)] * 3
    assert all(sum(each.n_pairs.values()) > 100 for each in kept)
    assert len(clean_cache()) == 3
    assert cached_datasets() == []


def _must_not_be_called(*_: object) -> None:
    raise AssertionError("it was prepared before")


def test_damaged_and_half_written_ones_are_never_used(tmp_path, caplog):
    directory = write_log(made_up(500, 5), tmp_path / "log")
    plan = Plan(str(directory))
    expected = in_memory(plan)
    prepared_dataset(plan)
    place = cached_datasets()[0].path
    content = bytearray((place / "train-items").read_bytes())
    content[0] ^= 1
    (place / "train-items").write_bytes(content)
    assert_same(prepared_dataset(plan), expected)
    assert "train-items has changed since it was written" in caplog.text
    # As if a process had ended before the last file, which lists all others.
    (place / cache.MANIFEST).unlink()
    (place / "test-items").unlink()
    assert cached_datasets() == []
    assert_same(prepared_dataset(plan), expected)


def test_nothing_is_left_of_a_preparation_that_fails(tmp_path, monkeypatch):
    directory = write_log(made_up(500, 6), tmp_path / "log")

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_preparing, "write_manifest", fail)
    with pytest.raises(KeyboardInterrupt):
        prepared_dataset(Plan(str(directory)))
    left = [path.name for path in (tmp_path / "cache" / "prepared").iterdir()]
    assert [name for name in left if not name.endswith(".lock")] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preparation": Preparation(9, 0)}, "no interaction has a rating of at least 9"),
        ({"preparation": Preparation(None, 400)}, "nothing is left of .* in the 400-core"),
        ({"train_fraction": 1.5}, "`train_fraction` must lie between 0 and 1"),
        ({"options": ReadOptions(header=None)}, None),
    ],
)
def test_what_cannot_be_is_explained(tmp_path, change, message):
    directory = write_log(made_up(300, 7), tmp_path / "log")
    plan = Plan(str(directory), **change)
    if message is None:
        prepared_dataset(plan)
        return
    with pytest.raises(DataError, match=message):
        prepared_dataset(plan)


def test_times_that_are_written_differently_in_two_pieces_are_refused(tmp_path):
    directory = write_log(made_up(300, 8), tmp_path / "log", n=1)
    later = made_up(300, 9).with_columns(pl.col("timestamp") * 1000)
    later.write_parquet(directory / "part-5.parquet")
    with pytest.raises(DataError, match=r"part-5\.parquet: row 1: .* milliseconds, .* seconds"):
        prepared_dataset(Plan(str(directory)))
    assert spelling_of_times(pl.Series([0, 0])) is None
    assert spelling_of_times(pl.Series(["2024-05-01"])) == "dates as text"


def test_a_bad_value_is_found_in_a_later_piece(tmp_path):
    frame = made_up(300, 10).with_columns(pl.col("user").cast(pl.Int64))
    frame[200, "user"] = None
    directory = write_log(frame, tmp_path / "log", n=1)
    with pytest.raises(DataError, match=r"part-0\.parquet: row 201: `user` is empty"):
        prepared_dataset(Plan(str(directory)))


def test_what_is_large(tmp_path, monkeypatch):
    directory = write_log(made_up(300, 11), tmp_path / "log")
    assert not is_large(str(directory))
    assert not is_large("debian")
    assert not is_large(str(tmp_path / "nothing.csv"))
    monkeypatch.setattr(plans, "LARGE_PARQUET", 1000)
    assert is_large(str(directory))
    assert is_large(f"{directory}/*.parquet")
    text = write_log(made_up(300, 11), tmp_path / "text", ".csv")
    assert can_be_out_of_core(str(text))
    assert not is_large(str(text))
    for name in ("train", "test"):
        (text / f"{name}.csv").write_text("user,item\n1,2\n")
    assert not can_be_out_of_core(str(text))


def test_a_log_at_an_address(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    storage = fsspec.filesystem("memory")
    directory = write_log(made_up(500, 12), tmp_path / "log")
    for file in directory.iterdir():
        storage.put_file(str(file), f"/bucket/log/{file.name}")
    try:
        plan = Plan("memory://bucket/log", preparation=Preparation(2, 3))
        assert can_be_out_of_core(plan.source)
        local = Plan(str(directory), preparation=plan.preparation)
        assert_same(prepared_dataset(plan), in_memory(local))
        files = [path.name for path in cached_datasets()[0].path.iterdir()]
        assert "source" not in files
    finally:
        storage.store.clear()


MEASURE = """
import json, logging, sys
from pathlib import Path
from pslrec.data.large import Plan, prepared_dataset
from pslrec.data import Preparation
stated = []
class Notes(logging.Handler):
    def emit(self, record):
        if "at most" in record.msg:
            stated.append(record.args[3])
logging.getLogger("pslrec").addHandler(Notes())
logging.getLogger("pslrec").setLevel("INFO")
def held(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)[name].split()[0]) * 1024
def prepare(path):
    prepared_dataset(Plan(path, preparation=Preparation(None, 3), validation="fraction"))
# Libraries and their threads come in with the first log.
prepare(sys.argv[1])
Path("/proc/self/clear_refs").write_text("5")
before = held("VmRSS")
prepare(sys.argv[2])
print(json.dumps({"grown": held("VmHWM") - before, "stated": stated[-1]}))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
def test_memory_stays_within_what_was_stated(tmp_path):
    write_log(made_up(3000, 13), tmp_path / "small")
    random = np.random.default_rng(0)
    n_rows = 1_000_000
    frame = pl.DataFrame(
        {
            "user": random.integers(0, n_rows // 30, n_rows),
            "item": random.integers(0, n_rows // 300, n_rows),
        }
    )
    write_log(frame, tmp_path / "large")
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "small"), str(tmp_path / "large")]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(finished.stdout)
    assert found["grown"] <= 1e6 * float(found["stated"].replace(",", ""))
