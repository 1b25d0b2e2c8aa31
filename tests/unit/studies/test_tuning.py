"""A search from its first trial to its choice."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

from pslrec.config import RunConfig
from pslrec.data._sealing import SealedInteractions
from pslrec.errors import ConfigError
from pslrec.experiment import build_batches, load_training_data, run
from pslrec.losses import LOSSES
from pslrec.studies import (
    Cell,
    Effort,
    Range,
    Study,
    Trained,
    Trial,
    TrialEnded,
    named_space,
    read_space,
    tune,
)
from pslrec.studies._attempt import Clock
from pslrec.studies._queues import Listed
from pslrec.studies._searching import epoch_warnings, seed_warnings
from pslrec.studies._space import Pruning, combinations
from pslrec.studies._working import Worker
from pslrec.training import EpochFinished, TrainingInterrupted, TrainingStarted

GRID = {"loss.temperature": [0.1], "training.learning_rate": [0.001, 0.1]}


@pytest.fixture(scope="module")
def searched(config, tmp_path_factory):
    return tune(config, GRID, out=tmp_path_factory.mktemp("search"))


def ended(events):
    return [event.trial.key for event in events if isinstance(event, TrialEnded)]


def chosen_config(result):
    return RunConfig.from_toml(result.directory / "best.toml")


def test_search_chooses_the_best_on_validation_and_evaluates_it_as_a_run_would(searched):
    values = [trial.value for trial in searched.trials]
    assert len(values) == 2
    assert values[0] > values[1]
    again = run(chosen_config(searched))
    assert searched.metrics["test"] == again.metrics["test"]
    assert searched.metrics["validation"] == again.metrics["validation"]
    assert searched.metrics["best_epoch"] == again.metrics["best_epoch"]


def test_only_the_chosen_trial_was_evaluated_on_the_test_part(searched):
    opened = [trial.key for trial in searched.trials if (trial.directory / "metrics.json").exists()]
    assert opened == [searched.best.key]
    assert all("test" not in trial.found for trial in searched.trials)


def test_the_test_part_is_opened_once_after_all_trials_are_over(config, tmp_path, monkeypatch):
    happened = []
    unseal = SealedInteractions.unseal

    def noted(self, reason):
        happened.append("opened")
        return unseal(self, reason)

    def listener(event):
        if isinstance(event, TrialEnded):
            happened.append("trial")

    monkeypatch.setattr(SealedInteractions, "unseal", noted)
    tune(config, GRID, out=tmp_path, listener=listener)
    assert happened == ["trial", "trial", "opened"]


def test_files_say_what_was_found_and_the_best_configuration_trains(searched):
    table = pl.read_csv(searched.directory / "results.csv")
    assert set(GRID) < set(table.columns)
    assert not [column for column in table.columns if "test" in column]
    assert table["validation_ndcg@20"][0] == searched.best.value
    summary = json.loads((searched.directory / "results.json").read_text())
    assert summary["best"]["settings"] == dict(searched.best.settings)
    assert summary["metrics"]["test"] == searched.metrics["test"]
    assert summary["space"] == GRID
    chosen = searched.best.settings["training.learning_rate"]
    assert chosen_config(searched).training.learning_rate == chosen


def test_best_values_at_the_edge_of_the_space_are_named(searched):
    assert any("`training.learning_rate` = 0.001 is at the edge" in w for w in searched.warnings)
    # One value is no edge: nobody searched beside it.
    assert not any("temperature" in warning for warning in searched.warnings)


def test_a_best_epoch_that_is_the_last_is_named(searched, config):
    best = searched.best
    is_last = best.found["best_epoch"] == 3
    assert any("is the last one" in warning for warning in searched.warnings) == is_last
    assert epoch_warnings(best, best.found["best_epoch"])
    assert not epoch_warnings(best, best.found["best_epoch"] + 1)


def seeded(values, **settings):
    trials = []
    for seed, value in enumerate(values):
        trials.append(Trial(seed, "k", settings, "finished", None, {"seed": seed}, value))
    return trials


def test_seeds_that_cannot_tell_the_two_best_apart_are_named():
    clear = [seeded([0.30, 0.31, 0.32], a=1), seeded([0.20, 0.21, 0.22], a=2)]
    assert seed_warnings(clear, "ndcg@20") == []
    noisy = [seeded([0.30, 0.20, 0.31], a=1), seeded([0.29, 0.30, 0.22], a=2)]
    [sentence] = seed_warnings(noisy, "ndcg@20")
    assert sentence.startswith("3 seeds cannot tell the best settings from the second best (a 2)")
    [sentence] = seed_warnings(list(reversed(clear)), "ndcg@20")
    assert "the second best is better" in sentence


def test_the_two_best_are_trained_with_further_seeds_on_validation_only(config, tmp_path):
    result = tune(config, GRID, out=tmp_path, seeds=3)
    table = pl.read_csv(tmp_path / "seeds" / "results.csv")
    assert table.select("rank", "seed").rows() == [(1, 2025), (1, 2026), (2, 2025), (2, 2026)]
    assert not [column for column in table.columns if "test" in column]
    assert len(result.trials) == 2


def test_finished_trials_are_not_trained_again_and_new_ones_are(searched, config):
    events = []
    again = tune(config, GRID, out=searched.directory, listener=events.append)
    assert events == []
    assert again.metrics == searched.metrics
    wider = {**GRID, "loss.temperature": [0.1, 0.15]}
    more = tune(config, wider, out=searched.directory, listener=events.append)
    assert len(more.trials) == 4
    assert len(ended(events)) == 2


def test_search_is_resumed_after_an_interruption_to_the_same_numbers(searched, config, tmp_path):
    def interrupt(event):
        if isinstance(event, EpochFinished) and event.epoch == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(TrainingInterrupted):
        tune(config, GRID, out=tmp_path, listener=interrupt)
    result = tune(config, GRID, out=tmp_path)
    assert result.metrics["test"] == searched.metrics["test"]
    assert [trial.value for trial in result.trials] == [
        trial.value for trial in searched.trials[:2]
    ]


def test_budget_of_a_grid_chooses_nothing_before_its_end(config, tmp_path, searched):
    result = tune(config, GRID, out=tmp_path, effort=Effort(budget_seconds=0))
    assert not result.is_complete
    assert result.metrics == {}
    assert {trial.state for trial in result.trials} == {"waiting"}
    assert not (tmp_path / "best.toml").exists()
    assert tune(config, GRID, out=tmp_path).metrics["test"] == searched.metrics["test"]


def test_all_trials_have_the_number_of_epochs_that_auto_stands_for(config, tmp_path):
    few = {"training.epochs": "auto", "sampling.batch_pairs": 8, "training.patience": 1}
    config = RunConfig.from_settings(few, base=config)
    steps = len(build_batches(config.resolved(), load_training_data(config.resolved())))
    result = tune(config, GRID, out=tmp_path)
    assert chosen_config(result).training.epochs == max(10, -(-1600 // steps))


def test_spaces_that_make_no_sense_are_refused_before_anything_is_trained(config, tmp_path):
    with pytest.raises(ConfigError, match="`auto` goes beside the space"):
        tune(config, {"training.epochs": ["auto", 3]}, out=tmp_path)
    with pytest.raises(ConfigError, match="cannot be searched with a pruner"):
        tune(config, {"training.epochs": [2, 3]}, effort=Effort(pruner="median"))
    with pytest.raises(ConfigError, match="evaluated on different data"):
        tune(config, {"data.split_seed": [0, 1]})
    with pytest.raises(ConfigError, match="`temperature` must be positive"):
        tune(config, {"loss.temperature": [0.1, -1.0]})
    with pytest.raises(ConfigError, match="no value for `loss"):
        tune(config, {"loss.temperature": []})
    with pytest.raises(ConfigError, match="is a range"):
        tune(config, {"loss.temperature": Range(0.1, 0.2)}, effort=Effort(sampler="grid"))
    with pytest.raises(ConfigError, match="nothing to search"):
        tune(config, {})
    assert not list(tmp_path.glob("trials/*"))


def test_efforts_that_make_no_sense_are_refused():
    for wrong in ({"sampler": "magic"}, {"trials": 0}, {"sampler": "grid", "trials": 3}):
        with pytest.raises(ConfigError):
            Effort(**wrong)


def test_a_trial_that_diverges_is_noted_and_never_chosen(config, tmp_path):
    grid = {"training.learning_rate": [1e38, 0.1]}
    result = tune(config, grid, out=tmp_path)
    assert [trial.state for trial in result.trials] == ["finished", "failed"]
    assert "learning rate 1e+38" in result.trials[1].reason
    events = []
    tune(config, grid, out=tmp_path, listener=events.append)
    assert events == []


def test_a_search_in_which_everything_diverges_says_so(config):
    with pytest.raises(ConfigError, match="no trial could be trained"):
        tune(config, {"training.learning_rate": [1e38]})


def test_nothing_is_ever_chosen_on_the_test_part(config):
    for settings in (
        {"data.validation": "none"},
        {"data.split": "popularity", "evaluation.protocol": "paper"},
    ):
        with pytest.raises(ConfigError, match="never chooses on the test part"):
            tune(RunConfig.from_settings(settings, base=config), GRID)


def test_refitting_is_for_what_was_chosen(config):
    with pytest.raises(ConfigError, match="refit what it chose"):
        tune(RunConfig.from_settings({"training.refit": True}, base=config), GRID)


def test_metric_and_length_can_be_chosen(config):
    result = tune(config, {"training.learning_rate": [0.1]}, metric="recall@7")
    assert result.metrics["validation"]["recall@7"] == result.best.value
    with pytest.raises(ConfigError, match="`metric` must be one of"):
        tune(config, GRID, metric="accuracy")


SPACE = {"training.learning_rate": Range(1e-3, 0.3, log=True), "loss.temperature": [0.1, 0.2]}


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_samplers_propose_as_many_different_trials_as_asked_for(config, tmp_path, sampler):
    effort = Effort(sampler=sampler, trials=4)
    result = tune(config, SPACE, out=tmp_path, effort=effort)
    assert len({trial.key for trial in result.trials}) == 4
    assert result.best.value == max(trial.value for trial in result.trials)
    for trial in result.trials:
        assert 1e-3 <= trial.settings["training.learning_rate"] <= 0.3
    # More of them continue the search; the same number of them changes nothing.
    events = []
    more = Effort(sampler=sampler, trials=6)
    tune(config, SPACE, out=tmp_path, effort=more, listener=events.append)
    assert len(ended(events)) == 2


def test_a_sampler_stops_where_there_is_nothing_new(config, tmp_path):
    effort = Effort(sampler="random", trials=50)
    result = tune(config, {"loss.temperature": [0.1, 0.2, 0.4]}, out=tmp_path, effort=effort)
    assert result.is_complete
    assert sorted(t.settings["loss.temperature"] for t in result.trials) == [0.1, 0.2, 0.4]


def test_a_stopped_search_proposes_what_it_would_have_proposed(config, tmp_path):
    effort = Effort(sampler="tpe", trials=4)
    whole = tune(config, SPACE, out=tmp_path / "whole", effort=effort)
    tune(config, SPACE, out=tmp_path / "parts", effort=Effort(sampler="tpe", trials=2))
    parts = tune(config, SPACE, out=tmp_path / "parts", effort=effort)
    assert [trial.key for trial in parts.trials] == [trial.key for trial in whole.trials]


def test_a_budget_alone_lets_a_sampler_choose_among_what_is_finished(config, tmp_path):
    effort = Effort(sampler="random", budget_seconds=2.0)
    result = tune(config, SPACE, out=tmp_path, effort=effort)
    assert result.is_complete
    assert result.metrics["test"]


def test_a_sampler_keeps_to_one_space(config, tmp_path):
    effort = Effort(sampler="random", trials=1)
    tune(config, SPACE, out=tmp_path, effort=effort)
    with pytest.raises(ConfigError, match="`space` = "):
        tune(config, {"loss.temperature": [0.3]}, out=tmp_path, effort=effort)


def climb(attempt):
    """A run that rises by the value of the cell in each of 27 epochs."""
    attempt.listen(TrainingStarted(27, 1, 0, 0))
    for epoch in range(1, 28):
        if attempt.pause(epoch - 1):
            return {"trained_epochs": epoch - 1, "is_finished": False}
        value = epoch * attempt.cell.task
        attempt.listen(EpochFinished(epoch, 0.0, 0.0, value, is_best=True))
    return {"trained_epochs": 27, "validation": {"ndcg@20": value}}


@pytest.mark.parametrize("pruner", ["median", "hyperband", "halving"])
def test_pruners_give_up_trials_that_are_behind_and_never_the_best(tmp_path, pruner):
    slopes = [1.0, 0.9, 0.8, 0.7, 0.6, 0.1, 0.2, 0.3, 0.4, 0.5]
    cells = [Cell(f"{slope}", {"slope": slope}, slope) for slope in slopes]
    study = Study(tmp_path, kind="tuning")
    todo = Listed(study, cells, pruning=Pruning(pruner, epochs=27, validate_every=1))
    assert Worker(todo, climb, Clock(None)).run()
    trials = todo.trials()
    states = {trial.settings["slope"]: trial.state for trial in trials}
    assert states[1.0] == "finished"
    assert "pruned" in states.values()
    for trial in trials:
        if trial.state == "pruned":
            assert 2 <= trial.found["trained_epochs"] < 27
            assert len(trial.curve) == trial.found["trained_epochs"]
            assert trial.settings["slope"] < 1.0


def test_a_pruned_run_is_paused_and_the_rest_is_chosen_from(config, tmp_path):
    # Values at the second epoch: 0.231 four times, 0.227, and 0.178 for the last one.
    longer = RunConfig.from_settings({"training.epochs": 9}, base=config)
    rates = [1e-6, 2e-6, 1e-3, 2e-3, 0.01, 0.3]
    effort = Effort(pruner="median")
    result = tune(longer, {"training.learning_rate": rates}, out=tmp_path, effort=effort)
    states = {trial.settings["training.learning_rate"]: trial.state for trial in result.trials}
    assert states == {**dict.fromkeys(rates[:-1], "finished"), 0.3: "pruned"}
    [left] = [trial for trial in result.trials if trial.state == "pruned"]
    assert left.found["trained_epochs"] == 2
    # What a pruner gave up can still be resumed.
    assert (left.directory / "checkpoint.safetensors").exists()
    assert result.metrics["test"] == run(chosen_config(result)).metrics["test"]


def test_two_searches_at_once_share_the_trials(config, tmp_path, searched, storage):
    events = []
    # Locks belong to an open file, so two threads keep out of each other's way as processes do.
    with ThreadPoolExecutor(2) as pool:
        searches = []
        for _ in range(2):
            searches.append(
                pool.submit(
                    tune, config, GRID, out=tmp_path, listener=events.append, storage=storage
                )
            )
        results = [search.result(timeout=120) for search in searches]
    assert len(ended(events)) == len(set(ended(events))) == 2
    assert [result.metrics["test"] for result in results] == [searched.metrics["test"]] * 2


@pytest.mark.slow
def test_workers_of_a_search_share_its_trials(config, tmp_path):
    effort = Effort(sampler="random", trials=6, workers=2)
    events = []
    result = tune(config, SPACE, out=tmp_path, effort=effort, listener=events.append)
    assert len(ended(events)) == len(set(ended(events))) == 6
    assert result.is_complete


@pytest.mark.parametrize("loss", [*LOSSES.names(), "psl-relu@20"])
def test_every_loss_has_a_space_of_its_own_that_makes_cells_and_can_be_widened(loss):
    config = RunConfig.from_settings({"loss.name": loss})
    candidate = Trained(config)
    space = named_space(candidate, "paper")
    assert "training.learning_rate" in space
    ends = {name: (values[0], values[-1]) for name, values in space.items()}
    keys = {candidate.cell(settings).key for settings in combinations(ends)}
    assert len(keys) == 2 ** len(space)
    for name, wide in named_space(candidate, "wide").items():
        assert isinstance(wide, Range), name
        positive = [value for value in space[name] if value > 0]
        assert wide.low <= min(positive)
        assert wide.high >= max(positive)
        candidate.cell({name: wide.low})
        candidate.cell({name: wide.high})


def test_inside_form_is_searched_up_to_temperature_1():
    config = RunConfig.from_settings({"loss.name": "psl-tanh", "loss.form": "inside"})
    assert max(named_space(Trained(config), "paper")["loss.temperature"]) == 1.0


def test_key_of_a_cell_depends_on_its_configuration_alone():
    settings = {"loss.temperature": 0.2, "training.learning_rate": 0.01}
    key = Trained(RunConfig()).cell(settings).key
    spelt_out = RunConfig.from_settings({"loss.form": "outside", "backbone.dimension": 64})
    assert Trained(spelt_out).cell(settings).key == key
    assert Trained(RunConfig()).cell(dict(reversed(settings.items()))).key == key
    assert Trained(RunConfig.from_settings({"training.seed": 1})).cell(settings).key != key


def test_a_space_is_read_from_a_file(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(
        '"training.learning_rate" = { low = 0.001, high = 0.1, log = true }\n'
        "[loss]\ntemperature = [0.1, 0.2]\n[backbone]\ndimension = {low=8, high=64, integer=true}\n"
    )
    assert read_space(path) == {
        "training.learning_rate": Range(0.001, 0.1, log=True),
        "loss.temperature": [0.1, 0.2],
        "backbone.dimension": Range(8, 64, integer=True),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[loss]\ntemperature = 0.1", "`loss.temperature` in .* must be a list"),
        ("[loss]\ntemperature = {low=1}", "must have `low` and `high`"),
        ("[loss]\ntemperature = {low=1, high=2, step=1}", "must have `low` and `high`"),
        ("[loss]\ntemperature = {low=2, high=1}", "`low` < `high`"),
        ("[loss]\ntemperature = {low=0, high=1, log=true}", "positive `low`"),
    ],
)
def test_a_file_that_is_no_space_is_refused(tmp_path, text, message):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_space(path)
