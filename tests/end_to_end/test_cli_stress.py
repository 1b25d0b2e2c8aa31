"""`pslrec stress` as a person types it."""

from pathlib import Path

import polars as pl
import pytest

SMALL = ("--set", "training.epochs=2", "--set", "backbone.dimension=8", "--threads", "1")


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_stress_prints_gains_and_writes_curves(pslrec, log):
    arguments = (
        "--noise",
        "0.1,0.3",
        "--shift",
        "",
        "--seeds",
        "1,2",
        "--for",
        "sl:loss.temperature=0.05",
        *SMALL,
    )
    code, out, err = pslrec("stress", log, *arguments, "--set", "loss.temperature=0.2")
    assert code == 0, err
    assert "trial 12/12" in err
    assert err.count(": read user = ") == 1
    assert "Shift of popularity" not in out
    assert "False negatives" in out
    assert " %" in out
    assert "with one seed" not in out
    runs = pl.read_csv("stress-log/runs.csv")
    assert runs["negatives"].unique().to_list() == ["catalog"]
    assert sorted(runs["seed"].unique()) == [1, 2]
    assert not Path("stress-log/shift.svg").exists()
    assert Path("stress-log/noise.svg").exists()


def test_stress_samples_negatives_where_asked(pslrec, log):
    code, out, err = pslrec(
        "stress",
        log,
        "--losses",
        "bpr,psl-relu",
        "--mode",
        "sampled",
        "--noise",
        "",
        "--shift",
        "0",
        *SMALL,
    )
    assert code == 0, err
    assert "with one seed you cannot tell gains from chance" in out
    assert pl.read_csv("stress-log/runs.csv")["negatives"].to_list() == [1, 1000]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--losses", "sl,ssl"), "unknown loss `ssl`"),
        (("--mode", "exact"), "`--mode` must be one of catalog, sampled"),
        (("--noise", "much"), "`--noise` must be numbers"),
        (("--noise", "2"), "up to 1, got 2.0"),
        (("--shift", "9"), "from 0 to 3, got 9.0"),
        (("--seeds", "1.5"), "`--seeds` must be whole numbers such as 2024,2025, got `1.5`"),
        (
            ("--for", "bpr:loss.temperature=1"),
            "`--for` must be LOSS:SECTION.KEY=VALUE with one of the losses sl, psl-relu, got `bpr:",
        ),
        (("--for", "sl:loss.warmth=1"), "no setting `loss.warmth`"),
    ],
    ids=["loss", "mode", "noise", "probability", "shift", "seeds", "for", "option"],
)
def test_stress_explains_what_is_wrong_in_one_sentence(pslrec, log, arguments, message):
    code, _, err = pslrec("stress", log, *arguments, *SMALL)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
