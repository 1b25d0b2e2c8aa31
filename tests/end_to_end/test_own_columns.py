"""A file with names of its own for its columns, through every command that reads it."""

import json
import re
import shlex
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Command

from pslrec.baselines import Popularity
from pslrec.config import RunConfig
from pslrec.data import concatenate
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.evaluation import evaluate
from pslrec.experiment import load_dataset

NAMED = ("--user-column", "wer", "--item-column", "was")
QUICK = ("--preset", "fixed", "--epochs", "2", "--dimension", "8")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return log_file(tmp_path / "kauf.csv", 40)


@pytest.fixture
def raced_file(tmp_path: Path) -> Path:
    """Enough users for `auto` to tell settings apart."""
    return log_file(tmp_path / "viele.csv", 150)


def log_file(path: Path, n_users: int) -> Path:
    log = planted_tastes(n_users, 30, model=TasteModel(n_topics=3), seed=1).interactions.to_frame()
    lines = ["nr;wer;was;wann"]
    for number, (user, item) in enumerate(log.select("user", "item").iter_rows()):
        lines.append(f"{number};{user};{item};2024-{number % 12 + 1:02}-11")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_command_that_the_error_shows_works(pslrec: Command, file: Path) -> None:
    failed = pslrec("train", file, *QUICK)
    assert failed.code == 2
    assert "no user and no item column found among `nr`, `wer`, `was`, `wann`" in failed.err
    command = shlex.split(failed.err.partition("perhaps ")[2])
    assert command[0] == "pslrec"
    assert command[-6:] == [*NAMED, "--time-column", "wann"]
    done = pslrec(*command[1:])
    assert done.code == 0, done.err


def test_only_what_is_missing_is_added_to_the_command(pslrec: Command, file: Path) -> None:
    failed = pslrec("data", "describe", file, "--user-column", "wer")
    command = shlex.split(failed.err.partition("perhaps ")[2])
    assert command.count("--user-column") == 1
    assert pslrec(*command[1:]).code == 0


def test_a_run_keeps_its_columns_and_settings(pslrec: Command, file: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    flags = ("--learning-rate", "0.02", "--k-core", "2", "--split", "leave-one-out")
    done = pslrec("train", file, *NAMED, *QUICK, *flags, "--time-column", "wann", "--out", run)
    assert done.code == 0, done.err
    config = tomllib.loads((run / "config.toml").read_text())
    assert config["data"]["columns"] == {"user": "wer", "item": "was", "timestamp": "wann"}
    assert config["data"]["k_core"] == 2
    assert config["data"]["split"] == "leave-one-out"
    assert config["training"]["learning_rate"] == 0.02
    assert config["training"]["epochs"] == 2
    assert config["backbone"]["dimension"] == 8
    # Both read the file again, and nobody names its columns.
    assert pslrec("evaluate", run).code == 0
    again = pslrec("train", "--config", run / "config.toml", "--out", tmp_path / "again")
    assert again.code == 0, again.err
    assert (tmp_path / "again" / "config.toml").read_text() == (run / "config.toml").read_text()
    other = pslrec("train", file, "--out", run, "--resume", "--user-column", "was")
    assert other.code == 2
    assert "`data.columns.user`" in other.err


def test_a_file_in_latin_1_needs_the_option_that_the_error_names(
    pslrec: Command, file: Path, tmp_path: Path
) -> None:
    text = file.read_text().replace("item", "Käse").replace("wer", "Käufer")
    file.write_bytes(text.encode("latin-1"))
    named = ("--user-column", "Käufer", "--item-column", "was")
    failed = pslrec("train", file, *named, *QUICK)
    assert failed.code == 2
    assert (
        "line 1 is not UTF-8 text; in cp1252 (Windows, Latin-1) it would be `nr;Käufer;was;wann`"
        in failed.err
    )
    assert "`--encoding cp1252`" in failed.err
    run = tmp_path / "run"
    done = pslrec("train", file, *named, "--encoding", "latin-1", *QUICK, "--out", run)
    assert done.code == 0, done.err
    assert tomllib.loads((run / "config.toml").read_text())["data"]["encoding"] == "latin-1"
    # It reads the file again, and nobody names its encoding.
    assert pslrec("evaluate", run).code == 0
    assert "Käse" in pslrec("recommend", run, "--all", "-k", 1).out
    refused = pslrec("data", "describe", file, *named, "--encoding", "klingon")
    assert "`encoding` must be the name of a text encoding" in refused.err


def test_tune_and_stress_take_the_same_options(pslrec: Command, file: Path, tmp_path: Path) -> None:
    quick = ("--set", "training.epochs=1", "--set", "backbone.dimension=4")
    grid = ("--loss", "sl", "--grid", "loss.temperature=0.1")
    tuned = pslrec("tune", file, *NAMED, *grid, *quick, "--out", tmp_path / "tuned")
    assert tuned.code == 0, tuned.err
    stressed = pslrec(
        "stress", file, *NAMED, *quick, "--losses", "sl", "--noise", "", "--shift", "0",
        "--out", tmp_path / "stressed",
    )  # fmt: skip
    assert stressed.code == 0, stressed.err


def test_epochs_may_be_auto_and_nothing_else_that_is_no_number(pslrec: Command, file: Path) -> None:
    wrong = pslrec("train", file, *NAMED, "--epochs", "many")
    assert wrong.code == 2
    assert re.search(r"`training.epochs` should be a number .* or 'auto', got 'many'", wrong.err)
    automatic = pslrec("train", file, *NAMED, "--preset", "fixed", "--epochs", "auto")
    assert automatic.code == 0, automatic.err


def test_a_file_without_header_and_with_another_separator(pslrec: Command, tmp_path: Path) -> None:
    log = planted_tastes(40, 30, model=TasteModel(n_topics=3), seed=1).interactions.to_frame()
    path = tmp_path / "log.data"
    path.write_text("".join(f"{user}~{item}\n" for user, item in log.iter_rows()))
    flags = ("--no-header", "--separator", "~", "--format", "delimited")
    done = pslrec("train", path, *flags, *QUICK)
    assert done.code == 0, done.err


def test_a_model_of_a_divided_log_says_what_was_held_out(
    pslrec: Command, file: Path, tmp_path: Path
) -> None:
    """Lists held what people had bought already, and nothing said why."""
    done = pslrec("train", file, *NAMED, *QUICK, "--out", tmp_path / "run")
    lengths = Counter(line.split(";")[1] for line in file.read_text().splitlines()[1:])
    n_held_out = sum(n_items - int(0.8 * n_items) for n_items in lengths.values())
    assert f"{n_held_out:,} interactions were held out of training" in done.out
    assert "--split none --refit" in done.out


@pytest.mark.parametrize("more", [(), ("--refit",)])
def test_without_a_split_nothing_is_recommended_that_is_in_the_log(
    pslrec: Command, file: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    run = tmp_path / "run"
    done = pslrec("train", file, *NAMED, *QUICK, "--split", "none", *more, "--out", run)
    assert done.code == 0, done.err
    assert "no test part" in done.out
    assert "held out of training" not in done.out
    # The values of the validation part, not zeros of a test part that is not there.
    assert "ndcg" in done.out
    lists = tmp_path / "lists.csv"
    assert pslrec("recommend", run, "--all", "-k", "5", "--out", lists).code == 0
    bought = set()
    for line in file.read_text().splitlines()[1:]:
        _, user, item, _ = line.split(";")
        bought.add((user, item))
    listed = []
    for line in lists.read_text().splitlines()[1:]:
        user, item, *_ = line.split(",")
        listed.append((user, item))
    assert len(listed) == 200
    assert not bought.intersection(listed)


def test_weights_that_training_does_not_use_are_told(pslrec: Command, file: Path) -> None:
    # A weight of 0 is no interaction.
    file.write_text(file.read_text().replace("\n0;", "\n1;", 1))
    done = pslrec("train", file, *NAMED, *QUICK, "--weight-column", "nr")
    assert done.code == 0, done.err
    assert done.err.count("were read, but training does not use them") == 1


def test_weights_whose_column_nobody_named_are_told_as_well(pslrec: Command, file: Path) -> None:
    renamed = file.read_text().replace("\n0;", "\n1;", 1).replace("nr;", "weight;", 1)
    file.write_text(renamed)
    done = pslrec("train", file, *NAMED, *QUICK)
    assert done.code == 0, done.err
    assert done.err.count("were read, but training does not use them") == 1


def test_a_single_dimension_is_doubted_once(pslrec: Command, raced_file: Path) -> None:
    # `auto` trains many times, and all of its tries have this dimension.
    done = pslrec("train", raced_file, *NAMED, "--epochs", "1", "--dimension", "1")
    assert done.code == 0, done.err
    assert done.err.count("auto tried") > 1
    assert done.err.count("a cosine is a mere sign") == 1


def test_quiet_prints_results_and_doubts_alone(pslrec: Command, raced_file: Path) -> None:
    done = pslrec("--quiet", "train", raced_file, *NAMED, "--epochs", "2")
    assert done.code == 0, done.err
    assert "ndcg" in done.out
    for line in done.err.splitlines():
        assert "too few to tell models apart" in line


@pytest.mark.parametrize("more", [(), ("--refit",), ("--set", "evaluation.test_users=20")])
def test_the_same_list_for_everybody_stands_beside_the_model(
    pslrec: Command, file: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    out = tmp_path / "run"
    done = pslrec("train", file, *NAMED, *QUICK, *more, "--out", out)
    assert done.code == 0, done.err
    line = re.search(r"for everybody: NDCG@20 ([\d.]+) \(this model: ([\d.]+)\)", done.out)
    assert line is not None
    metrics = json.loads((out / "metrics.json").read_text())
    assert line[2] == f"{metrics['test']['ndcg@20']:.4f}"
    # By hand, on the users whom the model was evaluated on.
    config = RunConfig.from_toml(out / "config.toml")
    dataset = load_dataset(config)
    train = dataset.train
    if more == ("--refit",):
        assert dataset.validation is not None
        train = concatenate([train, dataset.validation])
    popularity = Popularity().fit(train)
    found = evaluate(
        popularity,
        replace(dataset, train=train, validation=dataset.validation),
        k=[20],
        n_users=config.evaluation.n_test_users(),
        seed=config.data.validation_seed,
    )
    assert line[1] == f"{found['ndcg@20']:.4f}"
