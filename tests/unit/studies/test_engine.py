"""The engine: claims, kills, budgets, failures, workers."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

from pslrec.config import RunConfig
from pslrec.errors import ConfigError, DataError
from pslrec.experiment import run
from pslrec.files import read_tensors
from pslrec.studies import (
    PER_USER,
    Cell,
    Study,
    TrialEnded,
    TrialStarted,
    run_cell,
    run_cells,
    train_cell,
)
from pslrec.training import EpochFinished, TrainingDivergedError, TrainingInterrupted


def run_config(config, seed, **settings):
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return RunConfig.from_settings({"training.seed": seed, **named}, base=config).resolved()


def seed_cells(config, seeds, **settings):
    cells = []
    for seed in seeds:
        cells.append(Cell(f"seed-{seed}", {"seed": seed}, run_config(config, seed, **settings)))
    return cells


def answer(attempt):
    return {"validation": {"ndcg@20": attempt.cell.task}}


def numbers(n):
    return [Cell(f"n{value}", {"n": value}, float(value)) for value in range(n)]


def test_a_list_of_runs_gives_what_the_runs_alone_give(config, tmp_path):
    study = Study(tmp_path, kind="seeds")
    trials = run_cells(study, seed_cells(config, [1, 2]), run_cell)
    for trial, seed in zip(trials, (1, 2), strict=True):
        alone = run(run_config(config, seed))
        assert trial.found["test"] == alone.metrics["test"]
        assert trial.value == alone.metrics["validation"]["ndcg@20"]
        users, _ = read_tensors(trial.directory / PER_USER)
        assert users["ndcg@20"].mean().item() == pytest.approx(alone.metrics["test"]["ndcg@20"])
    table = pl.read_csv(tmp_path / "results.csv")
    assert table["seed"].to_list() == [1, 2]
    assert table["test_ndcg@20"].to_list() == [trial.found["test"]["ndcg@20"] for trial in trials]
    written = json.loads((tmp_path / "results.json").read_text())
    assert [trial["found"]["test"] for trial in written["trials"]] == [
        trial.found["test"] for trial in trials
    ]


def test_what_is_made_is_not_made_again_and_other_cells_are_left_alone(tmp_path):
    study = Study(tmp_path, kind="numbers")
    made = []

    def work(attempt):
        made.append(attempt.cell.key)
        return answer(attempt)

    run_cells(study, numbers(3), work)
    # Opened anew, in another order, with one cell that is new.
    run_cells(Study(tmp_path, kind="numbers"), list(reversed(numbers(4))), work)
    assert made == ["n0", "n1", "n2", "n3"]
    study.add([Cell("later", {})])
    assert [trial.key for trial in run_cells(study, numbers(4), work)] == ["n0", "n1", "n2", "n3"]
    assert made == ["n0", "n1", "n2", "n3"]
    assert study.trials()[-1].state == "waiting"


def test_a_study_refuses_to_be_another_one(tmp_path):
    Study(tmp_path, kind="tuning", asked={"data.source": "a", "space": [1, 2]})
    Study(tmp_path, kind="tuning", asked={"data.source": "a", "space": (1, 2)})
    with pytest.raises(ConfigError, match=r"`data.source` = 'a', now it is 'b'"):
        Study(tmp_path, kind="tuning", asked={"data.source": "b", "space": [1, 2]})
    with pytest.raises(ConfigError, match="`kind` = 'tuning'"):
        Study(tmp_path, kind="stress", asked={"data.source": "a", "space": [1, 2]})
    with pytest.raises(ConfigError, match="`storage` = 'journal'"):
        Study(tmp_path, kind="tuning", storage=f"sqlite:///{tmp_path}/books.db")


def test_a_storage_that_cannot_be_reached_is_named_without_its_password(tmp_path):
    with pytest.raises(ConfigError, match="can be reached") as caught:
        Study(tmp_path, kind="x", storage="postgresql://me:secret@127.0.0.1:1/none")
    assert "secret" not in str(caught.value).partition(":")[0]
    assert "secret" not in (tmp_path / "study.json").read_text()


def test_events_count_and_estimate(tmp_path):
    events = []
    run_cells(Study(tmp_path, kind="numbers"), numbers(3), answer, listener=events.append)
    ended = [event for event in events if isinstance(event, TrialEnded)]
    started = [event for event in events if isinstance(event, TrialStarted)]
    assert [event.n_done for event in started] == [0, 1, 2]
    assert [(event.n_done, event.n_trials, event.best) for event in ended] == [
        (1, 3, 0.0),
        (2, 3, 1.0),
        (3, 3, 2.0),
    ]
    assert ended[0].seconds_left > 0
    assert ended[2].seconds_left == 0


def test_failures_for_good_stay_and_others_are_tried_again(tmp_path):
    study = Study(tmp_path, kind="numbers")
    attempts = []

    def work(attempt):
        attempts.append(attempt.cell.key)
        if attempt.cell.key == "n0":
            raise TrainingDivergedError("the loss is NaN")
        if attempt.cell.key == "n1":
            raise DataError("no such file")
        return answer(attempt)

    trials = run_cells(study, numbers(3), work)
    assert [trial.state for trial in trials] == ["failed", "paused", "finished"]
    assert [trial.reason for trial in trials] == ["the loss is NaN", "no such file", ""]
    run_cells(study, numbers(3), work)
    assert attempts == ["n0", "n1", "n2", "n1"]
    trials = run_cells(study, numbers(3), answer)
    assert [trial.state for trial in trials] == ["failed", "finished", "finished"]
    assert trials[1].reason == ""


def test_budget_pauses_a_trial_and_the_next_call_ends_it_to_the_last_bit(config, tmp_path):
    whole = run(run_config(config, 1, training__epochs=6))
    now = [0.0]

    def stop_soon(event):
        if isinstance(event, EpochFinished) and event.epoch == 2:
            time.sleep(now[0])

    cells = seed_cells(config, [1], training__epochs=6)
    study = Study(tmp_path, kind="seeds")
    # Long enough to begin, and over within the second epoch.
    now[0] = 5.0
    [trial] = run_cells(study, cells, train_cell, budget_seconds=4.0, listener=stop_soon)
    assert trial.state == "paused"
    assert trial.found["trained_epochs"] == 2
    assert sorted(trial.curve) == [1, 2]
    [trial] = run_cells(study, cells, train_cell)
    assert trial.state == "finished"
    assert trial.found["validation"] == whole.metrics["validation"]
    assert sorted(trial.curve) == [1, 2, 3, 4, 5, 6]


def test_an_interrupted_trial_is_left_and_resumed(config, tmp_path):
    whole = run(run_config(config, 1))

    def interrupt(event):
        if isinstance(event, EpochFinished) and event.epoch == 2:
            os.kill(os.getpid(), signal.SIGINT)

    study = Study(tmp_path, kind="seeds")
    cells = seed_cells(config, [1, 2])
    with pytest.raises(TrainingInterrupted):
        run_cells(study, cells, run_cell, listener=interrupt)
    assert [trial.state for trial in study.trials()] == ["paused", "waiting"]
    trials = run_cells(study, cells, run_cell)
    assert trials[0].found["test"] == whole.metrics["test"]


def test_threads_share_the_cells(tmp_path, storage):
    made = []

    def work(attempt):
        made.append(attempt.cell.key)
        time.sleep(0.05)
        return answer(attempt)

    with ThreadPoolExecutor(3) as pool:
        calls = []
        for _ in range(3):
            study = Study(tmp_path, kind="numbers", storage=storage)
            calls.append(pool.submit(run_cells, study, numbers(8), work))
        results = [call.result(timeout=120) for call in calls]
    assert sorted(made) == [f"n{number}" for number in range(8)]
    for trials in results:
        assert {trial.state for trial in trials} == {"finished"}


def test_a_line_that_a_killed_process_left_unfinished_is_dropped(tmp_path):
    run_cells(Study(tmp_path, kind="numbers"), numbers(2), answer)
    with (tmp_path / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"op_code":4,"worker')
    trials = run_cells(Study(tmp_path, kind="numbers"), numbers(3), answer)
    assert [trial.state for trial in trials] == ["finished"] * 3


PROGRAM = """
import sys
import time
from pathlib import Path
import torch
from pslrec.config import RunConfig
from pslrec.studies import Cell, Study, TrialEnded, TrialStarted, run_cell, run_cells
from pslrec.training import EpochFinished

torch.set_num_threads(1)
config, directory, storage, hangs_at, waits_for = sys.argv[1:]
base = RunConfig.from_toml(Path(config))
cells = []
for seed in range(6):
    task = RunConfig.from_settings({"training.seed": seed}, base=base).resolved()
    cells.append(Cell(f"seed-{seed}", {"seed": seed}, task))
key = ""

def tell(event):
    global key
    if isinstance(event, TrialStarted):
        key = event.cell.key
    elif isinstance(event, TrialEnded):
        print("made", event.trial.key, flush=True)
    elif isinstance(event, EpochFinished):
        line = f"epoch {event.epoch} of {key}"
        print(line, flush=True)
        if line == hangs_at:
            time.sleep(600)

while waits_for and not Path(waits_for).exists():
    time.sleep(0.02)
study = Study(Path(directory), kind="seeds", storage=storage or None)
run_cells(study, cells, run_cell, listener=tell)
"""


# Machines with much else to do take minutes to import torch.
PATIENCE = 400


class Program:
    """A process that works on the study; it writes into a file, which a kill cannot take away."""

    def __init__(self, tmp_path, name, storage, hangs_at="", waits_for=""):
        self.output = tmp_path / name
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "base.toml")]
        command += [str(tmp_path / "study"), storage or "", hangs_at, str(waits_for)]
        with self.output.open("w") as file:
            self.process = subprocess.Popen(command, stdout=file)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.process.kill()
        self.process.wait()

    def lines(self):
        return self.output.read_text().splitlines()

    def wait_for(self, line):
        deadline = time.monotonic() + PATIENCE
        while line not in self.lines():
            assert self.process.poll() is None, f"ended without `{line}`: {self.lines()}"
            assert time.monotonic() < deadline, f"no `{line}` in {PATIENCE} s: {self.lines()}"
            time.sleep(0.02)


def test_a_process_killed_in_the_middle_of_two_loses_and_repeats_nothing(config, tmp_path, storage):
    # By default there are 30 seconds between checkpoints; these runs take less.
    saving = RunConfig.from_settings({"training.checkpoint_seconds": 0}, base=config)
    (tmp_path / "base.toml").write_text(saving.to_toml())
    with (
        Program(tmp_path, "victim", storage, hangs_at="epoch 2 of seed-1") as victim,
        Program(tmp_path, "survivor", storage, waits_for=tmp_path / "begin") as survivor,
    ):
        victim.wait_for("epoch 2 of seed-1")
        # It hangs in the middle of its second run while the other one takes what is left.
        (tmp_path / "begin").touch()
        survivor.wait_for("made seed-3")
        victim.process.kill()
        assert victim.process.wait(timeout=PATIENCE) == -signal.SIGKILL
        assert survivor.process.wait(timeout=PATIENCE) == 0
    made = [line for line in victim.lines() if line.startswith("made")]
    assert made == ["made seed-0"]
    made = [line for line in survivor.lines() if line.startswith("made")]
    assert sorted(made) == [f"made seed-{seed}" for seed in range(1, 6)]
    # What the victim had trained stays trained: at most the epoch it was in is trained again.
    again = [line for line in survivor.lines() if line.endswith("of seed-1")]
    assert again in (["epoch 2 of seed-1", "epoch 3 of seed-1"], ["epoch 3 of seed-1"])
    trials = Study(tmp_path / "study", kind="seeds", storage=storage).trials()
    assert [(trial.key, trial.state) for trial in trials] == [
        (f"seed-{seed}", "finished") for seed in range(6)
    ]
    for trial in trials:
        alone = run(run_config(config, trial.settings["seed"]))
        assert trial.found["test"] == alone.metrics["test"]


@pytest.mark.slow
def test_workers_share_the_cells_and_their_ends_are_told(config, tmp_path):
    events = []
    study = Study(tmp_path, kind="seeds")
    trials = run_cells(
        study, seed_cells(config, range(6)), run_cell, workers=2, listener=events.append
    )
    ended = [event.trial.key for event in events if isinstance(event, TrialEnded)]
    assert sorted(ended) == [f"seed-{seed}" for seed in range(6)]
    for trial in trials:
        assert (
            trial.found["test"] == run(run_config(config, trial.settings["seed"])).metrics["test"]
        )
