"""A model made by hand, of which every answer is known."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pslrec.artifacts import FinishedRun, RunDirectory
from pslrec.backbones import BACKBONES
from pslrec.data import Dataset, Interactions, Vocabulary

N_USERS, N_ITEMS, DIMENSION = 6, 8, 4


def _interactions(pairs: list[tuple[int, int]]) -> Interactions:
    users, items = zip(*pairs, strict=True)
    return Interactions(
        torch.tensor(users).numpy(),
        torch.tensor(items).numpy(),
        Vocabulary([f"user {row}" for row in range(N_USERS)], kind="user"),
        Vocabulary(list(range(100, 100 + N_ITEMS)), kind="item"),
    )


@pytest.fixture
def board() -> Dataset:
    """Users like the items of their own parity; a part of them is in training, one pair in validation."""
    pairs = [(user, item) for user in range(N_USERS) for item in range(user % 2, N_ITEMS - 2, 2)]
    return Dataset(
        _interactions(pairs), _interactions([(0, 6)]), validation=_interactions([(1, 7)])
    )


@pytest.fixture
def tables() -> dict[str, Tensor]:
    """Vectors of two groups that point almost the same way within a group."""
    generator = torch.Generator().manual_seed(0)
    groups = torch.eye(2, DIMENSION)
    return {
        name: 2 * groups[torch.arange(rows) % 2]
        + 0.3 * torch.randn(rows, DIMENSION, generator=generator)
        for name, rows in (("users", N_USERS), ("items", N_ITEMS))
    }


@pytest.fixture
def make_run(board: Dataset, tables: dict[str, Tensor]) -> Callable[..., FinishedRun]:
    """A run of any loss and backbone with these tables."""

    def make(loss: str = "psl-relu", backbone: str = "mf", **options: Any) -> FinishedRun:
        own = {}
        if BACKBONES[backbone].sums_histories:
            # Users are sums of a table of items, which here is that of the ranked ones.
            own = {"user_table": tables["items"]}
        elif not BACKBONES[backbone].is_lookup:
            own = {"user_table": tables["users"], "item_table": tables["items"]}
        validation = board.validation
        assert validation is not None
        return FinishedRun(
            config={
                "loss": {"name": loss, **options},
                "backbone": {"name": backbone},
                "data": {"source": "board"},
            },
            metrics={},
            users=board.user_vocabulary,
            items=board.item_vocabulary,
            tables={**tables, **own},
            train=(torch.tensor(board.train.users), torch.tensor(board.train.items)),
            validation=(torch.tensor(validation.users), torch.tensor(validation.items)),
            epoch=3,
        )

    return make


@pytest.fixture
def run_path(tmp_path: Path, board: Dataset, tables: dict[str, Tensor]) -> Path:
    """The same as a directory."""
    config = '[loss]\nname = "sl"\ntemperature = 0.2\n\n[backbone]\nname = "mf"\n'
    with RunDirectory(tmp_path / "run") as directory:
        directory.begin(config, board, "half-cosine")
        directory.write_tables(tables, 3)
        directory.write_metrics({"test": {"ndcg@20": 0.5}})
    return tmp_path / "run"
