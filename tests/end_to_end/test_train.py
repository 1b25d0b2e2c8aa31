"""The command line from data to metrics: `pslrec train` and `pslrec evaluate`."""

import io
import json
import re
import signal
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from command_line import Command, Terminal, start
from rich.console import Console

from pslrec.artifacts import read_tensors
from pslrec.cli._progress import TrainingProgress
from pslrec.config import RunConfig
from pslrec.data._sealing import SealedInteractions, SealedTestError
from pslrec.data._synthetic import checkerboard
from pslrec.errors import ConfigError
from pslrec.experiment import load_training_data, run
from pslrec.losses import LOSSES
from pslrec.training._events import BatchFinished, EpochFinished, EstimateMade, TrainingStarted

QUICK = (
    "--set",
    "training.epochs=4",
    "--set",
    "training.validate_every=2",
    "--set",
    "sampling.negatives=10",
)
# Settings that do not depend on the data: these tests are about training, not about what `auto` finds.
PAPER = ("--preset", "paper")
SMALL = ("--set", "backbone.dimension=8", "--set", "sampling.batch_pairs=128", "--threads", "1")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkerboard as a directory that comes split."""
    directory = tmp_path_factory.mktemp("data") / "board"
    directory.mkdir()
    dataset = checkerboard(40, 30)
    for part in ("train", "test"):
        getattr(dataset, part).to_frame().write_csv(directory / f"{part}.tsv", separator="\t")
    return directory


def records(run_directory: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run_directory / "log.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def metrics_of(run_directory: Path) -> dict[str, Any]:
    metrics = json.loads((run_directory / "metrics.json").read_text())
    del metrics["seconds_per_epoch"]
    return metrics


def test_train_then_evaluate(pslrec: Command, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ("--loss", "psl-relu", *PAPER, *QUICK, *SMALL, "--seed", 3)
    trained = pslrec("train", log, *options, "--out", out)
    assert trained.code == 0, trained.err
    assert "ndcg" in trained.out
    assert f"saved to {out}" in trained.out
    files = {"config.toml", "environment.json", "format", "log.jsonl", "metrics.json", "lock"}
    files |= {
        "model.safetensors",
        "checkpoint.safetensors",
        "seen.safetensors",
        "users.parquet",
        "items.parquet",
    }
    assert {path.name for path in out.iterdir()} == files
    metrics = json.loads((out / "metrics.json").read_text())
    assert {
        "test",
        "validation",
        "protocol",
        "selected_on_test",
        "best_epoch",
        "seconds_per_epoch",
    } <= metrics.keys()
    assert metrics.keys() - {"trained_epochs", "seed"} == {
        *(
            "test",
            "validation",
            "evaluated",
            "exchangeability",
            "protocol",
            "selected_on_test",
            "best_epoch",
            "seconds_per_epoch",
        )
    }
    for split in ("test", "validation"):
        assert {"recall@20", "ndcg@20", "recall@5", "ndcg@50"} <= metrics[split].keys()
    assert (metrics["protocol"], metrics["selected_on_test"], metrics["seed"]) == (
        "strict",
        False,
        3,
    )
    assert metrics["best_epoch"] in (2, 4)
    assert metrics["seconds_per_epoch"] > 0
    assert [record["epoch"] for record in records(out)] == [1, 2, 3, 4]
    assert [record["validation"] is None for record in records(out)] == [True, False, True, False]

    judged = pslrec("evaluate", out, "--k", "5,20,50", "--json")
    assert judged.code == 0, judged.err
    assert json.loads(judged.out) == metrics
    other = json.loads(pslrec("evaluate", out, "--k", "3", "--metrics", "recall,auc", "--json").out)
    assert other["test"].keys() == {"recall@3", "auc"}
    paper = json.loads(pslrec("evaluate", out, "--protocol", "paper", "--json").out)
    assert paper["protocol"] == "paper"
    assert paper["test"]["ndcg@20"] != metrics["test"]["ndcg@20"]
    assert "recall" in pslrec("evaluate", out, "--k", "20").out


def test_a_run_is_judged_from_any_directory(
    pslrec: Command, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log.parent)
    assert pslrec("train", log.name, *QUICK, *SMALL, "--out", tmp_path / "run").code == 0
    monkeypatch.chdir(tmp_path)
    judged = pslrec("evaluate", "run", "--threads", "1")
    assert judged.code == 0, judged.err


def test_config_of_a_run_is_complete_and_makes_the_run_again(
    pslrec: Command, log: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    options = ("--backbone", "xsimgcl", "--loss", "sl", *PAPER, *QUICK, *SMALL)
    pslrec("train", log, *options, "--out", first)
    settings = tomllib.loads((first / "config.toml").read_text())
    assert settings["sampling"]["negatives"] == 10
    assert settings["backbone"]["contrast_weight"] == 0.2
    assert settings["loss"] == {"name": "sl", "temperature": 0.1}
    again = pslrec("train", "--config", first / "config.toml", "--threads", 1, "--out", second)
    assert again.code == 0, again.err
    assert metrics_of(first) == metrics_of(second)
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
    assert records(first) == records(second)
    assert (first / "config.toml").read_text() == (second / "config.toml").read_text()


def test_another_loss_over_a_config_does_not_inherit_its_options(
    pslrec: Command, log: Path, tmp_path: Path
) -> None:
    file = tmp_path / "run.toml"
    file.write_text('[loss]\nname = "llpauc"\nalpha = 0.3\n[training]\nepochs = 1\n')
    outcome = pslrec(
        "train", log, "--config", file, "--loss", "bpr", *SMALL, "--out", tmp_path / "run"
    )
    assert outcome.code == 0, outcome.err
    assert tomllib.loads((tmp_path / "run" / "config.toml").read_text())["loss"] == {
        "name": "bpr",
        "surrogate": "softplus",
    }


def test_a_shifted_split_is_told_after_training(pslrec: Command, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shifted = ("--set", "data.split=popularity")
    code, shown, _ = pslrec("train", "synthetic", *QUICK, *SMALL, *shifted, "--out", out)
    assert code == 0
    assert "note: test pairs have less popular items" in shown
    found = metrics_of(out)["exchangeability"]
    assert found["test"]["verdict"] == "shifted"
    assert found["validation"]["verdict"] in {"alike", "slight"}
    assert found["test"]["measures"]["popularity"]["adjusted_p"] < 0.001
    # Evaluating again keeps what training found, and the setting turns it off.
    assert "note: test pairs have less popular items" in pslrec("evaluate", out)[1]
    off = ("--set", "evaluation.exchangeability=off", "--json")
    code, shown, _ = pslrec("train", log, *QUICK, *SMALL, *off)
    assert code == 0
    assert "exchangeability" not in json.loads(shown)


def test_json_prints_only_json_on_standard_output(
    pslrec: Command, log: Path, tmp_path: Path
) -> None:
    outcome = pslrec("train", log, *QUICK, *SMALL, "--out", tmp_path / "run", "--json")
    assert json.loads(outcome.out) == json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert "epoch 2: loss" in outcome.err
    assert "epoch 4: loss" in outcome.err


def test_same_seed_same_numbers_other_seed_others(pslrec: Command, log: Path) -> None:
    found = []
    for seed in (1, 1, 2):
        metrics = json.loads(pslrec("train", log, "--seed", seed, *QUICK, *SMALL, "--json").out)
        found.append(metrics["test"])
    assert found[0] == found[1]
    assert found[0] != found[2]


@pytest.mark.parametrize("loss", ["psl-relu", "sl", "bpr"])
def test_the_checkerboard_is_learnt(pslrec: Command, board: Path, loss: str) -> None:
    options = [
        "--set",
        "training.learning_rate=0.1",
        "--set",
        "sampling.negatives=10",
        "--set",
        "evaluation.k=1",
    ]
    options += ["--set", "training.epochs=12", "--set", "data.validation=none"]
    outcome = pslrec("train", board, "--loss", loss, *options, *SMALL, "--json")
    assert outcome.code == 0, outcome.err
    metrics = json.loads(outcome.out)
    assert metrics["test"]["recall@1"] >= 0.9
    assert metrics["validation"] == {}
    assert metrics["best_epoch"] == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--loss", "psl-rel"],
            "unknown loss `psl-rel`; did you mean `psl-relu`? Available: adv-infonce, bce, bpr,",
        ),
        (
            ["--backbone", "lightgc"],
            "unknown backbone `lightgc`; did you mean `lightgcn`? Available: history, lightgcn, mf,",
        ),
        (["--protocol", "papr"], "`evaluation.protocol` should be 'strict' or 'paper', got 'papr'"),
        (
            ["--set", "training.epoch=3"],
            "unknown setting `training.epoch`; did you mean `training.epochs`?",
        ),
        (
            ["--set", "training.epochs=many"],
            "`training.epochs` should be a number from 1 to 1,000,000, or 'auto', got 'many'",
        ),
        (
            ["--set", "training.epochs"],
            "`--set` must be SECTION.KEY=VALUE, such as loss.temperature=0.1, got `training.epochs`",
        ),
        (
            ["--set", "=3"],
            "`--set` must be SECTION.KEY=VALUE, such as loss.temperature=0.1, got `=3`",
        ),
        (["--set", "loss=sl"], "`loss` is a section"),
        (
            ["--set", "loss.temperature=hot"],
            "`loss.temperature` should be a valid number, got 'hot'",
        ),
        (
            ["--set", "loss.alpha=0.5"],
            "loss `psl-relu` has no setting `loss.alpha`; it has `loss.temperature`",
        ),
        (
            ["--set", "backbone.dimension=0"],
            "`dimension` must be a whole number of at least 1, got 0",
        ),
        (["--set", "backbone.initialization=xaver"], "unknown initialization `xaver`"),
        (["--config", "nowhere.toml"], "nowhere.toml cannot be read: no such file"),
        (["--resume"], "`--resume` needs `--out`, the directory of the run to resume"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    pslrec: Command, log: Path, arguments: list[str], message: str
) -> None:
    outcome = pslrec("train", log, *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    assert outcome.err.strip().splitlines()[-1].startswith("error: ")


def test_data_that_are_not_there_are_named(pslrec: Command) -> None:
    outcome = pslrec("train", "gowala")
    assert outcome.code == 2
    assert "gowala: no such file, and no data set of that name" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k", "0"], "`k` must hold list lengths of at least 1"),
        (
            ["--k", "five"],
            "`--k` must be whole numbers separated by commas, such as 5,20, got `five`",
        ),
        (["--metrics", "recal"], "unknown metric `recal`; did you mean `recall`?"),
    ],
)
def test_mistakes_in_evaluate_are_named(
    pslrec: Command, log: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    pslrec("train", log, *QUICK, *SMALL, "--out", tmp_path / "run")
    outcome = pslrec("evaluate", tmp_path / "run", *arguments)
    assert outcome.code == 2
    assert message in outcome.err


def test_a_directory_without_a_run_is_named(pslrec: Command, tmp_path: Path) -> None:
    assert "is not a run directory" in pslrec("evaluate", tmp_path).err
    outcome = pslrec("train", "--out", tmp_path / "typo", "--resume")
    assert outcome.code == 2
    assert "typo to resume; give DATA to start one" in outcome.err
    started = pslrec(
        "train", "synthetic", "--out", tmp_path / "typo", "--resume", *PAPER, *QUICK, *SMALL
    )
    assert started.code == 0, started.err
    assert "typo yet, so this one starts from the beginning" in started.err


def test_a_run_is_not_overwritten_and_not_resumed_with_other_settings(
    pslrec: Command, log: Path, tmp_path: Path
) -> None:
    command = ["train", log, *PAPER, *QUICK, *SMALL, "--out", tmp_path / "run"]
    assert pslrec(*command).code == 0
    before = metrics_of(tmp_path / "run")
    outcome = pslrec(*command)
    assert outcome.code == 2
    assert (
        "already holds a run; resume it with --resume, or choose another directory" in outcome.err
    )
    for setting, message in {
        "training.learning_rate=0.5": "`training.learning_rate` = 0.01, now it is 0.5",
        "loss.temperature=0.2": "`loss.temperature` = 0.1, now it is 0.2",
        "loss.name=sl": "`loss.name` = 'psl-relu', now it is 'sl'",
        "sampling.noise.probability=0.1": "`sampling.noise.probability` = 0.0, now it is 0.1",
    }.items():
        outcome = pslrec(*command, "--set", setting, "--resume")
        assert outcome.code == 2
        assert message in outcome.err
        assert (
            "resume with the same settings, or start a new run in another directory" in outcome.err
        )
    # A finished run that is resumed is judged again, no more.
    assert pslrec("train", "--out", tmp_path / "run", "--resume", "--threads", 1).code == 0
    assert metrics_of(tmp_path / "run") == before


def test_a_run_whose_data_changed_is_refused(pslrec: Command, log: Path, tmp_path: Path) -> None:
    data = tmp_path / "log.csv"
    data.write_bytes(log.read_bytes())
    assert pslrec("train", data, *QUICK, *SMALL, "--out", tmp_path / "run").code == 0
    pl.read_csv(data).slice(5).write_csv(data)
    for command in (
        ["evaluate", tmp_path / "run"],
        ["train", "--out", tmp_path / "run", "--resume"],
    ):
        outcome = pslrec(*command)
        assert outcome.code == 2
        assert "was started with other training data than `data.source` gives now" in outcome.err


def test_an_unfinished_run_is_not_evaluated(pslrec: Command, log: Path, tmp_path: Path) -> None:
    pslrec("train", log, *QUICK, *SMALL, "--out", tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    outcome = pslrec("evaluate", tmp_path / "run")
    assert outcome.code == 2
    assert "is not finished; resume it with `pslrec train --out" in outcome.err


def test_settings_that_data_which_come_split_can_not_have_are_refused(
    pslrec: Command, board: Path
) -> None:
    outcome = pslrec("train", board, "--set", "data.split=popularity")
    assert outcome.code == 2
    assert re.search(
        r"`data\.split` has no effect on .*board, which is already split; leave it out", outcome.err
    )


def test_a_diverging_loss_ends_in_one_line(pslrec: Command, log: Path, tmp_path: Path) -> None:
    options = [
        "--loss",
        "bpr",
        "--set",
        "training.learning_rate=1e30",
        *PAPER,
        *SMALL,
        "--out",
        tmp_path / "run",
    ]
    outcome = pslrec("train", log, *options)
    assert outcome.code == 2
    assert re.search(
        r"the loss became .* in epoch 1, batch \d+, with backbone `mf` and loss `bpr`", outcome.err
    )
    assert "Traceback" not in outcome.err


def test_interrupting_saves_and_says_how_to_resume(
    pslrec: Command, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "a run"
    options = ["--set", "training.epochs=3000", "--set", "training.validate_every=1000", *SMALL]
    process = start("train", log, *options, "--out", out, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (out / "log.jsonl").exists() or len((out / "log.jsonl").read_text().splitlines()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.search(
        rf"stopped in epoch \d+ .*resume with: pslrec train --out '{out}' --resume --threads 1", err
    )
    assert "Traceback" not in err
    checkpoint = read_tensors(out / "checkpoint.safetensors")[1]
    assert json.loads(checkpoint["progress"])["epoch"] >= 2


def test_a_directory_with_brackets_in_its_name_is_printed_whole(
    pslrec: Command, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / ("a-long-name-" * 8) / "[run]"
    done = pslrec("train", log, *QUICK, *SMALL, "--out", out)
    assert done.code == 0, done.err
    assert done.out.endswith(f"saved to {out}\n")


def paper_settings(board: Path) -> dict[str, Any]:
    return {
        "data.source": str(board),
        "data.validation": "none",
        "evaluation.protocol": "paper",
        "training.epochs": 4,
        "training.validate_every": 2,
        "sampling.negatives": 10,
        "backbone.dimension": 8,
    }


def test_the_paper_protocol_without_validation_selects_on_test_and_says_so(board: Path) -> None:
    result = run(RunConfig.from_settings(paper_settings(board)))
    assert result.metrics["selected_on_test"] is True
    assert result.metrics["validation"] == {}
    assert isinstance(result.dataset.test, SealedInteractions)
    assert result.dataset.test.reasons == [
        "the paper protocol chooses the epoch on the test part where there is no validation part",
        "training has ended",
    ]


def test_shifted_data_under_the_paper_protocol_have_no_validation_part(log: Path) -> None:
    settings = paper_settings(log) | {"data.split": "popularity"}
    del settings["data.validation"]
    result = run(RunConfig.from_settings(settings))
    assert result.dataset.validation is None
    assert result.metrics["selected_on_test"] is True
    strict = run(RunConfig.from_settings({**settings, "evaluation.protocol": "strict"}))
    assert strict.dataset.validation is not None
    assert strict.metrics["selected_on_test"] is False


@pytest.mark.parametrize("protocol", ["strict", "paper"])
def test_the_test_part_stays_sealed_while_the_model_trains(log: Path, protocol: str) -> None:
    config = RunConfig.from_settings({"data.source": str(log), "evaluation.protocol": protocol})
    data = load_training_data(config)
    with pytest.raises(SealedTestError):
        data.dataset.test.items  # noqa: B018
    quick = {"training.epochs": 2, "training.validate_every": 1, "sampling.negatives": 5}
    seen = []
    result = run(RunConfig.from_settings(quick, config), listeners=[seen.append])
    assert seen
    assert result.dataset.test.reasons == ["training has ended"]


def noisy(log: Path, **noise: Any) -> RunConfig:
    settings = {f"sampling.noise.{name}": value for name, value in noise.items()}
    return RunConfig.from_settings(
        {"data.source": str(log), "sampling.noise.probability": 0.3, **settings}
    )


def keys(interactions: Any) -> set[int]:
    return set(interactions.pair_keys().tolist())


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("hide", [False, True])
def test_noise_options_decide_what_is_trained_on_and_what_is_hidden(
    log: Path, before: bool, keep: bool, hide: bool
) -> None:
    data = load_training_data(
        noisy(log, before_validation=before, keep_positives=keep, hide_at_test=hide)
    )
    false = keys(data.false_negatives)
    hidden = keys(data.dataset.train)
    assert false
    if keep:
        assert hidden == keys(data.train)
        assert before or false <= keys(data.train)
    else:
        assert not false & keys(data.train)
        assert hidden == (keys(data.train) | false if hide else keys(data.train))
    assert len(data.dataset.train) == len(hidden), (
        "a pair that counts twice would be twice as popular"
    )
    assert not keys(data.train) & keys(data.dataset.validation)
    if not before:
        assert not false & keys(data.dataset.validation)
    elif keep:
        assert false <= keys(data.train) | keys(data.dataset.validation)


def test_noise_is_declared_of_a_tenth_of_each_user_after_validation_by_default(log: Path) -> None:
    clean = load_training_data(RunConfig.from_settings({"data.source": str(log)}))
    data = load_training_data(noisy(log))
    assert clean.false_negatives is None
    shares = [max(int(0.1 * n), 1) for n in clean.train.user_counts()]
    assert data.false_negatives.user_counts().tolist() == shares
    assert keys(data.train) | keys(data.false_negatives) == keys(clean.train)
    assert keys(data.dataset.validation) == keys(clean.dataset.validation)


def test_a_run_with_noise_ends_and_its_evaluation_agrees(
    pslrec: Command, log: Path, tmp_path: Path
) -> None:
    noise = ["--set", "sampling.noise.probability=0.5", "--set", "sampling.noise.hide_at_test=true"]
    outcome = pslrec("train", log, *noise, *QUICK, *SMALL, "--out", tmp_path / "run", "--json")
    assert outcome.code == 0, outcome.err
    again = json.loads(pslrec("evaluate", tmp_path / "run", "--json").out)
    assert again == json.loads(outcome.out)


def test_a_run_in_memory_is_the_run_in_a_directory(log: Path, tmp_path: Path) -> None:
    config = RunConfig.from_settings(
        {
            "data.source": str(log),
            "training.epochs": 3,
            "training.validate_every": 1,
            "loss.name": "sl",
        }
    )
    in_memory, on_disk = run(config), run(config, out=tmp_path / "run")
    assert in_memory.metrics["test"] == on_disk.metrics["test"]
    assert torch.equal(in_memory.scorer.user_vectors, on_disk.scorer.user_vectors)
    assert np.isclose(
        in_memory.test.per_user["ndcg@20"].mean(), in_memory.metrics["test"]["ndcg@20"]
    )


def test_settings_of_another_loss_in_a_base_config_are_refused(log: Path) -> None:
    base = RunConfig.from_settings(
        {"data.source": str(log), "loss.name": "llpauc", "loss.alpha": 0.3}
    )
    with pytest.raises(ConfigError, match=r"loss `sl` has no setting `loss\.alpha`"):
        RunConfig.from_settings({"loss.name": "sl"}, base)


def test_lists_of_losses_and_backbones_name_them_all(
    pslrec: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    losses, backbones = pslrec("losses").out, pslrec("backbones").out
    assert all(
        re.search(rf"^{re.escape(name)} ", losses, flags=re.MULTILINE) for name in LOSSES.names()
    )
    assert "temperature = 0.1" in losses
    assert "one negative per pair" in losses
    assert losses.count("NAME@K") == 1
    assert "@20" not in losses.partition("NAME@K")[0]
    assert "contrast_weight = 0.2" in backbones
    assert "unique_contrast = false" in backbones


def shown(events: list[Any], *, width: int, is_terminal: bool) -> str:
    text = Terminal() if is_terminal else io.StringIO()
    with TrainingProgress(Console(file=text, width=width, color_system=None)) as progress:
        for event in events:
            progress.listen(event)
    return text.getvalue()


STORY = [
    TrainingStarted(n_epochs=10, n_batches=4, epoch=0, batch=0),
    EstimateMade(seconds=5400.0, memory={"tables": 6_000_000, "batch": 20_000_000}),
    BatchFinished(epoch=0, batch=1, loss=5.5),
    EpochFinished(epoch=1, loss=5.25, seconds=12.5, validation=0.125, is_best=True),
    BatchFinished(epoch=1, batch=1, loss=5.0),
    EpochFinished(epoch=2, loss=4.75, seconds=12.5, validation=0.0625, is_best=False),
    # It is in the middle of the third epoch.
    BatchFinished(epoch=2, batch=1, loss=4.75),
]


@pytest.mark.parametrize("width", [80, 140])
def test_the_bar_shows_loss_validation_pace_and_time_left_in_one_line(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    lines = [
        line
        for line in re.split(r"[\r\n]+", shown(STORY, width=width, is_terminal=True))
        if "epoch 3/10" in line
    ]
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", lines[-1])
    assert len(last.rstrip()) <= width
    for part in ("loss 4.7500", "0.1250", "12.5 s/epoch", " left"):
        assert part in last
    assert ("validation 0.0625 (best 0.1250 in epoch 1)" in last) == (width == 140)


def test_without_a_terminal_there_is_a_line_per_validation_and_the_estimate_of_a_long_run() -> None:
    lines = shown(STORY, width=80, is_terminal=False).splitlines()
    assert lines == [
        "training will take about 1.5 h, not counting validation; memory on top of program and data: 26 MB (tables 6, batch 20)",
        "epoch 1: loss 5.2500, validation 0.1250 (best), 12.5 s per epoch",
        "epoch 2: loss 4.7500, validation 0.0625, 12.5 s per epoch",
    ]
    short = [EstimateMade(seconds=59.0, memory={})]
    assert shown([STORY[0], *short], width=80, is_terminal=False) == ""
