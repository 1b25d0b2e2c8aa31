import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))


def test_every_benchmark_has_a_description_and_can_be_run():
    from benchmarks import benchmarks

    found = benchmarks()
    assert "data_layer" in found
    assert all(
        isinstance(module.DESCRIPTION, str) and callable(module.run) for module in found.values()
    )


def test_log_is_the_same_for_the_same_seed_and_has_repeated_pairs(tmp_path: Path):
    from benchmarks._log_file import write_log

    paths = [tmp_path / "one.csv", tmp_path / "same.csv", tmp_path / "other.csv"]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        write_log(path, 2_000, seed)
    assert paths[0].read_bytes() == paths[1].read_bytes() != paths[2].read_bytes()
    with paths[0].open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2_000
    assert len({(row["user_id"], row["item_id"]) for row in rows}) < 1_950
    assert {row["rating"] for row in rows} == set("12345")


def test_data_layer_gives_the_same_matrix_as_pandas():
    from benchmarks import data_layer

    pytest.importorskip("pandas")
    told: list[str] = []
    result = data_layer.run(20_000, rounds=1, report=told.append)
    assert [row["with"] for row in result["rows"]] == ["pandas", "pslrec"]
    assert result["same_result"]
    assert result["result"]["pairs"] > 1_000
    assert len(told) == 3
    json.dumps(result)


def test_different_results_of_the_contestants_are_an_error():
    from benchmarks import data_layer

    with pytest.raises(RuntimeError, match="do not agree"):
        data_layer._summary({"pandas": [{"digest": "a"}], "pslrec": [{"digest": "b"}]}, file_mb=1.0)


def test_machine_is_described_without_its_name():
    import platform

    from benchmarks.machine import describe_machine, peak_memory

    description = describe_machine()
    assert description["cores"] >= 1
    assert description["versions"]["polars"]
    assert platform.node() not in json.dumps(description)
    assert str(Path.home()) not in json.dumps(description)
    assert 1e7 < peak_memory() < 1e12


def test_table_is_written_between_its_markers_only(tmp_path: Path):
    from benchmarks._publish import with_table

    page = "before\n<!-- benchmark: mine -->\nold\n<!-- end of benchmark -->\nafter\n"
    written = with_table(page, "mine", "| new |")
    assert (
        written == "before\n<!-- benchmark: mine -->\n| new |\n<!-- end of benchmark -->\nafter\n"
    )
    assert with_table(written, "mine", "| new |") == written
    assert with_table(page, "another", "| new |") == page


def test_tables_of_the_documentation_are_those_of_the_kept_results():
    from benchmarks import benchmarks
    from benchmarks._publish import load_record, pages, texts, with_table

    modules = benchmarks()
    marked = [
        (page, name)
        for page in pages()
        for name in re.findall(r"<!-- benchmark: (.+) -->", page.read_text())
    ]
    assert marked
    for page, block in marked:
        name = block.removesuffix(" headline")
        record = load_record(name)
        assert record is not None, f"{page.name} shows `{name}`, which was never measured"
        text = page.read_text()
        assert with_table(text, block, texts(name, modules[name], record)[block]) == text, (
            "run `python -m benchmarks --tables`"
        )


def test_a_page_may_show_the_headline_of_a_benchmark_alone(tmp_path: Path):
    from types import ModuleType

    from benchmarks._publish import update_pages

    benchmark = ModuleType("mine")
    benchmark.markdown = lambda record: f"all of {record['result']}"
    benchmark.headline = lambda record: f"{record['result']} at a glance"
    page = tmp_path / "page.md"
    page.write_text("<!-- benchmark: mine headline -->\n<!-- end of benchmark -->\n")
    assert update_pages("mine", benchmark, {"result": 7}, [page]) == [page]
    assert page.read_text() == (
        "<!-- benchmark: mine headline -->\n7 at a glance\n<!-- end of benchmark -->\n"
    )
    assert update_pages("mine", benchmark, {"result": 7}, [page]) == []


def test_the_readme_shows_tables_of_benchmarks_only():
    """A number of a result that somebody typed would not follow the next measurement."""
    text = (REPOSITORY / "README.md").read_text()
    outside = re.sub(
        r"<!-- benchmark: .+? -->.*?<!-- end of benchmark -->", "", text, flags=re.DOTALL
    )
    assert re.findall(r"\b0\.0\d+\b|\d times", outside) == []


def test_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]):
    from benchmarks.__main__ import main

    with pytest.raises(SystemExit) as stopped:
        main(["nothing"])
    assert stopped.value.code == 2
    assert "data_layer" in capsys.readouterr().err
    assert "benchmarks" in sys.modules


def test_device_measures_both_ways_and_says_whether_targets_are_met(
    monkeypatch: pytest.MonkeyPatch,
):
    from benchmarks import _device_step, device
    from benchmarks._data import made_up

    monkeypatch.setattr(_device_step, "published", lambda _: made_up(300, 200, 3_000))
    monkeypatch.setattr(device, "LOSSES", ("psl-tanh",))
    monkeypatch.setattr(device, "in_child", lambda *_: {"MB": 30.0})
    result = device.run(rounds=1, epochs=0)
    (row,) = result["rows"]
    assert row["gradient error"] < 1e-4 < row["in bfloat16"]
    assert row["times less memory"] == 1
    assert result["targets_met"]["gradient error"]
    assert not result["targets_met"]["times less memory"]
    record = {"result": result, "machine": {"processor": "p", "cores": 2}, "measured": "now"}
    assert "psl-tanh" in device.markdown(record)


def test_a_log_at_scale_is_written_in_files_and_is_the_same_for_the_same_seed(tmp_path: Path):
    import polars as pl
    from benchmarks import _large_log

    counts = [_large_log.write_large_log(tmp_path / name, 900, 200) for name in ("one", "same")]
    frames = [pl.read_parquet(tmp_path / name / "*.parquet") for name in ("one", "same")]
    assert frames[0].equals(frames[1])
    assert counts[0] == len(frames[0])
    assert 20 < len(frames[0]) / 900 < 40
    assert frames[0]["user"].n_unique() == 900
    # Popular items take more than their share, and users repeat themselves.
    popular = frames[0]["item"].value_counts(sort=True)["count"].head(20).sum()
    assert popular > 0.2 * len(frames[0])
    assert frames[0].n_unique() < len(frames[0])


def test_large_data_are_resumed_after_the_last_finished_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from benchmarks import large

    done: list[str] = []
    fails_at = "rank"

    def in_child(_: str, step: str, *__: object, report: Any) -> dict[str, Any]:
        if step == fails_at:
            raise RuntimeError("killed")
        report("half of it")
        done.append(step)
        return {"seconds": 1.0}

    told: list[str] = []
    monkeypatch.setattr(large, "WORK", tmp_path)
    monkeypatch.setattr(large, "in_child", in_child)
    monkeypatch.setattr(large, "_serve", lambda *_: {"served": True})
    monkeypatch.setattr(large, "_rows", list)
    with pytest.raises(RuntimeError, match="killed"):
        large.run(0.0001, report=told.append)
    fails_at = ""
    found = large.run(0.0001, report=told.append)
    # Nothing is done twice, and nothing is left on the disk.
    assert done == ["generate", "prepare", "train", "rank", "export"]
    assert found["steps"]["serve"] == {"served": True}
    assert list(tmp_path.iterdir()) == []
    assert "train: half of it" in told
    monkeypatch.setattr(large, "memory_bytes", lambda: 10**6)
    with pytest.raises(RuntimeError, match="give a smaller --scale"):
        large.run(1.0)


def test_what_a_process_says_is_told_while_it_works(tmp_path: Path):
    from benchmarks._child import in_child

    told: list[str] = []
    in_child("_large_step", "generate", tmp_path, 0.0001, report=told.append)
    assert any("1,000 of 1,000 users" in line for line in told)
    with pytest.raises(RuntimeError, match="KeyError: 'no such step'"):
        in_child("_large_step", "no such step", tmp_path, 0.0001)


def test_the_table_of_large_data_is_made_of_what_was_measured():
    from benchmarks import large

    steps: dict[str, dict[str, object]] = {
        "generate": {"rows": 3000, "users": 100, "items": 10, "megabytes": 1.0},
        "prepare": {
            "seconds": 2.0,
            "again_seconds": 0.5,
            "grown_megabytes": 90.0,
            "stated_megabytes": 200.0,
            "ids_megabytes": 24.0,
            "pairs": {"train": 1000, "test": 200},
        },
        "train": {"epoch_seconds": 4.0},
        "rank": {"users": 50, "seconds": 5.0},
        "export": {"megabytes": 28.0, "seconds": 2.0},
        "serve": {"requests_per_second": 9.0, "p50_ms": 1.0, "p99_ms": 2.0, "ready_seconds": 3.0},
    }
    for measured in steps.values():
        measured |= {"step_seconds": 6.0, "peak_megabytes": 500.0}
    rows = large._rows(steps)
    assert [row["speed"] for row in rows] == [
        "500 rows/s",
        "1,500 rows/s",
        "250 pairs/s",
        "10 users/s",
        "14 MB/s",
        "9 requests/s",
    ]
    record = {
        "machine": {"cores": 2, "processor": "chip"},
        "result": {"scale": 0.1, "steps": steps, "rows": rows},
    }
    text = large.markdown(record)
    assert "3,000 rows of 100 users" in text
    assert "keeps 1,200 pairs" in text
    assert "| one epoch, 4 s, with evaluation and saving |" in text
