"""The comparison with other libraries: nobody is left out silently, and tables only say what was measured."""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))


@pytest.fixture
def small():
    from benchmarks._data import made_up

    return made_up(60, 40, 600)


RIVAL_SETTINGS = {
    "als": {"factors": 4, "alpha": 10.0, "regularization": 1.0},
    "ialspp": {"n_components": 4, "alpha0": 0.1, "reg": 0.1, "nu": 0.5, "nu_star": 0.5},
    "ease": {"regularization": 10.0},
    "gf-cf": {"dimension": 4, "low_pass_weight": 0.3},
    "rp3beta": {"neighbours": 10, "transition_exponent": 0.8},
}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kind", RIVAL_SETTINGS)
def test_rivals_show_themselves_after_every_epoch_and_stop_when_told(small, kind: str):
    from benchmarks._rivals import PACKAGES, RIVALS

    if kind in PACKAGES:
        pytest.importorskip(PACKAGES[kind])
    scores = []

    def after_epoch(scorer):
        scores.append(scorer().score(np.arange(3)).clone())
        return len(scores) < 4

    RIVALS[kind](small.train, RIVAL_SETTINGS[kind], 1, after_epoch)
    assert len(scores) == (4 if kind in PACKAGES else 1)
    assert all(score.shape == (3, 40) for score in scores)
    for before, after in itertools.pairwise(scores):
        assert not torch.equal(before, after)


def test_a_package_that_cannot_be_imported_is_named(monkeypatch: pytest.MonkeyPatch):
    from benchmarks._rivals import why_missing

    monkeypatch.setitem(sys.modules, "irspack", None)
    assert "`irspack` cannot be imported" in why_missing("ialspp")
    assert "pslrec[bench]" in why_missing("ialspp")
    assert why_missing("ease") == why_missing("pslrec") == ""


def points(*values: tuple[float, float, float]) -> list[dict[str, float]]:
    return [dict(zip(("seconds", "validation", "test"), value, strict=True)) for value in values]


CURVES = {
    "pslrec, preset fast, d = 64": {
        "kind": "pslrec",
        "dimension": 64,
        "settings": {"preset": "fast", "loss.name": "psl-relu", "loss.temperature": 1 / 16},
        "fitting_from": 2.0,
        "points": points((4.0, 0.03, 0.050), (6.0, 0.04, 0.059), (9.0, 0.039, 0.099)),
    },
    "irspack iALS++, d = 64": {
        "kind": "ialspp",
        "dimension": 64,
        "settings": {"n_components": 64, "alpha0": 0.03, "reg": 0.3},
        "edges": ["reg"],
        "n_tried": 12,
        "fitting_from": 1.5,
        "points": points((1.9, 0.03, 0.051), (2.5, 0.038, 0.056)),
    },
    "EASE": {
        "kind": "ease",
        "dimension": 0,
        "settings": {"regularization": 200.0},
        "fitting_from": 1.0,
        "points": points((14.0, 0.037, 0.0555)),
    },
}


def test_a_contestant_that_cannot_take_part_is_named_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
):
    from benchmarks import _quality, time_to_quality

    asked = []

    def child(data, kind, settings):
        asked.append(data)
        return 1.0, points((2.0, 0.03, 0.04))

    monkeypatch.setattr(_quality, "is_published", lambda _: True)
    monkeypatch.setattr(_quality.QualityBySeconds, "contestants", lambda _: CURVES)
    monkeypatch.setattr(_quality, "child", child)
    monkeypatch.setitem(sys.modules, "irspack", None)
    told: list[str] = []
    result = time_to_quality.run(report=told.append)
    assert set(asked) == {"electronic"}
    assert [row["contestant"] for row in result["rows"]] == ["pslrec, preset fast, d = 64", "EASE"]
    assert "irspack iALS++, d = 64: `irspack` cannot be imported" in result["left_out"]
    assert any("`irspack` cannot be imported" in text for text in told)
    assert "Left out: irspack" in time_to_quality.markdown(recorded(result))


def recorded(result: dict[str, object]) -> dict[str, object]:
    machine = {"processor": "one", "cores": 2}
    return json.loads(json.dumps({"result": result, "machine": machine, "measured": "2026-01-01"}))


def test_rows_show_the_model_that_validation_chose_so_far():
    from benchmarks import time_to_quality
    from benchmarks._quality_tables import rows_of

    exact, ials, ease = rows_of(CURVES, time_to_quality.BENCHMARK.shown)
    assert (exact["2 s"], exact["5 s"], exact["10 s"], exact["end"]) == (
        "",
        "0.0500",
        "0.0590",
        "0.0590",
    )
    assert (exact["d"], exact["0.0525 after"], exact["fitting s"]) == ("64", "6.0 s", "4.0")
    assert (ials["2 s"], ials["0.0525 after"], ials["fitting s"]) == ("0.0510", "2.5 s", "1.0")
    assert (ease["d"], ease["10 s"], ease["20 s"]) == ("", "", "0.0555")


def test_sentences_name_who_leads_by_seconds_and_by_dimension():
    from benchmarks import time_to_quality
    from benchmarks._quality_tables import by_dimension, by_seconds

    sentence = by_seconds(CURVES, time_to_quality.BENCHMARK.shown)
    assert "after 2 s irspack iALS++, d = 64 (0.0510)" in sentence
    assert "after 5 s irspack iALS++, d = 64 (0.0560)" in sentence
    assert "after 10 s pslrec, preset fast, d = 64 (0.0590)" in sentence
    assert "after 1 s" not in sentence
    ranked = "d = 64: pslrec, preset fast 0.0590, irspack iALS++ 0.0560"
    assert by_dimension(CURVES) == f"At the end, by dimension: {ranked}."


def test_the_text_has_every_chosen_setting_and_says_where_one_lies_at_an_edge():
    from benchmarks import time_to_quality
    from benchmarks._quality_tables import rows_of

    rows = rows_of(CURVES, time_to_quality.BENCHMARK.shown)
    text = time_to_quality.markdown(recorded({"rows": rows, "curves": CURVES}))
    assert (
        "| irspack iALS++, d = 64 | alpha0 0.03, reg 0.3 (at the edge of its grid: reg) | 12 | 2 | 0.0380 |"
        in text
    )
    assert (
        "| pslrec, preset fast, d = 64 | loss psl-relu, temperature 0.0625 | preset | 1 | 0.0400 |"
        in text
    )
    assert "not counted" in text


def test_the_clock_stands_still_while_a_model_is_evaluated(monkeypatch: pytest.MonkeyPatch):
    from benchmarks import _contestant

    now = [10.0]
    monkeypatch.setattr(_contestant, "STARTED", 10.0)
    monkeypatch.setattr(_contestant.time, "perf_counter", lambda: now[0])

    def evaluate(scorer):
        now[0] += 100.0
        return 0.3, 0.4

    lines: list[str] = []
    clock = _contestant.Clock(evaluate, write=lines.append)
    for seconds in (1.0, 2.0, 4.0):
        now[0] += seconds
        if seconds == 1.0:
            clock.begin()
        else:
            assert clock.mark(lambda: None) == 0.3
    told = [json.loads(line) for line in lines]
    assert told[0] == {"fitting_from": 1.0}
    assert [point["seconds"] for point in told[1:]] == [3.0, 7.0]


@pytest.mark.parametrize("name", ["electronic", "movie", "gowalla"])
def test_without_the_published_data_nothing_is_measured_or_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    from benchmarks import benchmarks

    by_data = {
        module.BENCHMARK.data: module
        for module in benchmarks().values()
        if hasattr(module, "BENCHMARK")
    }
    monkeypatch.setenv("PSLREC_DATA_DIR", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="PSLREC_DATA_DIR"):
        by_data[name].run()
    with pytest.raises(FileNotFoundError, match="PSLREC_DATA_DIR"):
        by_data[name].search(report=lambda _: None)


def test_baselines_have_the_settings_of_the_page_of_accuracy(tmp_path: Path):
    from benchmarks._quality import tuned_baselines

    path = tmp_path / "results.csv"
    path.write_text(
        "data,contestant,chosen\n"
        'one,rp3beta,"{""neighbours"": 50, ""normalize"": true, ""tries"": 12}"\n'
        'one,gf-cf,"{""dimension"": 32, ""low_pass_weight"": 1.0, ""tries"": 11}"\n'
        'one,ials,"{""dimension"": 64, ""tries"": 3}"\n'
        'two,rp3beta,"{""neighbours"": 9, ""tries"": 2}"\n'
    )
    assert tuned_baselines("one", path) == {
        "RP3beta": {
            "kind": "rp3beta",
            "dimension": 0,
            "settings": {"neighbours": 50, "normalize": True},
            "n_tried": 12,
        },
        "GF-CF": {
            "kind": "gf-cf",
            "dimension": 32,
            "settings": {"dimension": 32, "low_pass_weight": 1.0},
            "n_tried": 11,
        },
    }


def test_a_benchmark_without_rivals_has_nothing_to_search(capsys: pytest.CaptureFixture[str]):
    from benchmarks.__main__ import main

    main(["data_layer", "--search"])
    assert "nothing to search" in capsys.readouterr().out
