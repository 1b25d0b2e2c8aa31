"""A run is put together once: its configuration is checked once, its loss constructed once."""

from collections.abc import Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from pslrec.config import RunConfig
from pslrec.experiment import run
from pslrec.losses import LOSSES, Loss

SETTINGS: dict[str, Any] = {
    "data.source": "synthetic",
    "sampling.negatives": "catalog",
    "backbone.dimension": 4,
    "training.epochs": 1,
    "loss.name": "sl",
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fills with what is checked and constructed; a loss that checking constructs does not count."""
    found: list[str] = []
    checks_under_way: list[str] = []
    checked = RunConfig.checked.__func__  # type: ignore[attr-defined]
    constructed = LOSSES["sl"].__init__

    def check(cls: type[RunConfig], tree: Mapping[str, Any]) -> RunConfig:
        found.append("check")
        checks_under_way.append("check")
        config: RunConfig = checked(cls, tree)
        checks_under_way.pop()
        return config

    @wraps(constructed)
    def construct(loss: Loss, *args: Any, **options: Any) -> None:
        if not checks_under_way:
            found.append("construct")
        constructed(loss, *args, **options)

    monkeypatch.setattr(RunConfig, "checked", classmethod(check))
    monkeypatch.setattr(LOSSES["sl"], "__init__", construct)
    return found


@pytest.mark.parametrize(
    ("changes", "n_trainings"),
    [
        ({}, 1),
        ({"training.refit": True}, 2),
        ({"sampling.noise.probability": 0.1, "sampling.noise.before_validation": True}, 1),
    ],
)
def test_a_run_checks_its_configuration_once_and_constructs_its_loss_once_per_training(
    calls: list[str], changes: dict[str, Any], n_trainings: int
) -> None:
    config = RunConfig.from_settings({**SETTINGS, **changes})
    calls.clear()
    run(config)
    assert calls == ["check"] + ["construct"] * n_trainings


def test_a_resumed_run_checks_its_configuration_once(calls: list[str], tmp_path: Path) -> None:
    config = RunConfig.from_settings(SETTINGS)
    run(config, out=tmp_path / "run")
    calls.clear()
    run(config, out=tmp_path / "run", resume=True)
    assert calls == ["check", "construct"]
