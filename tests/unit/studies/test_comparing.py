"""A comparison: what is tuned, run and tested, and what is written about it."""

import json
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from pslrec.baselines import BASELINES
from pslrec.config import RunConfig
from pslrec.data._sealing import SealedInteractions
from pslrec.errors import ConfigError, UnknownNameError
from pslrec.evaluation import evaluate
from pslrec.experiment import load_dataset, run
from pslrec.reporting import study_report
from pslrec.studies import ComparisonPlan, TrialEnded, compare_contestants
from pslrec.studies._candidates import Fitted, Trained, with_parts
from pslrec.studies._comparison_files import latex, markdown
from pslrec.studies._statistics import Sample, pairs_of, ranks_of

PLAN = ComparisonPlan(
    losses=("bpr", "psl-relu"), baselines=("ease", "popularity"), n_seeds=3, n_trials=2
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("comparison")


@pytest.fixture(scope="module")
def found(config, directory):
    return compare_contestants(config, PLAN, out=directory)


def by_name(found):
    return {one["name"]: one for one in found["contestants"]}


def test_contestants_have_the_same_trials_and_seeds_where_they_can(found):
    one = by_name(found)
    assert set(one) == {"bpr", "psl-relu", "ease", "popularity"}
    assert [one[name]["n_trials"] for name in ("bpr", "psl-relu", "ease", "popularity")] == [
        2,
        2,
        2,
        0,
    ]
    for loss in ("bpr", "psl-relu"):
        assert list(one[loss]["ndcg@20_by_seed"]) == ["2024", "2025", "2026"]
        assert one[loss]["ndcg@20_deviation"] > 0
    # EASE draws nothing at random, so there is nothing to repeat.
    assert list(one["ease"]["ndcg@20_by_seed"]) == ["2024"]
    assert one["ease"]["ndcg@20_deviation"] is None
    values = [each["ndcg@20"] for each in found["contestants"]]
    assert values == sorted(values, reverse=True)


def test_values_are_those_of_runs_with_the_chosen_settings(found, config):
    one = by_name(found)["bpr"]
    settings = {**one["settings"], "training.seed": 2025}
    alone = run(RunConfig.from_settings(settings, base=with_parts(config, loss="bpr")))
    assert one["ndcg@20_by_seed"]["2025"] == alone.metrics["test"]["ndcg@20"]
    ease = by_name(found)["ease"]
    dataset = load_dataset(config.resolved())
    fitted = BASELINES["ease"](**ease["settings"]).fit(dataset.train)
    result = evaluate(fitted, dataset, k=[20], protocol=config.evaluation.protocol)
    assert ease["ndcg@20"] == pytest.approx(result["ndcg@20"], rel=1e-12)


def test_settings_are_the_best_of_their_trials_on_validation(found, directory):
    for name in ("bpr", "psl-relu", "ease"):
        table = pl.read_csv(directory / "tuning" / name / "results.csv")
        best = table.sort("validation_ndcg@20", descending=True).row(0, named=True)
        for setting, value in by_name(found)[name]["settings"].items():
            assert best[setting] == value
        assert not [column for column in table.columns if "test" in column]


def test_the_test_part_stays_sealed_until_everything_is_chosen(config, tmp_path, monkeypatch):
    happened = []
    unseal = SealedInteractions.unseal

    def noted(self, reason):
        happened.append("opened")
        return unseal(self, reason)

    def listener(event):
        if isinstance(event, TrialEnded) and "contestant" not in event.trial.settings:
            happened.append("tried")

    monkeypatch.setattr(SealedInteractions, "unseal", noted)
    plan = ComparisonPlan(losses=("bpr",), baselines=("ease",), n_seeds=1, n_trials=2)
    compare_contestants(config, plan, out=tmp_path, listener=listener)
    assert happened == ["tried"] * 4 + ["opened"] * 2


def test_a_finished_comparison_is_read_and_a_new_contestant_is_added(found, config, directory):
    events = []
    again = compare_contestants(config, PLAN, out=directory, listener=events.append)
    assert events == []
    assert again == found
    more = ComparisonPlan(
        losses=("bpr", "psl-relu", "sl"), baselines=("ease",), n_seeds=3, n_trials=2
    )
    wider = compare_contestants(config, more, out=directory, listener=events.append)
    ended = [event for event in events if isinstance(event, TrialEnded)]
    assert len(ended) == 2 + 3
    assert by_name(wider)["bpr"]["settings"] == by_name(found)["bpr"]["settings"]


def test_a_budget_leaves_a_comparison_to_be_resumed(config, tmp_path):
    plan = ComparisonPlan(losses=("bpr", "sl"), n_seeds=1, n_trials=0)
    assert compare_contestants(config, plan, out=tmp_path, budget_seconds=0) is None
    assert not (tmp_path / "comparison.json").exists()
    assert len(compare_contestants(config, plan, out=tmp_path)["contestants"]) == 2


def test_untuned_contestants_keep_their_settings_and_those_of_one_loss_are_its_own(
    config, tmp_path
):
    options = {"psl-relu": {"loss.temperature": 0.3}}
    plan = ComparisonPlan(losses=("sl", "psl-relu"), n_seeds=1, n_trials=0, options=options)
    sl, psl = plan.contestants(config)
    assert (sl.config.loss.name, psl.config.loss.name) == ("sl", "psl-relu")
    assert psl.config.loss.options()["temperature"] == 0.3
    assert sl.config.loss.options().get("temperature") != 0.3


def test_a_refit_is_a_refit_for_baselines_too(config, tmp_path):
    refit = RunConfig.from_settings({"training.refit": True}, base=config)
    plan = ComparisonPlan(losses=("bpr",), baselines=("ease",), n_seeds=1, n_trials=0)
    found = compare_contestants(refit, plan, out=tmp_path)
    dataset = load_dataset(config.resolved())
    apart = BASELINES["ease"]().fit(dataset.train)
    value = evaluate(apart, dataset, k=[20], protocol=config.evaluation.protocol)["ndcg@20"]
    assert by_name(found)["ease"]["ndcg@20"] != pytest.approx(value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"losses": ("sl",)}, ConfigError, "at least two contestants, got 1"),
        ({"losses": ("sl", "ssl")}, UnknownNameError, "ssl"),
        ({"losses": ("sl", "bpr"), "metric": "luck"}, ConfigError, "`metric` must be one of"),
        ({"losses": ("sl", "bpr"), "space": "deep"}, ConfigError, "`space` must be one of"),
        ({"losses": ("sl", "bpr"), "n_seeds": 0}, ConfigError, "`n_seeds` must be at least 1"),
    ],
)
def test_plans_that_make_no_sense_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        ComparisonPlan(**options)


def test_without_validation_nothing_is_compared(config, tmp_path):
    without = RunConfig.from_settings({"data.validation": "none"}, base=config)
    with pytest.raises(ConfigError, match="nothing is chosen on the test part"):
        compare_contestants(without, PLAN, out=tmp_path)


def test_names_tell_contestants_apart(config):
    plan = ComparisonPlan(losses=("sl",), backbones=("mf", "lightgcn"), baselines=("ease",))
    names = [contestant.name for contestant in plan.contestants(config)]
    assert names == ["sl", "sl / lightgcn", "ease"]
    assert isinstance(plan.contestants(config)[0], Trained)
    assert isinstance(plan.contestants(config)[2], Fitted)


def samples():
    draws = np.random.default_rng(0)
    users = draws.random(200)
    return [
        Sample("a", {1: 0.60, 2: 0.62, 3: 0.61}, users + np.tile([0.05, 0.15], 100)),
        Sample("b", {1: 0.50, 2: 0.51, 3: 0.52}, users),
        Sample("c", {1: 0.505}, users + np.tile([0.01, -0.01], 100)),
    ]


def test_pairs_are_tested_over_users_and_seeds_as_by_hand():
    a, b, c = samples()
    rows = {(row["first"], row["second"]): row for row in pairs_of([a, b, c])}
    assert len(rows) == 3
    ab = rows["a", "b"]
    assert ab["difference"] == pytest.approx(0.1)
    assert ab["seeds_p"] == pytest.approx(
        stats.ttest_rel([0.60, 0.62, 0.61], [0.50, 0.51, 0.52])[1]
    )
    differences = np.array([0.10, 0.11, 0.09])
    assert ab["seeds_effect"] == pytest.approx(differences.mean() / differences.std(ddof=1))
    assert ab["verdict"] == "better"
    # What does not depend on the seed is the same for each of them.
    bc = rows["b", "c"]
    assert bc["n_seeds"] == 3
    assert bc["seeds_p"] == pytest.approx(stats.ttest_1samp([-0.005, 0.005, 0.015], 0)[1])
    assert bc["users_p"] == pytest.approx(stats.wilcoxon(b.per_user - c.per_user).pvalue)
    assert bc["verdict"] == "not told apart"
    # Holm: the smallest of three is multiplied by three.
    smallest = min(rows.values(), key=lambda row: row["seeds_p"])
    assert smallest["seeds_p_holm"] == pytest.approx(3 * smallest["seeds_p"])


def test_a_loser_is_worse_and_one_seed_tests_users_alone():
    a, b, _ = samples()
    [row] = pairs_of([b, a])
    assert row["verdict"] == "worse"
    alone = [Sample("x", {1: 0.5}, a.per_user), Sample("y", {1: 0.4}, b.per_user)]
    [row] = pairs_of(alone)
    assert row["seeds_p"] is None
    assert row["n_seeds"] == 0
    assert row["verdict"] == "better"


def test_ranks_and_their_critical_difference_are_those_of_the_formula():
    ranks = ranks_of(samples())
    assert list(ranks.mean) == ["a", "c", "b"] or list(ranks.mean) == ["a", "b", "c"]
    assert ranks.mean["a"] == 1.0
    assert ranks.mean["b"] == ranks.mean["c"] == 2.5
    # Demsar's table has 2.343 for three contestants at 0.05.
    assert ranks.critical == pytest.approx(2.343 * math.sqrt(3 * 4 / (6 * 200)), rel=1e-3)
    assert [sorted(group) for group in ranks.groups] == [["b", "c"]]
    assert ranks.p_value < 1e-6


def test_groups_overlap_and_those_inside_others_are_left_out():
    values = np.zeros((4, 60))
    # Mean ranks 1.5, 2.2, 2.8, 3.5, about: neighbours cannot be told apart, ends can.
    rng = np.random.default_rng(1)
    for place in range(4):
        values[place] = rng.normal(-0.35 * place, 1.0, 60)
    found = ranks_of([Sample(f"m{n}", {1: 0.0}, row) for n, row in enumerate(values)])
    for group in found.groups:
        reach = found.mean[group[-1]] - found.mean[group[0]]
        assert reach < found.critical
    for first in found.groups:
        for second in found.groups:
            assert first is second or not set(first) <= set(second)


def test_files_hold_the_same_numbers(found, directory):
    assert json.loads((directory / "comparison.json").read_text())["metric"] == "ndcg@20"
    table = pl.read_csv(directory / "comparison.csv")
    assert table.height >= 4
    page = markdown(found)
    best = found["contestants"][0]
    assert f"| {best['name']} | {best['ndcg@20']:.4f}" in page
    assert page.count("\n| ") == 2 + 2 + 4 + 6
    tex = latex(found)
    assert rf"\mathbf{{{best['ndcg@20']:.4f}}}" in tex
    assert tex.count(r"\\") == 5
    for name in ("critical-difference.svg", "quality-time.svg", "comparison.html", "pairs.csv"):
        assert (directory / name).stat().st_size > 200


def test_latex_is_escaped():
    found = {"contestants": [], "metric": "ndcg@20"}
    one = {"name": "my_loss & 5%", "ndcg@20": 0.1, "recall@20": 0.2, "rank": 1.0, "seconds": 3.0}
    one |= {"ndcg@20_deviation": None, "recall@20_deviation": None}
    assert r"my\_loss \& 5\%" in latex({**found, "contestants": [one]})


def test_reports_of_studies_show_what_was_found(config, directory, tmp_path):
    found = compare_contestants(config, PLAN, out=directory)
    page = study_report(directory, tmp_path / "comparison.html").read_text()
    assert "Mean ranks over users" in page
    assert "Quality against time" in page
    for one in found["contestants"]:
        assert one["name"] in page
    page = study_report(directory / "tuning" / "bpr", tmp_path / "tuning.html").read_text()
    assert "over training.learning_rate" in page
