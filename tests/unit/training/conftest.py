from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch

from pslrec.backbones import BACKBONES, Backbone
from pslrec.data import Interactions
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.losses import LOSSES, Loss, Setup
from pslrec.sampling import PairBatches
from pslrec.training import Checkpoint, Progress, Trainer, TrainingOptions
from pslrec.training._events import Event


@dataclass
class KeepingStore:
    """Keeps copies of every checkpoint, and of the best tables."""

    start: Checkpoint | None = None
    checkpoints: list[Checkpoint] = field(default_factory=list)
    best: dict[str, torch.Tensor] = field(default_factory=dict)
    best_epoch: int = 0

    def load_checkpoint(self) -> Checkpoint | None:
        if self.start is None:
            return None
        tensors = {name: tensor.clone() for name, tensor in self.start.tensors.items()}
        return Checkpoint(tensors, Progress.from_json(self.start.progress.to_json()))

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        tensors = {name: tensor.clone() for name, tensor in checkpoint.tensors.items()}
        self.checkpoints.append(Checkpoint(tensors, replace(checkpoint.progress)))

    def save_best(self, backbone: Backbone, epoch: int) -> None:
        self.best = {name: tensor.clone() for name, tensor in backbone.state_dict().items()}
        self.best_epoch = epoch


@dataclass
class Run:
    """A trainer with everything that it was made of, and what it told."""

    trainer: Trainer
    backbone: Backbone
    loss: Loss
    store: KeepingStore
    events: list[Event]


@pytest.fixture(scope="session")
def tiny_log() -> Interactions:
    model = TasteModel(n_topics=3, median_history=6, minimum_history=4)
    return planted_tastes(24, 20, model=model, seed=1).interactions


BuildParts = Callable[..., tuple[Backbone, Loss]]
BuildRun = Callable[..., Run]


@pytest.fixture
def build_parts(tiny_log: Interactions) -> BuildParts:
    def build(
        loss_name: str, backbone_name: str = "mf", **loss_options: Any
    ) -> tuple[Backbone, Loss]:
        loss = LOSSES[loss_name](**loss_options)
        backbone = BACKBONES[backbone_name](
            tiny_log, dimension=8, initialization=loss.initialization, seed=7
        )
        loss.build(
            Setup(
                n_users=tiny_log.n_users,
                n_items=tiny_log.n_items,
                dimension=8,
                generator=torch.Generator().manual_seed(3),
                history=tiny_log.rows,
            )
        )
        return backbone, loss

    return build


@pytest.fixture
def build_run(tiny_log: Interactions, build_parts: BuildParts) -> BuildRun:
    def build(
        loss_name: str = "psl-relu",
        backbone_name: str = "mf",
        *,
        store: KeepingStore | None = None,
        validate: Callable[[], float] | None = None,
        listener: Callable[[Event], None] | None = None,
        loss_options: dict[str, Any] | None = None,
        n_negatives: int = 6,
        **options: Any,
    ) -> Run:
        backbone, loss = build_parts(loss_name, backbone_name, **(loss_options or {}))
        store = store or KeepingStore()
        events: list[Event] = []
        trainer = Trainer(
            backbone,
            loss,
            PairBatches(tiny_log, n_negatives=n_negatives, batch_pairs=40, seed=5),
            options=TrainingOptions(
                **{"epochs": 3, "checkpoint_seconds": 1e6, "seed": 5, **options}
            ),
            store=store,
            validate=validate,
            listeners=(events.append, *([listener] if listener else [])),
        )
        return Run(trainer, backbone, loss, store, events)

    return build


@pytest.fixture
def keeping_store() -> type[KeepingStore]:
    return KeepingStore
