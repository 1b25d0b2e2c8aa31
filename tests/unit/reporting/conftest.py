"""Run directories as reports find them, written by hand: no training is needed to read one."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CONFIG = """
[data]
source = "{source}"
split = "iid"
[backbone]
name = "mf"
dimension = 8
[loss]
name = "{loss}"
temperature = 0.1
[sampling]
negatives = "catalog"
[sampling.noise]
probability = {noise}
[training]
seed = {seed}
"""

Maker = Callable[..., Path]


@pytest.fixture
def make_run(tmp_path: Path) -> Maker:
    """Writes a run directory; what is None is left out."""

    def make(
        name: str,
        *,
        ndcg: float | None = 0.2,
        losses: tuple[float, ...] = (3.0, 2.0, 1.0),
        validations: tuple[float | None, ...] = (None, 0.1, 0.2),
        **settings: Any,
    ) -> Path:
        path = tmp_path / "runs" / name
        path.mkdir(parents=True)
        values = {"source": "nowhere", "loss": "sl", "noise": 0.0, "seed": 1, **settings}
        (path / "config.toml").write_text(CONFIG.format(**values))
        (path / "environment.json").write_text(json.dumps({"pslrec": "0.1.0", "cores": 2}))
        lines = [
            {
                "epoch": place + 1,
                "loss": loss,
                "seconds": 0.5,
                "validation": value,
                "is_best": False,
            }
            for place, (loss, value) in enumerate(zip(losses, validations, strict=False))
        ]
        (path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        if ndcg is not None:
            split = {"ndcg@20": ndcg, "recall@20": ndcg * 1.5 if math.isfinite(ndcg) else ndcg}
            metrics = {
                "test": split,
                "validation": split,
                "protocol": "strict",
                "best_epoch": len(lines),
            }
            metrics |= {
                "selected_on_test": False,
                "trained_epochs": len(lines),
                "seconds_per_epoch": 0.5,
            }
            (path / "metrics.json").write_text(json.dumps(metrics))
        (path / "format").write_text("1\n")
        return path

    return make
