"""`pslrec train --processes` as a person types it, and `kill -9` of a worker in the middle."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command_line import start
from process_workers import run_together

from pslrec.config import RunConfig
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.distributed import Group
from pslrec.experiment import evaluate_run, run

OPTIONS = (
    *("--preset", "fixed", "--loss", "psl-relu", "--backbone", "mf", "--threads", "1"),
    *("--set", "sampling.negatives=catalog", "--set", "sampling.batch_pairs=100"),
    *("--set", "backbone.dimension=8", "--set", "training.checkpoint_seconds=0"),
    *("--epochs", "12", "--seed", "4"),
)


@pytest.fixture
def small_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Processes that read one log keep what they prepare of it.
    monkeypatch.setenv("PSLREC_CACHE_DIR", str(tmp_path / "cache"))
    model = TasteModel(n_topics=4, median_history=9, minimum_history=6)
    path = tmp_path / "log.csv"
    planted_tastes(100, 60, model=model, seed=2).interactions.to_frame().write_csv(path)
    return path


def workers_of(launcher: subprocess.Popen[str]) -> list[int]:
    """The processes that torchrun's agent has started."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text()
    found = []
    for child in map(int, children.split()):
        if b"RANK=" in Path(f"/proc/{child}/environ").read_bytes():
            found.append(child)
    return found


def repeated(group: Group, config: Path, out: Path) -> dict[str, float]:
    """The same run without a kill, evaluated once more by all processes."""
    run(RunConfig.from_toml(config), out=out, group=group)
    # The first process has written what the others read now.
    group.check_same("the run", None)
    found: dict[str, float] = evaluate_run(out, group=group)["test"]
    return found


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds workers in /proc")
def test_a_killed_worker_changes_nothing(small_log: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    launcher = start("train", small_log, *OPTIONS, "--out", out, "--processes", 2)
    while not (out / "checkpoint.safetensors").exists():
        assert launcher.poll() is None, launcher.communicate()[1]
        time.sleep(0.005)
    os.kill(workers_of(launcher)[-1], signal.SIGKILL)
    shown, errors = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, errors
    assert "exitcode: -9" in errors
    # One process prints for both, and the run goes on where the checkpoint was.
    assert shown.count("saved to") == 1
    whole = tmp_path / "whole"
    evaluated = run_together(repeated, 2, tmp_path / "result", out / "config.toml", whole)
    assert evaluated[0] == evaluated[1] == json.loads((out / "metrics.json").read_text())["test"]
    model = (out / "model.safetensors").read_bytes()
    assert model == (whole / "model.safetensors").read_bytes()
