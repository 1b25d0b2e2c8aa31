"""The benchmarks of training at a small size: what they compare must agree, and their arithmetic must hold."""

import json
import re
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from pslrec.kernels._native import IS_COMPILED

compiled_only = pytest.mark.skipif(not IS_COMPILED, reason="the compiled kernels are not built")


@pytest.fixture(autouse=True)
def _benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))


@pytest.fixture
def small():
    from benchmarks._data import made_up

    return made_up(60, 200, 600)


@pytest.fixture
def few_negatives(small, monkeypatch: pytest.MonkeyPatch):
    from benchmarks import _training_step

    monkeypatch.setattr(_training_step, "published", lambda name: small)
    monkeypatch.setattr(_training_step, "NEGATIVES", 30)
    return _training_step


def test_fused_and_naive_step_have_the_same_losses(few_negatives):
    naive, fused = ([take(batch) for batch in batches] for take, batches in _both(few_negatives))
    assert len(naive) > 0
    assert naive == pytest.approx(fused, rel=1e-5)


def _both(module):
    from pslrec.config import RunConfig
    from pslrec.experiment import TrainingData, build_batches

    data = module.published("electronic")
    settings = {
        "loss.name": "psl-relu",
        "loss.temperature": 0.1,
        "sampling.negatives": 30,
        "sampling.batch_pairs": 100,
    }
    config = RunConfig.from_settings(settings).resolved()
    for make in (module.naive_step, module.fused_step):
        batches = build_batches(config, TrainingData(data, data.train))
        yield make(config, data.train, batches), batches.epoch(0)


def test_measured_step_tells_seconds_losses_and_memory(
    few_negatives, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(few_negatives, "memory_growth", lambda work: work() or 123)
    measured = few_negatives.measure("fused", 0)
    assert measured["grown"] == 123
    assert len(measured["losses"]) == 1
    assert measured["seconds"] == []


def step_result(seconds: float, grown: int, loss: float = 5.0) -> dict[str, object]:
    return {"seconds": [seconds, seconds], "losses": [loss, loss], "grown": grown}


def test_step_ratios_are_medians_over_rounds():
    from benchmarks import sampled_step

    naive = [step_result(2.0, 600), step_result(4.0, 600), step_result(2.0, 900)]
    fused = [step_result(0.1, 20), step_result(0.1, 20), step_result(0.05, 20)]
    result = sampled_step._summary({"naive": naive, "fused": fused})
    assert (result["times_faster"], result["times_less_memory"]) == (40.0, 30.0)
    assert result["targets_met"] == {"times_faster": True, "times_less_memory": True}
    assert "40 times faster" in sampled_step.markdown(recorded(result))


def test_steps_with_different_losses_are_an_error():
    from benchmarks import sampled_step

    with pytest.raises(RuntimeError, match="do not agree"):
        sampled_step._summary(
            {"naive": [step_result(1, 1)], "fused": [step_result(1, 1, loss=5.1)]}
        )


def recorded(result: dict[str, object]) -> dict[str, object]:
    return json.loads(
        json.dumps(
            {
                "result": result,
                "machine": {"processor": "one", "cores": 2},
                "measured": "2026-01-01",
            }
        )
    )


def test_a_proportional_epoch_lies_on_the_line_and_another_does_not():
    from benchmarks import scaling

    straight = [{"millions": size, "seconds": 0.01 * size} for size in (8, 32, 128)]
    bent = [{"millions": size, "seconds": 0.01 * size**1.5} for size in (8, 32, 128)]
    assert scaling._fit("sl", straight)["largest deviation"] == 0
    assert scaling._fit("sl", straight)["ns per user x item"] == 10
    assert scaling._fit("sl", bent)["largest deviation"] > 0.5


@compiled_only
def test_history_rows_compare_the_longest_with_the_shortest(monkeypatch: pytest.MonkeyPatch):
    from benchmarks import scaling

    monkeypatch.setattr(scaling, "CATALOGUE", 100)
    monkeypatch.setattr(scaling, "HISTORIES", (5, 50))
    points = scaling._histories(lambda _: None)
    assert {point["loss"] for point in points} == {*scaling.LOSSES, scaling.ALL_PAIRS}
    for row in scaling._history_rows(points):
        assert row["longest / shortest"] == pytest.approx(
            row["50 positives"] / row["5 positives"], abs=0.006
        )


@compiled_only
def test_error_falls_with_nodes_and_is_small_when_they_are_chosen(monkeypatch: pytest.MonkeyPatch):
    from benchmarks import interpolation_error

    monkeypatch.setattr(interpolation_error, "N_ITEMS", 500)
    monkeypatch.setattr(interpolation_error, "N_POSITIVES", 60)
    by_nodes = {
        point["R"]: point for point in interpolation_error._points("tanh", 0.15, "two clusters")
    }
    for kind, target in interpolation_error.TARGETS.items():
        assert by_nodes[2][kind] > 10 * by_nodes[4][kind] > 50 * by_nodes[8][kind] > 0
        assert by_nodes["chosen"][kind] <= target


def test_propagation_is_measured_beside_products_that_are_right(small):
    from benchmarks import propagation

    row = propagation._propagation(small.train, "xsimgcl", 1)
    assert row["layers"] == 3
    assert row["times torch"] > 0 < row["times scipy"]
    matrix, transposed = propagation._matrices(small.train)
    dense = torch.randn(small.n_items, 4)
    torch.testing.assert_close(
        torch.sparse.mm(propagation._sparse(matrix), dense),
        torch.from_numpy(matrix @ dense.numpy()),
    )
    assert (matrix != transposed.T).nnz == 0


def test_epochs_are_timed_without_the_first(small):
    from benchmarks._epochs import epoch_seconds

    seconds = epoch_seconds(small.train, {"loss.name": "sl", "loss.temperature": 0.1}, rounds=2)
    assert len(seconds) == 2
    assert min(seconds) > 0


def one_picture(record: dict[str, str]) -> dict[str, str]:
    from benchmarks._plots import WIDE, series_by

    from pslrec.reporting import Axis, line_chart, standalone_svg

    points = [{"n": n, "s": n**2, "who": who} for who in ("one", "two") for n in (1, 10, 100)]
    chart = line_chart(
        "Squares",
        "They grow.",
        series_by("who", points, x="n", y="s"),
        x=Axis("number", is_log=True),
        y=Axis("seconds", is_log=True),
        size=WIDE,
    )
    return {record["name"]: standalone_svg(chart)}


def test_pictures_are_written_as_svg_and_as_png_where_that_can_be_made(tmp_path: Path):
    from benchmarks._plots import draw

    files = draw(SimpleNamespace(plots=one_picture), {"name": "mine"}, directory=tmp_path / "new")
    expected = ["mine.svg"]
    if find_spec("vl_convert") is not None:
        expected.append("mine.png")
        assert files[1].read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in files] == expected
    drawing = files[0].read_text()
    assert all(word in drawing for word in ("number", "seconds", "one", "two", "10,000"))


@pytest.mark.parametrize("name", ["interpolation_error", "scaling", "time_to_quality"])
def test_pictures_of_the_pages_are_those_of_the_committed_results(name, tmp_path: Path):
    from benchmarks import benchmarks
    from benchmarks._plots import IMAGES, draw
    from benchmarks._publish import load_record

    for file in draw(benchmarks()[name], load_record(name), directory=tmp_path):
        if file.suffix == ".svg":
            assert (IMAGES / file.name).read_text() == file.read_text()


def test_every_contestant_has_a_look_of_its_own():
    from benchmarks import time_to_quality
    from benchmarks._publish import load_record

    record = load_record("time_to_quality")
    drawing = time_to_quality.plots(record)["time-to-quality"]
    swatches = re.findall(r'<svg [^>]*class="swatch">.*?</svg>', drawing)
    names = record["result"]["curves"]
    assert len(set(swatches)) == len(swatches) == len(names)
    assert all(f">{name}</text>" in drawing for name in names)


def test_a_benchmark_without_pictures_draws_none(tmp_path: Path):
    from benchmarks._plots import draw

    assert draw(SimpleNamespace(), {}, directory=tmp_path / "new") == []
    assert not (tmp_path / "new").exists()


def test_memory_growth_sees_what_was_held():
    from benchmarks._memory import MEBIBYTE, memory_growth

    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the system does not tell")
    assert 30 * MEBIBYTE < memory_growth(lambda: bytearray(b"x") * (40 * MEBIBYTE)) < 60 * MEBIBYTE
