"""Reports of runs: what is in them, and what they do with runs that lack something."""

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from pslrec.artifacts import ArtifactError
from pslrec.config import RunConfig
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.evaluation import EmbeddingScorer, Evaluated
from pslrec.evaluation._task import RankingTask
from pslrec.experiment import run
from pslrec.reporting import run_report
from pslrec.reporting._comparison import holm
from pslrec.reporting._distributions import group_edges, group_names
from pslrec.reporting._measures import hits
from pslrec.reporting._noise import improvement_area
from pslrec.reporting._results import Gain
from pslrec.rows import Rows

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """Checks that elements are closed in order, and collects what the tests ask for."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.titles: list[str] = []
        self.charts: list[dict[str, str | None]] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [found["id"]] if found.get("id") else []
        self.links += [str(value) for name, value in attrs if name in {"href", "src"}]
        if tag == "svg" and found.get("role") == "img":
            self.charts.append(found)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.titles.append(data)


def report(runs: list[Path], tmp_path: Path) -> str:
    return run_report(runs, tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two small runs on the same data, with planted false negatives."""
    directory = tmp_path_factory.mktemp("trained")
    model = TasteModel(n_topics=4, median_history=9, minimum_history=6)
    planted_tastes(80, 60, model=model, seed=2).interactions.to_frame().write_csv(
        directory / "log.csv"
    )
    paths = []
    for loss in ("sl", "psl-relu"):
        settings = {
            "data.source": str(directory / "log.csv"),
            "loss.name": loss,
            "training.epochs": 2,
            "training.validate_every": 1,
        }
        settings |= {
            "sampling.negatives": 5,
            "backbone.dimension": 4,
            "sampling.noise.probability": 0.2,
        }
        run(RunConfig.from_settings(settings), out=directory / loss)
        paths.append(directory / loss)
    return paths


def test_a_run_without_a_test_part_shows_its_validation_values(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    planted_tastes(80, 60, seed=2).interactions.to_frame().write_csv(log)
    settings = {
        "data.source": str(log),
        "data.split": "none",
        "training.epochs": 2,
        "backbone.dimension": 4,
        "loss.temperature": 1 / 12,
    }
    result = run(RunConfig.from_settings(settings), out=tmp_path / "run")
    page = report([tmp_path / "run"], tmp_path)
    value = result.metrics["validation"]["ndcg@20"]
    assert value > 0
    assert f"{value:.4f}" in page
    assert "on validation; there is no test part" in page
    assert "Validation set, protocol strict" in page
    assert "Test set" not in page
    assert "0.0000" not in page
    assert "temperature 0.08333<" in page
    assert "There is nothing to draw" not in page


def test_a_shifted_split_is_a_warning_with_its_table(make_run, tmp_path):
    measure = {"held_out": 0.041, "random": 0.049, "difference": -0.163, "effect": -0.2}
    measure |= {"adjusted_p": 0.0004}
    found = {"verdict": "shifted", "sentence": "test pairs are less like their users' histories"}
    found |= {"measures": {"affinity": measure}}
    paths = []
    for name in ("one", "two"):
        path = make_run(name)
        metrics = json.loads((path / "metrics.json").read_text())
        metrics["exchangeability"] = {"test": found}
        (path / "metrics.json").write_text(json.dumps(metrics))
        paths.append(path)
    page = report(paths, tmp_path)
    assert "Exchangeability" in Outline(page).titles
    # Both runs are on the same data, whose split is shown once.
    assert page.count('<p class="warning">Test pairs are less like their users') == 1
    for text in ("0.0410", "0.0490", "-16.3 %", "&lt; 0.001"):
        assert text in page
    # A run of an earlier version does not have it.
    assert "Exchangeability" not in Outline(report([make_run("old")], tmp_path)).titles


def test_report_of_one_run_has_every_part(trained, tmp_path):
    page = report(trained[:1], tmp_path)
    outline = Outline(page)
    expected = [
        "Summary",
        "Metrics",
        "Learning curves",
        "Exchangeability",
        "Users and items",
        "Scores",
        "Surrogates and weights",
    ]
    assert outline.titles == [*expected, "Configuration and environment"]
    assert len(outline.charts) == 8
    for kind in (
        "negatives",
        "positives (training)",
        "false negatives (test)",
        "false negatives (planted)",
    ):
        assert kind in page
    assert len(page) < 1_000_000


def test_a_report_says_what_automatic_negatives_came_to(trained, tmp_path):
    config = RunConfig.from_toml(trained[0] / "config.toml")
    run(
        RunConfig.from_settings({"sampling.negatives": "auto", "training.epochs": 1}, config),
        out=tmp_path / "run",
    )
    assert '<dt>Negatives</dt><dd>auto</dd><dd class="hint">all items</dd>' in report(
        [tmp_path / "run"], tmp_path
    )


def test_charts_have_text_alternatives_and_data(trained, tmp_path):
    page = report(trained, tmp_path)
    outline = Outline(page)
    for chart in outline.charts:
        names = str(chart["aria-labelledby"]).split()
        assert len(names) == 2
        assert set(names) <= set(outline.ids)
    assert len(outline.ids) == len(set(outline.ids))
    assert page.count("<summary>Data</summary>") == len(outline.charts)


def test_page_asks_for_nothing_from_elsewhere(trained, tmp_path):
    page = report(trained, tmp_path)
    assert all(link.startswith(("#", "data:")) for link in Outline(page).links)
    assert not re.search(r"https?://|url\(|@import", page)
    assert "default-src 'none'" in page


def test_comparison_tells_significance_and_differences(trained, tmp_path):
    page = report(trained, tmp_path)
    assert "Each run minus sl, over the same" in page
    assert "Settings that differ" in page
    assert re.search(r'class="differs">psl-relu<', page)
    assert "paired t-test" in page


def test_same_run_twice_is_one_run(trained, tmp_path):
    assert "<h1>Run sl</h1>" in report([trained[0], trained[0]], tmp_path)


def test_report_goes_without_data_that_are_gone(make_run, tmp_path):
    page = report([make_run("a"), make_run("b", ndcg=0.3, loss="psl-relu")], tmp_path)
    assert "Per-user values and scores are missing for a" in page
    assert "b ranks best, with an NDCG@20 of 0.3000, 50.0 % above a" in page
    assert "Scores" not in Outline(page).titles


ODD = {
    "one epoch": {"losses": (2.0,), "validations": (0.1,)},
    "no validation": {"validations": (None, None, None)},
    "no epoch": {"losses": (), "ndcg": None},
    "not finished": {"ndcg": None},
    "loss not a number": {"losses": (1.0, math.nan, math.inf)},
    "every loss not a number": {"losses": (math.nan, math.nan)},
    "metric not a number": {"ndcg": math.nan},
    "metric zero": {"ndcg": 0.0},
    "two thousand epochs": {"losses": tuple([1.0] * 2_000), "validations": tuple([0.1] * 2_000)},
}


@pytest.mark.parametrize("name", ODD)
def test_odd_runs_are_reported_alone_and_beside_others(name, make_run, tmp_path):
    odd, other = make_run("odd", **ODD[name]), make_run("other")
    for runs in ([odd], [odd, other], [other, odd]):
        page = report(runs, tmp_path)
        assert "Summary" in Outline(page).titles
        assert len(page) < 300_000
        assert '"nan' not in page
        assert "Mnan" not in page


def test_a_run_that_is_not_finished_or_diverged_is_said_so(make_run, tmp_path):
    assert "odd is not finished" in report([make_run("odd", ndcg=None)], tmp_path)
    page = report([make_run("bad", losses=(1.0, math.nan))], tmp_path)
    assert "The loss was not always a finite number in: bad." in page


def test_log_cut_short_and_missing_files_are_no_error(make_run, tmp_path):
    path = make_run("a")
    (path / "environment.json").unlink()
    with (path / "log.jsonl").open("a") as log:
        log.write('{"epoch": 4, "lo')
    assert "of 3 trained" in report([path], tmp_path)


def test_text_of_users_is_escaped(make_run, tmp_path):
    nasty = "<img src=x onerror=alert(1)>"
    page = report([make_run(nasty, source=nasty), make_run("b")], tmp_path)
    assert nasty not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    Outline(page)


def test_many_runs_stay_a_small_file(make_run, tmp_path):
    epochs = 100
    curve = tuple(1.0 / epoch for epoch in range(1, epochs + 1))
    runs = [
        make_run(f"run-{seed}", losses=curve, validations=curve, seed=seed) for seed in range(20)
    ]
    page = report(runs, tmp_path)
    assert len(page) < 1_000_000
    assert "Runs that differ in the training seed only" in page


def test_noise_curves_show_the_gain_of_psl(make_run, tmp_path):
    values = {"sl": {0.1: 0.2, 0.5: 0.1}, "psl-relu": {0.1: 0.22, 0.5: 0.15}}
    runs = [
        make_run(f"{loss}-{p}", ndcg=value, loss=loss, noise=p)
        for loss, curve in values.items()
        for p, value in curve.items()
    ]
    page = report(runs, tmp_path)
    assert "Noise" in Outline(page).titles
    assert "psl-relu over sl: +10.0 % at p = 0.1, +50.0 % at p = 0.5" in page


def test_improvement_takes_the_best_psl_where_both_have_values():
    curves = {
        "SL": [(0.1, 1.0), (0.5, 0.5)],
        "PSL-tanh": [(0.1, 1.1), (0.3, 9.0), (0.5, 0.6)],
        "BPR": [(0.1, 5.0)],
    }
    gain = Gain(["PSL-tanh"], "SL")
    area = improvement_area(curves, list(curves), gain)
    assert area is not None
    assert area.upper == [(0.1, 1.1), (0.5, 0.6)]
    assert improvement_area({"BPR": [(0.1, 1.0)]}, ["BPR"], gain) is None


def test_runs_on_different_data_are_not_compared(make_run, tmp_path):
    page = report([make_run("a", source="one"), make_run("b", source="two")], tmp_path)
    assert "evaluated on different data; their metrics are not comparable" in page
    assert "ranks best" not in page


def test_report_refuses_what_is_no_run_and_what_can_not_be_written(make_run, tmp_path):
    with pytest.raises(ArtifactError, match="is not a run directory"):
        run_report([tmp_path], tmp_path / "r.html")
    with pytest.raises(ArtifactError, match="got the directory"):
        run_report([make_run("a")], tmp_path)
    broken = make_run("broken")
    (broken / "metrics.json").write_text("{")
    with pytest.raises(ArtifactError, match="is not JSON"):
        run_report([broken], tmp_path / "r.html")
    (broken / "metrics.json").write_text(json.dumps([1]))
    with pytest.raises(ArtifactError, match="must hold a JSON object"):
        run_report([broken], tmp_path / "r.html")


def test_hits_are_the_relevant_items_of_the_list():
    import torch

    scorer = EmbeddingScorer(torch.eye(2), torch.tensor([[3.0, 0.0], [2.0, 1.0], [1.0, 2.0]]))
    seen = Rows(np.array([0, 1, 1]), np.array([0], dtype=np.int32))
    relevant = Rows(np.array([0, 2, 3]), np.array([1, 2, 0], dtype=np.int32))
    found, items = hits(
        scorer,
        RankingTask(np.arange(2), (seen,), relevant, np.array([5, 6, 7]), Evaluated(2, 2, 2, 2)),
        k=1,
    )
    assert found.tolist() == [True, False, False]
    assert items.tolist() == [1, 2, 0]


def test_groups_cover_all_values_even_when_they_repeat():
    assert group_names(group_edges(np.array([3, 3, 3, 3]))) == ["3+"]
    assert group_names(group_edges(np.array([1, 1, 1, 1, 1, 1, 1, 1, 5, 9]))) == ["1-4", "5+"]
    assert len(group_edges(np.zeros(0))) == 0


def test_holm_never_lowers_a_value_and_keeps_the_order():
    corrected = holm([0.04, 0.001, 0.5])
    assert corrected == pytest.approx([0.08, 0.003, 0.5])
