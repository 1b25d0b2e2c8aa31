"""A run that goes on from any step ends as if it had never stopped, bit for bit."""

from dataclasses import replace

import pytest
import torch

from pslrec.losses import LOSSES
from pslrec.training._events import EpochFinished

SETTINGS = {"epochs": 4, "checkpoint_seconds": 0, "learning_rate": 0.05, "weight_decay": 1e-4}
OPTIONS = {
    "sl@k": {"k": 3, "update_every": 2},
    "psl-relu@3": {"update_every": 2},
    "adv-infonce": {"adversarial_interval": 2, "adversarial_learning_rate": 0.01},
}


def log_of(run) -> list[EpochFinished]:
    return [replace(event, seconds=0.0) for event in run.events if isinstance(event, EpochFinished)]


@pytest.mark.parametrize("backbone_name", ["mf", "xsimgcl"])
@pytest.mark.parametrize("name", [*LOSSES.names(), "psl-relu@3"])
def test_resuming_in_the_middle_of_an_epoch_is_bit_exact(
    build_run, name: str, backbone_name: str
) -> None:
    settings = {**SETTINGS, "loss_options": OPTIONS.get(name, {})}
    whole = build_run(name, backbone_name, validate=lambda: 0.0, validate_every=2, **settings)
    whole.trainer.fit()
    n_batches = len(whole.trainer.batches)
    assert len(whole.store.checkpoints) == 4 * n_batches + 1
    # In an epoch that trains the adversary or moves thresholds, at the very end of one, and after all.
    for place in (n_batches + 1, 3 * n_batches - 1, -1):
        resumed = build_run(name, backbone_name, validate=lambda: 0.0, validate_every=2, **settings)
        resumed.store.start = whole.store.checkpoints[place]
        first = resumed.store.start.progress.epoch
        resumed.trainer.fit()
        expected, found = (
            whole.store.checkpoints[-1],
            (resumed.store.checkpoints or [resumed.store.start])[-1],
        )
        assert found.tensors.keys() == expected.tensors.keys()
        for key, tensor in expected.tensors.items():
            assert torch.equal(found.tensors[key], tensor), key
        assert log_of(resumed) == log_of(whole)[first:]
        assert replace(found.progress, total_seconds=0.0) == replace(
            expected.progress, total_seconds=0.0
        )


def test_the_original_adversary_is_resumed_in_either_pass(build_run) -> None:
    settings = {
        **SETTINGS,
        "epochs": 3,
        "loss_options": {"variant": "original", "adversarial_learning_rate": 0.01},
    }
    whole = build_run("adv-infonce", **settings)
    whole.trainer.fit()
    passes = {checkpoint.progress.phase for checkpoint in whole.store.checkpoints}
    assert passes == {0, 1}
    for checkpoint in whole.store.checkpoints[::3]:
        resumed = build_run("adv-infonce", **settings)
        resumed.store.start = checkpoint
        resumed.trainer.fit()
        for key, tensor in whole.store.checkpoints[-1].tensors.items():
            assert torch.equal(resumed.store.checkpoints[-1].tensors[key], tensor), key


def test_a_checkpoint_has_tables_moments_and_the_state_of_the_loss(build_run) -> None:
    run = build_run("llpauc", checkpoint_seconds=0, epochs=1)
    run.trainer.fit()
    names = run.store.checkpoints[0].tensors.keys()
    assert {"backbone/user_table", "backbone/item_table", "loss/scalars.margin"} <= names
    assert {f"optimizer/model/0/{key}" for key in ("step", "exp_avg", "exp_avg_sq")} <= names
    # Two tables and seven scalars, each with three tensors in the optimiser.
    assert sum(name.startswith("optimizer/") for name in names) == 9 * 3


def test_checkpoints_are_as_far_apart_as_asked_for(
    build_run, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("pslrec.training._trainer.time.monotonic", lambda: now[0])

    def tick(_: object) -> None:
        now[0] += 1.0

    run = build_run(epochs=4, checkpoint_seconds=10.0, listener=tick)
    run.trainer.fit()
    n_events = len(run.events)
    assert n_events / 14 <= len(run.store.checkpoints) <= n_events / 10 + 1
