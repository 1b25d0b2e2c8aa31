"""`kill -9` at any moment, then the same command with --resume: the same end, bit for bit."""

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
import torch

from pslrec.artifacts import read_tensors
from pslrec.data._synthetic import TasteModel, planted_tastes

CHECKPOINT = "checkpoint.safetensors"
UNFINISHED = f".pslrec-*-{CHECKPOINT}"
MORE_KILLS = 4
# Children are forked from a process that has all imports behind it: starting one takes a moment instead of seconds.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pslrec.cli._main", "pslrec.experiment", "torch._dynamo"])


def train(arguments: list[str], errors: str) -> None:
    """What a child does: the command as it is typed."""
    from pslrec.cli import main

    handle = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    sys.argv = ["pslrec", "train", *arguments]
    main()


class Victim:
    """A command that is started again and again in the same directory."""

    def __init__(self, arguments: list[str], out: Path) -> None:
        self.arguments, self.out = [*arguments, "--out", str(out)], out
        self.errors = out.parent / "errors.txt"

    def start(self, *, resume: bool) -> ForkServerProcess:
        arguments = [*self.arguments, *(["--resume"] if resume else [])]
        child = PROCESSES.Process(target=train, args=(arguments, str(self.errors)))
        child.start()
        return child

    def finish(self, *, resume: bool) -> None:
        child = self.start(resume=resume)
        child.join(120)
        assert child.exitcode == 0, self.errors.read_text()

    def kill_in_the_middle(self, *, resume: bool, moment: random.Random) -> bool:
        """Start, kill at a random moment; whether the end had not come before."""
        child = self.start(resume=resume)
        for _ in self._changes(child, moment.randint(0, 12)):
            pass
        if moment.random() < 0.4:
            while child.is_alive() and not any(self.out.glob(UNFINISHED)):
                pass
        else:
            time.sleep(moment.uniform(0.0, 0.05))
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        assert child.exitcode in (0, -signal.SIGKILL), self.errors.read_text()
        return child.exitcode == -signal.SIGKILL

    def _changes(self, child: ForkServerProcess, count: int) -> Iterator[None]:
        """One item for each checkpoint that is written, up to the number asked for."""
        before = self._inode()
        while count and child.is_alive():
            if (now := self._inode()) != before:
                before, count = now, count - 1
                yield
            time.sleep(0.0005)

    def _inode(self) -> int:
        try:
            return (self.out / CHECKPOINT).stat().st_ino
        except FileNotFoundError:
            return 0


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = TasteModel(n_topics=4, median_history=9, minimum_history=6)
    path = tmp_path_factory.mktemp("data") / "log.csv"
    planted_tastes(150, 80, model=model, seed=2).interactions.to_frame().write_csv(path)
    return path


def command(
    log: Path, loss: str, backbone: str, *, epochs: int, negatives: int | str = 20
) -> list[str]:
    settings = {
        "training.epochs": epochs,
        "training.validate_every": 2,
        "training.checkpoint_seconds": 0,
        "sampling.negatives": negatives,
        "sampling.batch_pairs": 100,
        "backbone.dimension": 32,
    }
    given = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    return [
        str(log),
        "--loss",
        loss,
        "--backbone",
        backbone,
        "--threads",
        "1",
        "--seed",
        "4",
        *given,
    ]


def what_is_left(out: Path) -> dict[str, Any]:
    """Everything but times."""
    metrics = json.loads((out / "metrics.json").read_text())
    metrics.pop("seconds_per_epoch")
    for tried in metrics.get("auto", {}).get("tries", []):
        tried.pop("seconds")
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    for line in lines:
        line.pop("seconds")
    others = (
        "config.toml",
        "model.safetensors",
        "seen.safetensors",
        "users.parquet",
        "items.parquet",
        "format",
    )
    files = {name: (out / name).read_bytes() for name in others}
    return {
        "metrics": metrics,
        "log": lines,
        "names": sorted(path.name for path in out.iterdir()),
        **files,
    }


def assert_kills_change_nothing(
    arguments: list[str], directory: Path, n_kills: int, seed: int
) -> None:
    whole = Victim(arguments, directory / "whole")
    whole.finish(resume=False)
    killed = Victim(arguments, directory / "killed")
    moment = random.Random(seed)
    kills = in_writing = 0
    # On a busy machine a kill that was meant for the writing of a checkpoint may come too late.
    while kills < n_kills or (not in_writing and kills < n_kills + MORE_KILLS):
        assert killed.kill_in_the_middle(resume=kills > 0, moment=moment), (
            f"the run ended after {kills} kills"
        )
        kills += 1
        in_writing += any(killed.out.glob(UNFINISHED))
    killed.finish(resume=True)
    assert in_writing > 0, "no kill fell into the writing of a checkpoint"
    assert what_is_left(killed.out) == what_is_left(whole.out)
    ours, theirs = (read_tensors(out / CHECKPOINT)[0] for out in (killed.out, whole.out))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_three_kills_change_nothing(log: Path, tmp_path: Path) -> None:
    assert_kills_change_nothing(command(log, "sl@k", "mf", epochs=6), tmp_path, n_kills=3, seed=1)


def test_three_kills_change_nothing_where_histories_are_divided(log: Path, tmp_path: Path) -> None:
    arguments = command(log, "psl-relu", "history", epochs=10, negatives="catalog")
    assert_kills_change_nothing(arguments, tmp_path, n_kills=3, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "backbone", "negatives"),
    [
        ("psl-relu", "mf", 20),
        ("psl-relu", "mf", "catalog"),
        ("adv-infonce", "mf", 20),
        ("llpauc", "xsimgcl", 20),
        ("sl@k", "lightgcn", 20),
        ("sl@k", "history", 20),
        ("adv-infonce", "history", "catalog"),
    ],
)
def test_twenty_kills_change_nothing(
    log: Path, tmp_path: Path, loss: str, backbone: str, negatives: int | str
) -> None:
    arguments = command(log, loss, backbone, epochs=50, negatives=negatives)
    assert_kills_change_nothing(arguments, tmp_path, n_kills=20, seed=2)
