"""The loop: phases, validation, early stopping, divergence, interruption."""

import math
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pslrec.errors import ConfigError
from pslrec.losses import LOSSES
from pslrec.training import Progress, TrainingDivergedError, TrainingInterrupted, TrainingOptions
from pslrec.training import _trainer as trainer_module
from pslrec.training._events import (
    BatchFinished,
    CheckpointSaved,
    EpochFinished,
    EstimateMade,
    TrainingStarted,
)
from pslrec.training._options import SCHEDULES


def state_by_epoch(run, *names: str) -> list[dict[str, torch.Tensor]]:
    """Copies of the modules' state after each epoch, the one before the first epoch in front."""
    modules = {name: getattr(run, name) for name in names}

    def copy() -> dict[str, torch.Tensor]:
        return {
            f"{name}.{key}": value.clone()
            for name, module in modules.items()
            for key, value in module.state_dict().items()
        }

    states = [copy()]
    run.trainer._listeners = (
        lambda event: states.append(copy()) if isinstance(event, EpochFinished) else None,
    )
    run.trainer.fit()
    return states


def moved(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor], prefix: str) -> bool:
    return any(
        not torch.equal(before[name], after[name]) for name in before if name.startswith(prefix)
    )


@pytest.mark.parametrize("backbone_name", ["mf", "lightgcn", "xsimgcl"])
@pytest.mark.parametrize("name", [*LOSSES.names(), "psl-relu@3", "bsl@3"])
def test_every_loss_trains_every_backbone(build_run, name: str, backbone_name: str) -> None:
    run = build_run(name, backbone_name, epochs=4, learning_rate=0.05)
    progress = run.trainer.fit()
    epochs = [event for event in run.events if isinstance(event, EpochFinished)]
    assert [event.epoch for event in epochs] == [1, 2, 3, 4]
    assert progress.is_finished
    assert epochs[3].loss < epochs[0].loss
    assert all(torch.isfinite(tensor).all() for tensor in run.store.best.values())


def test_the_adversary_alternates_with_the_model(build_run) -> None:
    run = build_run("adv-infonce", epochs=6, loss_options={"adversarial_interval": 3})
    states = state_by_epoch(run, "backbone", "loss")
    for epoch, (before, after) in enumerate(pairwise(states)):
        is_adversarial = (epoch + 1) % 3 == 0
        assert moved(before, after, "backbone.") == (not is_adversarial)
        assert moved(before, after, "loss.") == is_adversarial


def test_the_original_adversary_passes_before_the_model(build_run) -> None:
    run = build_run(
        "adv-infonce", epochs=4, loss_options={"variant": "original", "adversarial_interval": 5}
    )
    run.trainer.fit()
    batches = [
        (event.epoch, event.batch) for event in run.events if isinstance(event, BatchFinished)
    ]
    n_batches = len(run.trainer.batches)
    # Epoch 2, counted from 0, has two passes: 2 + 3 is divisible by 5.
    assert [epoch for epoch, _ in batches].count(2) == 2 * n_batches
    assert [epoch for epoch, _ in batches].count(1) == n_batches


def test_the_adversary_climbs(build_run) -> None:
    options = {"adversarial_interval": 2, "adversarial_learning_rate": 0.05}
    run = build_run("adv-infonce", epochs=2, loss_options=options, learning_rate=1e-9)
    run.trainer.fit()
    first, second = (event.loss for event in run.events if isinstance(event, EpochFinished))
    assert second > first + 0.01


@pytest.mark.parametrize(("name", "options"), [("sl@k", {"k": 3}), ("psl-relu@3", {})])
def test_thresholds_move_in_their_epochs_only(build_run, name: str, options: Any) -> None:
    run = build_run(name, epochs=7, loss_options={"update_every": 3, **options})
    states = [state["loss.thresholds.values"] for state in state_by_epoch(run, "loss")]
    has_moved = [not torch.equal(before, after) for before, after in pairwise(states)]
    assert has_moved == [False, False, True, False, False, True, False]
    assert bool((states[0] == 0).all())


def test_llpauc_scalars_stay_in_their_ranges(build_run) -> None:
    run = build_run("llpauc", epochs=8, learning_rate=0.5)
    ranges = {"positive_centre": (0, 1), "negative_centre": (0, 1), "positive_quantile": (-1, 4)}
    ranges |= {"negative_quantile": (0, 5), "margin": (-1, 1)}
    states = state_by_epoch(run, "loss")
    assert moved(states[0], states[-1], "loss.")
    for state in states[1:]:
        for name, (low, high) in ranges.items():
            assert low <= state[f"loss.scalars.{name}"].item() <= high


def test_noise_of_xsimgcl_is_drawn_anew_in_each_step_and_the_same_in_each_run(build_run) -> None:
    tables = []
    for _ in range(2):
        run = build_run("sl", "xsimgcl", epochs=2)
        run.trainer.fit()
        tables.append(run.store.best["user_table"])
    assert torch.equal(*tables)
    silent = build_run("sl", "xsimgcl", epochs=2)
    silent.backbone.noise = 0.0
    silent.trainer.fit()
    assert not torch.equal(tables[0], silent.store.best["user_table"])


class Validation:
    """Gives the values in turn, by epoch, and so gives them again to a resumed run."""

    def __init__(self, values: list[float]) -> None:
        self.values = values
        self.epoch = 0
        self.asked: list[int] = []

    def listen(self, event: object) -> None:
        if isinstance(event, TrainingStarted | BatchFinished):
            self.epoch = event.epoch + 1

    def __call__(self) -> float:
        self.asked.append(self.epoch)
        return self.values[self.epoch - 1]


def test_validation_is_looked_at_every_so_many_epochs_and_at_the_end(build_run) -> None:
    validation = Validation([0.1] * 8)
    run = build_run(epochs=8, validate_every=3, validate=validation, listener=validation.listen)
    run.trainer.fit()
    assert validation.asked == [3, 6, 8]
    values = [event.validation for event in run.events if isinstance(event, EpochFinished)]
    assert values == [None, None, 0.1, None, None, 0.1, None, 0.1]


def test_the_best_epoch_is_kept_and_ties_go_to_the_later_one(build_run) -> None:
    validation = Validation([0.1, 0.3, 0.2, 0.3, 0.1])
    run = build_run(epochs=5, validate_every=1, validate=validation, listener=validation.listen)
    tables = state_by_epoch(run, "backbone")
    # `state_by_epoch` took the listeners; start again with both.
    run = build_run(epochs=5, validate_every=1, validate=validation, listener=validation.listen)
    progress = run.trainer.fit()
    assert progress.best_epoch == run.store.best_epoch == 4
    assert progress.best_value == 0.3
    assert torch.equal(run.store.best["user_table"], tables[4]["backbone.user_table"])
    assert [event.is_best for event in run.events if isinstance(event, EpochFinished)] == [
        1,
        1,
        0,
        1,
        0,
    ]


def test_without_validation_the_last_epoch_is_the_best(build_run) -> None:
    run = build_run(epochs=3)
    assert run.trainer.fit().best_epoch == 3
    assert torch.equal(run.store.best["user_table"], run.backbone.user_table)


def test_a_validation_that_is_not_a_number_still_leaves_a_model(build_run) -> None:
    run = build_run(epochs=2, validate_every=1, validate=lambda: math.nan)
    assert run.trainer.fit().best_epoch == 2
    assert run.store.best


def test_early_stopping_waits_for_as_many_looks_as_patience_says(build_run) -> None:
    validation = Validation([0.1, 0.4, 0.3, 0.3, 0.3, 0.9])
    run = build_run(
        epochs=6, validate_every=1, patience=3, validate=validation, listener=validation.listen
    )
    progress = run.trainer.fit()
    assert validation.asked == [1, 2, 3, 4, 5]
    assert (progress.epoch, progress.best_epoch) == (5, 2)
    assert progress.is_finished


@pytest.mark.parametrize("validate_every", [1, 2, 3])
def test_patience_is_the_same_after_resuming_from_any_step(build_run, validate_every: int) -> None:
    values = [0.1, 0.5, 0.2, 0.4, 0.6, 0.36, 0.35, 0.34, 0.33, 0.32, 0.31, 0.3, 0.3, 0.9]
    settings = {
        "epochs": 14,
        "validate_every": validate_every,
        "patience": 2,
        "checkpoint_seconds": 0,
    }
    validation = Validation(values)
    whole = build_run(validate=validation, listener=validation.listen, **settings)
    expected = whole.trainer.fit()
    assert expected.epoch < 14
    for checkpoint in whole.store.checkpoints[::2]:
        validation = Validation(values)
        resumed = build_run(validate=validation, listener=validation.listen, **settings)
        resumed.store.start = checkpoint
        progress = resumed.trainer.fit()
        assert (progress.epoch, progress.best_epoch) == (expected.epoch, expected.best_epoch)
        assert progress.looks_since_best == expected.looks_since_best


@pytest.mark.filterwarnings("ignore")
def test_a_loss_that_diverges_stops_with_everything_one_needs_to_know(build_run) -> None:
    run = build_run(
        "bpr", learning_rate=1e30, weight_decay=1e-4, n_negatives=1, checkpoint_seconds=0
    )
    with pytest.raises(TrainingDivergedError) as caught:
        run.trainer.fit()
    message = str(caught.value)
    assert message.startswith("the loss became ")
    for part in (
        "epoch 1",
        "batch ",
        "`mf`",
        "`bpr` (surrogate='softplus')",
        "learning rate 1e+30",
        "decay 0.0001",
    ):
        assert part in message
    assert "seed 5" in message
    assert "the checkpoint of epoch 1 after batch" in message
    assert all(
        torch.isfinite(tensor).all() for tensor in run.store.checkpoints[-1].tensors.values()
    )


@pytest.mark.parametrize("name", ["psl-relu", "psl-atan", "sl", "bpr", "llpauc"])
def test_a_model_that_is_no_number_is_noticed_at_the_next_step(build_run, name: str) -> None:
    def spoil(event: object) -> None:
        if isinstance(event, BatchFinished) and (event.epoch, event.batch) == (0, 2):
            run.backbone.item_table.data.fill_(math.nan)

    run = build_run(name, listener=spoil)
    with pytest.raises(
        TrainingDivergedError, match=r"the loss became nan in epoch 1, batch 3.*no checkpoint"
    ):
        run.trainer.fit()


def test_a_spoilt_model_never_takes_the_place_of_a_good_checkpoint(build_run) -> None:
    def spoil(event: object) -> None:
        if isinstance(event, BatchFinished) and (event.epoch, event.batch) == (1, 2):
            run.backbone.item_table.data[3, 0] = math.inf

    run = build_run(listener=spoil, checkpoint_seconds=0)
    with pytest.raises(
        TrainingDivergedError,
        match=r"`backbone.item_table` became infinite or not a number in epoch 2, batch 2",
    ):
        run.trainer.fit()
    last = run.store.checkpoints[-1]
    assert (last.progress.epoch, last.progress.batch) == (1, 1)
    assert all(torch.isfinite(tensor).all() for tensor in last.tensors.values())


def test_a_spoilt_model_never_becomes_the_best(build_run) -> None:
    def spoil(event: object) -> None:
        if isinstance(event, BatchFinished) and (event.epoch, event.batch) == (
            1,
            len(run.trainer.batches),
        ):
            run.backbone.user_table.data[0, 0] = math.nan

    run = build_run(listener=spoil, validate=lambda: 1.0, validate_every=1)
    with pytest.raises(TrainingDivergedError, match=r"`backbone.user_table`"):
        run.trainer.fit()
    assert run.store.best_epoch == 1
    assert torch.isfinite(run.store.best["user_table"]).all()


def test_a_loss_without_a_value_stops_with_epoch_and_batch(build_run) -> None:
    run = build_run(
        "psl", loss_options={"surrogate": "atan", "form": "inside", "temperature": 0.005}
    )
    with pytest.raises(
        TrainingDivergedError, match=r"surrogate `atan` in the inside form .* in epoch \d, batch \d"
    ):
        run.trainer.fit()


def interrupting(number: int, *, epoch: int = 0, batch: int = 2):
    def listen(event: object) -> None:
        if isinstance(event, BatchFinished) and (event.epoch, event.batch) == (epoch, batch):
            os.kill(os.getpid(), number)

    return listen


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_signal_saves_and_stops(build_run, number: signal.Signals) -> None:
    before = signal.getsignal(number)
    run = build_run(listener=interrupting(number))
    with pytest.raises(
        TrainingInterrupted, match="stopped in epoch 1 after batch 2; all of it is saved"
    ):
        run.trainer.fit()
    assert signal.getsignal(number) is before
    assert run.store.checkpoints[-1].progress.batch == 2


def test_an_interrupted_trainer_can_go_on(build_run) -> None:
    whole = build_run()
    whole.trainer.fit()
    run = build_run(listener=interrupting(signal.SIGINT))
    with pytest.raises(TrainingInterrupted):
        run.trainer.fit()
    run.store.start = run.store.checkpoints[-1]
    run.trainer.fit()
    assert torch.equal(run.store.best["user_table"], whole.store.best["user_table"])


def test_a_signal_after_the_last_step_is_not_forgotten(build_run) -> None:
    def listen(event: object) -> None:
        if isinstance(event, EpochFinished) and event.epoch == run.trainer.options.epochs:
            os.kill(os.getpid(), signal.SIGTERM)

    run = build_run(listener=listen)
    with pytest.raises(TrainingInterrupted, match="stopped after epoch"):
        run.trainer.fit()
    run.store.start = run.store.checkpoints[-1]
    assert run.trainer.fit().is_finished


def test_a_second_interrupt_stops_at_once(build_run) -> None:
    def listen(event: object) -> None:
        if isinstance(event, BatchFinished):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    run = build_run(listener=listen)
    with pytest.raises(KeyboardInterrupt):
        run.trainer.fit()


def test_events_tell_the_story_in_order(build_run) -> None:
    run = build_run(epochs=1, checkpoint_seconds=0, validate=lambda: 0.5)
    run.trainer.fit()
    n_batches = len(run.trainer.batches)
    story = [event for event in run.events if not isinstance(event, EstimateMade)]
    assert story[0] == TrainingStarted(n_epochs=1, n_batches=n_batches, epoch=0, batch=0)
    assert [type(event) for event in story[1:3]] == [BatchFinished, CheckpointSaved]
    assert [type(event) for event in story[-2:]] == [EpochFinished, CheckpointSaved]
    losses = [event.loss for event in story if isinstance(event, BatchFinished)]
    assert story[-2].loss == pytest.approx(sum(losses) / n_batches)


def test_drawing_negatives_counts_as_time_of_the_epoch(
    build_run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = build_run(epochs=1)
    draw = run.trainer.batches._batch
    monkeypatch.setattr(run.trainer.batches, "_batch", lambda *a: time.sleep(0.02) or draw(*a))
    run.trainer.fit()
    (epoch,) = [event for event in run.events if isinstance(event, EpochFinished)]
    assert epoch.seconds >= 0.02 * len(run.trainer.batches)


def test_the_time_of_an_epoch_is_that_of_its_steps_and_of_settling_after_them(
    build_run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that only steps and settling move, and that does not start at 0."""
    now = [1000.0]

    def taking(seconds: float, work: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            now[0] += seconds
            return work(*arguments)

        return watched

    run = build_run(epochs=3, validate=taking(64.0, lambda: 0.5), validate_every=1)
    step = run.trainer._model_step
    monkeypatch.setattr(trainer_module.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(step, "loss_of", taking(0.5, step.loss_of))
    monkeypatch.setattr(step, "settle", taking(8.0, step.settle))
    progress = run.trainer.fit()
    seconds = [event.seconds for event in run.events if isinstance(event, EpochFinished)]
    expected = 0.5 * len(run.trainer.batches) + 8.0
    assert seconds == [expected] * 3
    assert progress.total_seconds == 3 * expected


def test_the_loss_of_an_epoch_is_the_mean_over_its_own_steps(build_run) -> None:
    run = build_run(epochs=3)
    run.trainer.fit()
    steps = [event for event in run.events if isinstance(event, BatchFinished)]
    epochs = [event for event in run.events if isinstance(event, EpochFinished)]
    assert len(epochs) == 3
    for event in epochs:
        losses = [step.loss for step in steps if step.epoch == event.epoch - 1]
        assert len(losses) == len(run.trainer.batches)
        assert event.loss == pytest.approx(sum(losses) / len(losses), rel=1e-12)


@given(
    losses=st.lists(st.floats(-10, 10), min_size=1, max_size=6),
    seconds=st.floats(0, 100),
    n_phases=st.integers(1, 3),
    is_warm=st.booleans(),
)
def test_an_epoch_begins_with_nothing_of_the_one_before(
    losses: list[float], seconds: float, n_phases: int, is_warm: bool
) -> None:
    progress = Progress(best_epoch=1, best_value=0.5, looks_since_best=2) if is_warm else Progress()
    fresh = replace(progress)
    for _ in range(n_phases):
        for loss in losses:
            progress.count_step(loss)
        progress.next_phase()
    progress.seconds = seconds
    progress.next_epoch()
    assert progress == replace(fresh, epoch=1, total_seconds=seconds)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "`epochs` must be at least 1"),
        ({"validate_every": 0}, "`validate_every` must be at least 1"),
        ({"patience": -1}, "`patience` must be at least 0"),
        ({"weight_decay": -0.1}, "`weight_decay` must be at least 0"),
        ({"weight_decay": math.nan}, "`weight_decay` must be at least 0"),
        ({"learning_rate": 0.0}, "`learning_rate` must be positive"),
        ({"learning_rate": math.inf}, "`learning_rate` must be positive"),
        (
            {"epochs": 3, "horizon": 2},
            "`horizon` must be at least `epochs`, which is 3, and finite, got 2",
        ),
        ({"epochs": 3, "horizon": math.inf}, "`horizon` must be at least `epochs`"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainingOptions(**options)


@pytest.mark.parametrize("schedule", SCHEDULES)
@given(lengths=st.tuples(st.integers(1, 500), st.integers(1, 500)).map(sorted))
def test_a_training_within_a_horizon_begins_like_the_longer_one(
    schedule: str, lengths: list[int]
) -> None:
    shorter, longer = lengths
    whole = TrainingOptions(epochs=longer, schedule=schedule)
    begun = TrainingOptions(epochs=shorter, schedule=schedule, horizon=longer)
    for epoch in range(shorter):
        assert begun.rate_factor(epoch) == whole.rate_factor(epoch) > 0


def test_progress_comes_back_from_text_exactly() -> None:
    progress = Progress(epoch=3, loss_sum=0.1 + 0.2, best_value=-math.inf, looks_since_best=2)
    assert Progress.from_json(progress.to_json()) == progress
