"""`pslrec compare` as a person types it."""

import json
from pathlib import Path

import pytest

SMALL = (
    "--set",
    "training.epochs=2",
    "--set",
    "training.validate_every=1",
    "--set",
    "backbone.dimension=8",
    "--threads",
    "1",
)
WHO = ("--losses", "bpr,sl", "--baselines", "popularity")


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_compare_prints_who_is_ahead_and_writes_everything(pslrec, log):
    code, out, err = pslrec("compare", log, *WHO, "--tune", 1, "--seeds", 2, *SMALL)
    assert code == 0, err
    assert "tuning bpr:" in err
    assert "tuning sl:" in err
    assert "running the chosen settings:" in err
    assert "trial 5/5: contestant popularity" in err
    found = json.loads(Path("compare-log/comparison.json").read_text())
    best = found["contestants"][0]["name"]
    for one in found["contestants"]:
        assert f"{one['ndcg@20']:.4f}" in out
        if one["name"] != best:
            assert f"{best} against {one['name']}: " in out
    names = {path.name for path in Path("compare-log").iterdir()}
    assert {"comparison.md", "comparison.tex", "comparison.csv", "comparison.html"} <= names
    code, out, _ = pslrec("report", "compare-log", "--out", "page.html")
    assert code == 0
    assert "Mean ranks over users" in Path("page.html").read_text()


def test_compare_with_a_budget_says_that_nothing_is_compared_yet(pslrec, log):
    code, out, _ = pslrec("compare", log, *WHO, "--tune", 1, *SMALL, "--budget", "0s")
    assert code == 0
    assert "nothing is compared yet" in out
    assert not Path("compare-log/comparison.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--losses", "sl"), "at least two contestants, got 1"),
        (("--losses", "sl,ssl"), "unknown loss `ssl`"),
        (("--baselines", "eas"), "did you mean `ease`"),
        (("--metric", "luck"), "`metric` must be one of ndcg@20, recall@20"),
        (("--space", "deep"), "`space` must be one of paper, wide"),
        (("--for", "mse:loss.x=1"), "`--for` must be LOSS:SECTION.KEY=VALUE"),
    ],
    ids=["one", "loss", "baseline", "metric", "space", "for"],
)
def test_compare_explains_what_is_wrong_in_one_sentence(pslrec, log, arguments, message):
    code, _, err = pslrec("compare", log, *arguments, *SMALL)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
