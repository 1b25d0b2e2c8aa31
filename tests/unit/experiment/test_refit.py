"""Training again on everything once the epoch is chosen, and starting from an earlier run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pslrec.artifacts import read_run, read_tensors
from pslrec.config import RunConfig
from pslrec.data import Dataset, Interactions
from pslrec.data._interactions import concatenate
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.data.splits import carve_validation, split_by_name
from pslrec.errors import ConfigError
from pslrec.experiment import MemoryStore, TrainingData, build_model, evaluate_run, run
from pslrec.experiment._running import build_trainer
from pslrec.inference import TrainedModel
from pslrec.training import TrainingInterrupted, TrainingOptions
from pslrec.training._events import EpochFinished, Event

SETTINGS: dict[str, Any] = {
    "sampling.negatives": "catalog",
    "backbone.dimension": 8,
    "training.epochs": 4,
    "training.validate_every": 2,
    "loss.temperature": 0.2,
}


def tastes(n_users: int = 150) -> Interactions:
    return planted_tastes(n_users, 80, model=TasteModel(n_topics=4, drift=0.9), seed=3).interactions


@pytest.fixture
def dataset() -> Dataset:
    return carve_validation(split_by_name(tastes(), "iid"), "fraction")


def configured(**changes: Any) -> RunConfig:
    return RunConfig.from_settings({**SETTINGS, **changes})


def test_a_refit_is_the_training_on_both_parts_for_the_chosen_epochs(
    dataset: Dataset, tmp_path: Path
) -> None:
    refitted = run(configured(**{"training.refit": True}), data=dataset, out=tmp_path / "run")
    assert dataset.validation is not None
    train = Interactions(
        np.concatenate([dataset.train.users, dataset.validation.users]),
        np.concatenate([dataset.train.items, dataset.validation.items]),
        dataset.user_vocabulary,
        dataset.item_vocabulary,
    )
    whole = replace(dataset, train=train, validation=None)
    epochs = refitted.metrics["best_epoch"]
    plain = run(configured(**{"training.epochs": epochs, "data.validation": "none"}), data=whole)
    torch.testing.assert_close(refitted.model.tables["users"], plain.model.tables["users"])
    assert refitted.metrics["test"] == pytest.approx(plain.metrics["test"])
    assert refitted.metrics["refit"]["epochs"] == epochs
    assert refitted.metrics["refit"]["pairs"] == len(train)


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """Fills with the epoch and the share of the learning rate of every pass that is trained."""
    found: list[tuple[int, float]] = []
    factor_of = TrainingOptions.rate_factor

    def watched(options: TrainingOptions, epoch: int) -> float:
        factor = factor_of(options, epoch)
        found.append((epoch, factor))
        return factor

    monkeypatch.setattr(TrainingOptions, "rate_factor", watched)
    return found


LENGTHS: dict[str, dict[str, Any]] = {
    "a number of epochs": {"training.epochs": 25, "training.learning_rate": 0.2},
    "stopped by patience": {
        "training.epochs": 60,
        "training.patience": 1,
        "training.learning_rate": 0.1,
    },
    "auto": {"training.epochs": "auto", "training.learning_rate": 0.1},
    "auto stopped by patience": {
        "training.epochs": "auto",
        "training.patience": 1,
        "training.learning_rate": 0.1,
    },
}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_a_refit_repeats_the_learning_rates_that_validation_chose(
    dataset: Dataset, rates: list[tuple[int, float]], length: str, schedule: str
) -> None:
    """It squeezed the schedule into the chosen epochs: after a choice of 5 in 50, the fifth had a rate near 0."""
    settings = {**LENGTHS[length], "training.schedule": schedule, "training.refit": True}
    config = configured(**settings, **{"training.validate_every": 1})
    metrics = run(config, data=dataset).metrics
    n_first, n_again = metrics["trained_epochs"], metrics["refit"]["epochs"]
    assert 1 <= n_again < n_first, "the case must choose an epoch before the last"
    first, again = rates[:n_first], rates[n_first:]
    assert again == first[:n_again]
    # The horizon is the length that was asked for, whoever ended the first training.
    horizon = metrics["refit"]["horizon"]
    asked = settings["training.epochs"]
    assert horizon == (100 if asked == "auto" else asked)
    assert (n_first < horizon) == ("training.patience" in settings)


def test_a_refit_stops_a_longer_training_on_both_parts_at_the_chosen_epoch(
    dataset: Dataset,
) -> None:
    settings = {
        "training.epochs": 12,
        "training.schedule": "cosine",
        "training.learning_rate": 0.05,
    }
    config = configured(**settings, **{"training.validate_every": 1})
    refitted = run(RunConfig.from_settings({"training.refit": True}, base=config), data=dataset)
    epochs = refitted.metrics["refit"]["epochs"]
    assert epochs < 12
    assert dataset.validation is not None
    both = concatenate([dataset.train, dataset.validation])
    whole = TrainingData(replace(dataset, train=both, validation=None), both)
    longer = build_trainer(config.resolved(), whole, MemoryStore())
    longer.fit(pause=lambda epoch: epoch == epochs)
    torch.testing.assert_close(refitted.model.tables["users"], longer.backbone().users.detach())
    torch.testing.assert_close(refitted.model.tables["items"], longer.backbone().items.detach())


@pytest.mark.parametrize("length", ["stopped by patience", "auto stopped by patience"])
def test_a_resumed_refit_keeps_the_horizon(
    dataset: Dataset, tmp_path: Path, rates: list[tuple[int, float]], length: str
) -> None:
    settings = {**LENGTHS[length], "training.schedule": "cosine", "training.refit": True}
    config = configured(**settings, **{"training.validate_every": 1})
    whole = run(config, data=dataset)
    n_first = whole.metrics["trained_epochs"]
    unbroken = rates[n_first:]
    assert len(unbroken) > 1, "there must be an epoch left to resume"
    rates.clear()
    config = RunConfig.from_settings({"training.checkpoint_seconds": 0.0}, base=config)
    finished: list[EpochFinished] = []

    def stop(event: Event) -> None:
        finished.extend([event] if isinstance(event, EpochFinished) else [])
        if len(finished) == n_first + 1:  # after the first epoch of the second training
            raise TrainingInterrupted("stopped")

    with pytest.raises(TrainingInterrupted):
        run(config, data=dataset, out=tmp_path / "stopped", listeners=[stop])
    n_before = len(rates)
    resumed = run(config, data=dataset, out=tmp_path / "stopped", resume=True)
    assert rates[n_first:n_before] == unbroken[:1]
    # The pass that was under way is begun again where its checkpoint was written.
    assert rates[n_before:] in (unbroken, unbroken[1:])
    assert resumed.metrics["refit"] == whole.metrics["refit"]
    torch.testing.assert_close(
        resumed.model.tables["users"], whole.model.tables["users"], rtol=0, atol=0
    )


def test_a_refit_keeps_what_the_choice_was_made_by(dataset: Dataset, tmp_path: Path) -> None:
    plain = run(configured(), data=dataset)
    run(configured(**{"training.refit": True}), data=dataset, out=tmp_path / "run")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["validation"] == pytest.approx(plain.metrics["validation"])
    assert metrics["refit"]["test_before"] == pytest.approx(plain.metrics["test"])
    selected = read_tensors(tmp_path / "run" / "selected.safetensors")[0]
    torch.testing.assert_close(selected["users"], plain.model.tables["users"])
    model = TrainedModel.load(tmp_path / "run")
    assert model.seen.lengths.sum() == metrics["refit"]["pairs"]


def test_a_refit_that_was_stopped_goes_on_to_the_same_model(
    dataset: Dataset, tmp_path: Path
) -> None:
    settings = configured(**{"training.refit": True, "training.checkpoint_seconds": 0.0})
    whole = run(settings, data=dataset, out=tmp_path / "whole")
    finished: list[EpochFinished] = []

    def stop(event: Event) -> None:
        finished.extend([event] if isinstance(event, EpochFinished) else [])
        if (
            len(finished) == SETTINGS["training.epochs"] + 1
        ):  # in the first epoch of the second training
            raise TrainingInterrupted("stopped")

    with pytest.raises(TrainingInterrupted):
        run(settings, data=dataset, out=tmp_path / "stopped", listeners=[stop])
    resumed = run(settings, data=dataset, out=tmp_path / "stopped", resume=True)
    torch.testing.assert_close(
        resumed.model.tables["users"], whole.model.tables["users"], rtol=0, atol=0
    )
    assert resumed.metrics["test"] == whole.metrics["test"]
    assert resumed.metrics["refit"] == whole.metrics["refit"]


def test_a_refitted_run_is_evaluated_again_without_its_validation_part(tmp_path: Path) -> None:
    settings = RunConfig.from_settings(
        {**SETTINGS, "data.source": "synthetic", "training.refit": True, "training.epochs": 1}
    )
    result = run(settings, out=tmp_path / "run")
    again = evaluate_run(tmp_path / "run", k=(5, 20, 50))
    assert again["test"] == pytest.approx(result.metrics["test"])
    assert again["validation"] == {}


def test_a_refit_without_a_validation_part_is_refused(dataset: Dataset) -> None:
    settings = configured(**{"training.refit": True, "data.validation": "none"})
    with pytest.raises(
        ConfigError,
        match=r"`training.refit` trains on the validation part as well, and there is none",
    ):
        run(settings, data=replace(dataset, validation=None))


def started(train: Interactions, old: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Users and items as a warm start has them before any step."""
    backbone, _ = build_model(configured(**{"training.warm_start": str(old)}), train)
    return backbone.user_table.detach(), backbone.item_table.detach()


def old_tables(old: Path) -> tuple[torch.Tensor, torch.Tensor]:
    tensors = read_tensors(old / "model.safetensors")[0]
    return tensors["users"], tensors["items"]


def test_a_warm_start_keeps_rows_by_external_id_where_histories_stay(
    dataset: Dataset, tmp_path: Path
) -> None:
    run(configured(), data=dataset, out=tmp_path / "old")
    frame = dataset.train.select(dataset.train.users >= 50).to_frame()
    users, items = started(Interactions.from_ids(frame["user"], frame["item"]), tmp_path / "old")
    before_users, before_items = old_tables(tmp_path / "old")
    torch.testing.assert_close(users, before_users[50:])
    # Items have lost the neighbours who are gone.
    assert not torch.allclose(items[:20], before_items[:20])


def test_a_warm_start_knows_ids_that_have_become_texts(dataset: Dataset, tmp_path: Path) -> None:
    """As all ids of a log do once one of them is text."""
    pairs = dataset.train
    run(configured(), data=Interactions.from_ids(pairs.users, pairs.items), out=tmp_path / "old")
    old = read_run(tmp_path / "old")
    users = [*map(str, pairs.users), "007"]
    items = [*map(str, pairs.items), "0"]
    log = Interactions.from_ids(users, items)
    started_users, started_items = started(log, tmp_path / "old")
    order = [old.users.find_given(name) for name in log.user_vocabulary.series.to_list()]
    assert order.count(None) == 1
    known = [row for row, place in enumerate(order) if place is not None]
    learnt = torch.stack([old.user_table[order[row]] for row in known])
    similarity = torch.cosine_similarity(started_users[known], learnt)
    assert similarity.mean() > 0.9
    same = [old.items.find_given(name) for name in log.item_vocabulary.series.to_list()]
    assert None not in same
    assert torch.cosine_similarity(started_items, old.item_table[same]).mean() > 0.9


@pytest.mark.parametrize("is_refitted", [False, True])
def test_a_warm_start_takes_known_users_to_their_new_items(
    tmp_path: Path, is_refitted: bool
) -> None:
    log = planted_tastes(400, 120, model=TasteModel(n_topics=4), seed=5).interactions
    is_later = np.arange(len(log)) % 5 == 0
    run(
        configured(**{"training.refit": is_refitted}),
        data=log.select(~is_later),
        out=tmp_path / "old",
    )
    later_users, later_items = (torch.tensor(rows[is_later]) for rows in (log.users, log.items))
    scores = [
        torch.cosine_similarity(users[later_users], items[later_items]).mean()
        for users, items in (old_tables(tmp_path / "old"), started(log, tmp_path / "old"))
    ]
    assert scores[1] > scores[0] + 0.02


def test_new_users_of_a_warm_start_have_rows_that_recommend_at_once(tmp_path: Path) -> None:
    """After a spectral start users lie elsewhere than in the middle of their items, and so must the new ones."""
    settings = {
        "backbone.initialization": "spectral",
        "training.learning_rate": 1e-3,
        "training.epochs": 2,
    }
    log = planted_tastes(400, 120, model=TasteModel(n_topics=4), seed=5).interactions
    today = carve_validation(split_by_name(log, "iid"), "fraction")
    frame = today.train.select(today.train.users >= 80).to_frame()
    run(
        configured(**settings),
        data=Interactions.from_ids(frame["user"], frame["item"]),
        out=tmp_path / "old",
    )
    warm = {"training.warm_start": str(tmp_path / "old"), "training.learning_rate": 1e-12}
    results = [
        run(configured(**{**settings, **changes}), data=today).test for changes in (warm, {})
    ]
    of_new = [result.per_user["ndcg@20"][result.users < 80].mean() for result in results]
    assert of_new[0] > 0.9 * of_new[1] > 0


def _log_until(log: Interactions, share: float) -> Interactions:
    assert log.timestamps is not None
    frame = log.to_frame().sort("timestamp").head(int(share * len(log)))
    return Interactions.from_ids(frame["user"], frame["item"], timestamps=frame["timestamp"])


@pytest.mark.parametrize(("refit", "share"), [(False, 0.5), (True, 1.0)])
def test_a_warm_start_says_what_the_earlier_run_had_learnt_already(
    dataset: Dataset, tmp_path: Path, caplog: pytest.LogCaptureFixture, refit: bool, share: float
) -> None:
    assert dataset.validation is not None
    kept = np.arange(len(dataset.validation)) < len(dataset.validation) // 2 * 2
    today = replace(dataset, validation=dataset.validation.select(kept))
    (first, second) = (kept & (np.arange(len(kept)) % 2 == part) for part in (0, 1))
    learnt = concatenate([dataset.train, dataset.validation.select(first)])
    earlier = replace(dataset, train=learnt, validation=dataset.validation.select(second))
    run(
        configured(**{"training.refit": refit, "training.epochs": 2}),
        data=earlier,
        out=tmp_path / "old",
    )
    assert "learnt_before" not in json.loads((tmp_path / "old" / "metrics.json").read_text())
    warm = configured(**{"training.warm_start": str(tmp_path / "old"), "training.epochs": 2})
    metrics = run(warm, data=today).metrics
    assert metrics["learnt_before"] == {"validation": pytest.approx(share), "test": 0.0}
    assert [
        record.message.partition(" pairs")[0]
        for record in caplog.records
        if record.levelname == "WARNING"
    ] == [f"{100 * share:.1f} % of the validation"]


@pytest.mark.parametrize("backbone", ["mf", pytest.param("lightgcn", marks=pytest.mark.slow)])
def test_a_warm_start_converges_in_a_fraction_of_the_epochs(tmp_path: Path, backbone: str) -> None:
    """Yesterday's log gives a model; with today's, trained on a little longer log, a few epochs do.

    Today's validation part is held back from yesterday's model as well, which would know the answers else.
    """
    log = planted_tastes(
        400, 120, model=TasteModel(n_topics=4), with_timestamps=True, seed=5
    ).interactions
    settings = {
        "backbone.name": backbone,
        "training.epochs": 20,
        "training.learning_rate": 0.1,
    }
    today = carve_validation(split_by_name(log, "temporal"), "fraction")
    run(configured(**settings), data=_log_until(today.train, 0.9), out=tmp_path / "old")
    cold = _values(configured(**{**settings, "training.validate_every": 1}), today)
    warm = _values(
        configured(
            **{
                **settings,
                "training.validate_every": 1,
                "training.warm_start": str(tmp_path / "old"),
            }
        ),
        today,
    )
    wanted = 0.97 * max(cold)
    assert _first(warm, wanted) <= _first(cold, wanted) / 3


def _values(config: RunConfig, dataset: Dataset) -> list[float]:
    found: list[float] = []

    def listen(event: Event) -> None:
        if isinstance(event, EpochFinished) and event.validation is not None:
            found.append(event.validation)

    metrics = run(config, data=dataset, listeners=[listen]).metrics
    assert "learnt_before" not in metrics or not any(metrics["learnt_before"].values())
    return found


def _first(values: list[float], wanted: float) -> int:
    return next(
        (epoch for epoch, value in enumerate(values, 1) if value >= wanted), len(values) + 1
    )


def test_a_warm_start_from_another_backbone_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    run(configured(), data=dataset, out=tmp_path / "old")
    start = {"training.warm_start": str(tmp_path / "old")}
    with pytest.raises(ConfigError, match=r"set `backbone.name=\w+` and `backbone.dimension=\d+`"):
        run(configured(**start, **{"backbone.name": "lightgcn"}), data=dataset)
    with pytest.raises(ConfigError, match="has `mf` with 8, this one `mf` with 16"):
        run(configured(**start, **{"backbone.dimension": 16}), data=dataset)


def test_a_warm_start_with_nobody_in_common_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    run(configured(), data=dataset, out=tmp_path / "old")
    frame = tastes().to_frame()
    strangers = Interactions.from_ids(
        ["x" + str(each) for each in frame["user"]], ["y" + str(each) for each in frame["item"]]
    )
    with pytest.raises(ConfigError, match="no user and no item of the training data is in the run"):
        run(
            configured(**{"training.warm_start": str(tmp_path / "old")}),
            data=carve_validation(split_by_name(strangers, "iid"), "fraction"),
        )
