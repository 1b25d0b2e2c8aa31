"""A run on a log that is prepared out of core is the run on the same log in memory, to the bit."""

import json
from pathlib import Path

import pytest
from command_line import Command

from pslrec.data import planted_tastes


@pytest.mark.parametrize("backbone", ["mf", "history"])
def test_the_same_run_as_in_memory(
    pslrec: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backbone: str
) -> None:
    monkeypatch.setenv("PSLREC_CACHE_DIR", str(tmp_path / "cache"))
    log = planted_tastes(150, 80, seed=2).interactions.to_frame()
    (tmp_path / "log").mkdir()
    log[:1500].write_parquet(tmp_path / "log" / "a.parquet")
    log[1500:].write_parquet(tmp_path / "log" / "b.parquet")
    metrics = []
    for choice in ("on", "off"):
        options = ["--backbone", backbone, "--epochs", "2", "--dimension", "8", "--k-core", "3"]
        options += ["--set", f"data.out_of_core={choice}", "--set", "sampling.negatives=shared:40"]
        options += ["--out", str(tmp_path / choice), "--json"]
        code, out, err = pslrec("train", str(tmp_path / "log"), *options)
        assert code == 0, err
        found = json.loads(out)
        metrics.append((found["test"], found["validation"], found["best_epoch"]))
    assert metrics[0] == metrics[1]
    models = [(tmp_path / choice / "model.safetensors").read_bytes() for choice in ("on", "off")]
    assert models[0] == models[1]
    code, out, err = pslrec("data", "cache")
    assert code == 0, err
    assert "log" in out
    code, out, err = pslrec("data", "cache", "--clean")
    assert "removed 1 prepared data sets" in out
    assert pslrec("data", "cache")[1].strip() == "no prepared data sets are kept"


def test_it_is_refused_where_it_has_no_effect(pslrec: Command) -> None:
    code, _, err = pslrec("train", "synthetic", "--set", "data.out_of_core=on")
    assert code == 2
    assert "`data.out_of_core` has no effect on synthetic" in err
