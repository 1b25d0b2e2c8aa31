"""Runs whose settings `auto` finds: what they write, and how they are repeated and resumed."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command

from pslrec.artifacts import read_tensors
from pslrec.config import RunConfig, preset_settings
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.experiment import TrainingData, _running, run
from pslrec.recommender import Recommender
from pslrec.training import EpochFinished, SettingsTried, TrainingInterrupted

SMALL = ("--set", "backbone.dimension=8", "--set", "training.epochs=3", "--threads", "1")


@pytest.fixture(scope="module")
def wide_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with users enough for a race."""
    path = tmp_path_factory.mktemp("data") / "wide.csv"
    model = TasteModel(n_topics=4, median_history=12, minimum_history=8)
    planted_tastes(130, 40, model=model, seed=2).interactions.to_frame().write_csv(path)
    return path


def metrics_of(directory: Path) -> dict[str, Any]:
    metrics = json.loads((directory / "metrics.json").read_text())
    del metrics["seconds_per_epoch"]
    return metrics


def settings_of(log: Path, preset: str = "auto") -> RunConfig:
    return RunConfig.from_settings(
        {
            **preset_settings(preset),
            "data.source": str(log),
            "backbone.dimension": 8,
            "training.epochs": 3,
        }
    )


def test_a_run_records_its_choice_and_its_config_repeats_it_without_a_race(
    pslrec: Command, wide_log: Path, tmp_path: Path
) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    done = pslrec("train", wide_log, *SMALL, "--out", first)
    assert done.code == 0, done.err
    assert "in a race on validation" in done.err
    record = json.loads((first / "choice.json").read_text())
    metrics = metrics_of(first)
    assert metrics.pop("auto") == record
    assert record["tries"]
    stored = tomllib.loads((first / "config.toml").read_text())
    assert stored["auto"]["chosen"] == sorted(record["settings"])
    for name, value in record["settings"].items():
        section, _, setting = name.partition(".")
        assert stored[section][setting] == value

    again = pslrec("train", "--config", first / "config.toml", "--threads", 1, "--out", second)
    assert again.code == 0, again.err
    assert "auto" not in again.err
    assert not (second / "choice.json").exists()
    assert metrics_of(second) == metrics

    same = pslrec("train", wide_log, *SMALL, "--out", third)
    assert same.code == 0, same.err
    for other in (second, third):
        ours = (other / "model.safetensors").read_bytes()
        assert ours == (first / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    "options", [("--loss", "sl@20"), ("--loss", "bpr"), ("--backbone", "lightgcn")]
)
def test_other_losses_and_backbones_are_kept(
    pslrec: Command, wide_log: Path, tmp_path: Path, options: tuple[str, str]
) -> None:
    out = tmp_path / "run"
    done = pslrec("train", wide_log, *options, *SMALL, "--out", out)
    assert done.code == 0, done.err
    stored = tomllib.loads((out / "config.toml").read_text())
    assert stored[options[0].removeprefix("--")]["name"] == options[1]
    assert json.loads((out / "choice.json").read_text())["tries"]


def stopped_at(kind: type, count: int) -> Any:
    """A listener that stops the run at an event, as a signal does."""
    seen = []

    def listen(event: object) -> None:
        if isinstance(event, kind):
            seen.append(event)
            if len(seen) == count:
                raise TrainingInterrupted("stopped")

    return listen


@pytest.mark.parametrize(
    ("preset", "kind", "n_races"),
    [("auto", SettingsTried, 1), ("auto", EpochFinished, 0), ("fast", EpochFinished, 0)],
    ids=["race", "training", "training without a race"],
)
def test_a_stopped_run_is_resumed_with_a_race_only_if_it_was_stopped_in_it(
    pslrec: Command,
    wide_log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    preset: str,
    kind: type,
    n_races: int,
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "run"
    settings = settings_of(wide_log, preset)
    run(settings, out=whole)
    with pytest.raises(TrainingInterrupted):
        run(settings, out=out, listeners=[stopped_at(kind, 2)])
    assert (out / "request.toml").exists()
    assert (out / "config.toml").exists() == (n_races == 0)

    races = []
    choose = _running.choose_settings

    def counted(*arguments: Any, **options: Any) -> Any:
        races.append(arguments)
        return choose(*arguments, **options)

    monkeypatch.setattr(_running, "choose_settings", counted)
    done = pslrec("train", "--out", out, "--resume")
    assert done.code == 0, done.err
    assert len(races) == n_races
    ours, theirs = metrics_of(out), metrics_of(whole)
    for metrics in (ours, theirs):
        for tried in metrics["auto"]["tries"]:
            del tried["seconds"]
    assert ours == theirs
    tables = [read_tensors(path / "model.safetensors")[0] for path in (out, whole)]
    for name, table in tables[0].items():
        assert bool((table == tables[1][name]).all())


def test_fast_makes_no_race_and_says_what_it_took(
    pslrec: Command, wide_log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    done = pslrec("train", wide_log, "--preset", "fast", "--dimension", 8, "--out", out)
    assert done.code == 0, done.err
    assert "auto: history, psl-relu, temperature 1/12" in done.err
    assert "by rules alone, as `fast` makes no race" in done.err
    assert "\nwalks: " in done.err
    record = json.loads((out / "choice.json").read_text())
    assert record["tries"] == []
    log = (out / "log.jsonl").read_text().splitlines()
    assert 0 < len(log) <= record["settings"]["training.epochs"]


def test_an_interrupt_in_the_race_is_a_sentence_and_the_usual_exit_code(
    pslrec: Command, wide_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopping:
        def fit(self) -> None:
            raise TrainingInterrupted("stopped")

    monkeypatch.setattr(_running, "build_trainer", lambda *_, **__: Stopping())
    out = tmp_path / "run"
    module = tmp_path / "my_parts.py"
    module.write_text("")
    again = ("--import", module, "--threads", 1, "--json")
    done = pslrec("train", wide_log, *SMALL, *again, "--out", out)
    assert done.code == 130
    assert "stopped while auto was choosing settings" in done.err
    # Everything that the run directory does not keep.
    needed = f"--import {module} --threads 1 --json"
    assert done.err.endswith(f"resume with: pslrec train --out {out} --resume {needed}\n")
    assert "Traceback" not in done.err


def test_a_recommender_uses_auto_unless_a_preset_says_otherwise() -> None:
    model = TasteModel(n_topics=4, median_history=12, minimum_history=8)
    log = planted_tastes(130, 40, model=model, seed=2).interactions.to_frame()
    options = {"dimension": 8, "epochs": 2}
    found = Recommender(**options).fit(log)
    assert found.config_.auto.chosen
    paper = Recommender(preset="paper", **options).fit(log)
    assert paper.config_.auto.mode == "off"
    assert not paper.config_.auto.chosen
    assert paper.config_.backbone.name == "mf"


@pytest.mark.parametrize("preset", ["auto", "best"])
@pytest.mark.parametrize("backbone", ["history", "mf"])
def test_one_command_with_a_preset_starts_and_resumes_whatever_was_chosen(
    pslrec: Command,
    wide_log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    preset: str,
    backbone: str,
) -> None:
    """The preset's backbone was taken for another setting than the chosen one."""
    choose = _running.choose_settings

    def planted(config: RunConfig, data: TrainingData, _: Any, **options: Any) -> Any:
        def by_name(tried: RunConfig, _: TrainingData) -> np.ndarray:
            return np.array([float(tried.backbone.name == backbone)])

        return choose(config, data, by_name, **options)

    monkeypatch.setattr(_running, "choose_settings", planted)
    command = ("train", wide_log, "--preset", preset, *SMALL, "--out", tmp_path / "run", "--resume")
    for _ in range(2):
        done = pslrec(*command)
        assert done.code == 0, done.err
        stored = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
        assert stored["backbone"]["name"] == backbone
