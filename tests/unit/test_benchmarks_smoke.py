import csv
import json
import re
import sys
from pathlib import Path

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
