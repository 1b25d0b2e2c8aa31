"""Keeping the state of a run: where it goes, when that is due, and what must not be kept."""

import time
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import nn

from pslrec.backbones import Backbone
from pslrec.training._checkpoint import Checkpoint, Progress, capture, restore
from pslrec.training._layout import Layout


class Store(Protocol):
    """Where a trainer keeps its state."""

    def load_checkpoint(self) -> Checkpoint | None:
        """The last checkpoint, if the run is to be resumed from one."""
        ...

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep this state instead of the last one, whole or not at all."""
        ...

    def save_best(self, backbone: Backbone, epoch: int) -> None:
        """Keep the backbone as the best one so far."""
        ...


class Keeper:
    """Puts the state of a run into a store, and back.

    Args:
        store: where it is kept.
        modules: what is trained, by name.
        optimizers: what moves it, by name.
        every_seconds: time between two checkpoints.
        layout: which part of all this the process holds.
    """

    def __init__(
        self,
        store: Store,
        modules: Mapping[str, nn.Module],
        optimizers: Mapping[str, Any],
        *,
        every_seconds: float,
        layout: Layout,
    ) -> None:
        self._store = store
        self._modules = modules
        self._optimizers = optimizers
        self._every_seconds = every_seconds
        self._layout = layout
        self._last = time.monotonic()
        # For messages about a run that diverged: what is left of it.
        self.kept = "no checkpoint had been written yet"

    @property
    def is_due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() - self._last >= self._every_seconds

    def begin(self) -> Progress:
        """Where the run is: at the store's checkpoint, which is restored, or at the beginning."""
        checkpoint = self._own_checkpoint()
        if checkpoint is None:
            return Progress()
        progress = restore(checkpoint, self._modules, self._optimizers)
        self.kept = _described(progress)
        return progress

    def _own_checkpoint(self) -> Checkpoint | None:
        group = self._layout.group
        checkpoint = None
        text: str | None = None
        if group.is_first:
            checkpoint = self._store.load_checkpoint()
        if group.is_single:
            return checkpoint
        tensors = None
        if checkpoint is not None:
            text = checkpoint.progress.to_json()
            tensors = checkpoint.tensors
        text = group.from_first(text)
        if text is None:
            return None
        return Checkpoint(self._layout.received(tensors), Progress.from_json(text))

    def keep(self, progress: Progress) -> None:
        """Write a checkpoint."""
        own = capture(self._modules, self._optimizers, progress)
        tensors = self._layout.gathered(own.tensors)
        if self._layout.group.is_first:
            self._store.save_checkpoint(Checkpoint(tensors, progress))
        self.kept = _described(progress)
        self._last = time.monotonic()

    def keep_best(self, backbone: Backbone, epoch: int) -> None:
        """Write the backbone, with all rows of its tables, as the best one so far."""
        if self._layout.group.is_first:
            self._store.save_best(backbone, epoch)

    def spoilt(self) -> str | None:
        """The name of a tensor that is infinite or not a number, if there is one."""
        for name, module in self._modules.items():
            for key, tensor in module.state_dict().items():
                if not bool(torch.isfinite(tensor).all()):
                    return f"{name}.{key}"
        return None


def _described(progress: Progress) -> str:
    return f"the checkpoint of epoch {progress.epoch + 1} after batch {progress.batch} was kept"
