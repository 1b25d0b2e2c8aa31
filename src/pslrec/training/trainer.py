"""The training loop: epochs, validation, the best epoch, checkpoints at any step."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch

from pslrec.backbones import Backbone
from pslrec.errors import ConfigError, PslrecError
from pslrec.losses import Loss
from pslrec.losses.base import Phase, Step
from pslrec.sampling import PairBatch, PairBatches
from pslrec.seeding import derive_seed
from pslrec.training.checkpoint import Checkpoint, Progress, capture, restore
from pslrec.training.events import BatchFinished, CheckpointSaved, EpochFinished, Listener, TrainingStarted
from pslrec.training.objective import SampledObjective
from pslrec.training.optimizer import build_optimizers


class TrainingDivergedError(PslrecError):
    """The loss became infinite or not a number."""


class TrainingInterrupted(PslrecError):  # noqa: N818 - not an error of anybody
    """Somebody asked the run to stop; its state is saved."""


@dataclass(frozen=True)
class TrainingOptions:
    """How to train.

    Args:
        learning_rate: of Adam.
        weight_decay: added to the gradient as `weight_decay * parameter`, for every row at every step.
        epochs: passes over the training pairs.
        validate_every: epochs between two looks at the validation part.
        patience: stop after this many looks without a better one; 0 never stops early.
        checkpoint_seconds: time between two checkpoints.
        seed: of everything random.
    """

    learning_rate: float = 0.01
    weight_decay: float = 0.0
    epochs: int = 200
    validate_every: int = 5
    patience: int = 0
    checkpoint_seconds: float = 30.0
    seed: int = 2024

    def __post_init__(self) -> None:
        at_least = {"epochs": 1, "validate_every": 1, "patience": 0, "weight_decay": 0, "checkpoint_seconds": 0}
        for name, lowest in at_least.items():
            if not getattr(self, name) >= lowest:
                raise ConfigError(f"`{name}` must be at least {lowest}, got {getattr(self, name)}")
        if not 0 < self.learning_rate < math.inf:
            raise ConfigError(f"`learning_rate` must be positive, got {self.learning_rate}")


class Store(Protocol):
    """Where a trainer keeps its state."""

    def load_checkpoint(self) -> Checkpoint | None:
        """The last checkpoint, if the run is to go on from one."""
        ...

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep this state instead of the last one, whole or not at all."""
        ...

    def save_best(self, backbone: Backbone, epoch: int) -> None:
        """Keep the backbone as the best one so far."""
        ...


class Trainer:
    """Trains a backbone with a loss.

    Args:
        backbone: what is trained.
        loss: what it is trained for; already built.
        batches: what it is trained on.
        options: how.
        store: keeps checkpoints and the best backbone.
        validate: the value of the backbone by which the best epoch is chosen, higher is better; without it the last is best.
        listeners: are told what happens.
    """

    def __init__(
        self,
        backbone: Backbone,
        loss: Loss,
        batches: PairBatches,
        *,
        options: TrainingOptions,
        store: Store,
        validate: Callable[[], float] | None = None,
        listeners: tuple[Listener, ...] = (),
    ) -> None:
        self.backbone, self.loss, self.batches, self.options = backbone, loss, batches, options
        self._store, self._validate, self._listeners = store, validate, listeners
        self._objective = SampledObjective(backbone, loss)
        self._optimizers = build_optimizers(
            backbone, loss, learning_rate=options.learning_rate, weight_decay=options.weight_decay
        )
        self._modules = {"backbone": backbone, "loss": loss}
        self._stop_requested = threading.Event()
        self._looks_since_best = 0
        self._last_checkpoint = time.monotonic()

    def fit(self) -> Progress:
        """Train to the end, from the store's checkpoint if it has one; the best backbone is then in the store."""
        checkpoint = self._store.load_checkpoint()
        progress = Progress() if checkpoint is None else restore(checkpoint, self._modules, self._optimizers)
        self._looks_since_best = (
            (progress.epoch - progress.best_epoch) // self.options.validate_every if progress.best_epoch else 0
        )
        self._emit(TrainingStarted(self.options.epochs, len(self.batches), progress.epoch, progress.batch))
        with self._stopping_gently():
            while not progress.is_finished:
                self._run_epoch(progress)
        return progress

    def _run_epoch(self, progress: Progress) -> None:
        phases = self.loss.epoch_phases(progress.epoch)
        while progress.phase < len(phases):
            self._run_pass(progress, phases[progress.phase])
            progress.phase, progress.batch = progress.phase + 1, 0
        self._finish_epoch(progress)

    def _run_pass(self, progress: Progress, phase: Phase) -> None:
        self.backbone.train()
        self.loss.start_epoch(progress.epoch, phase)
        for batch in self.batches.epoch(progress.epoch, first_batch=progress.batch):
            started = time.perf_counter()
            value = self._step(batch, phase, progress)
            progress.seconds += time.perf_counter() - started
            progress.loss_sum, progress.n_steps = progress.loss_sum + value, progress.n_steps + 1
            progress.batch += 1
            self._emit(BatchFinished(progress.epoch, progress.batch, value))
            self._stop_or_checkpoint(progress)

    def _step(self, batch: PairBatch, phase: Phase, progress: Progress) -> float:
        optimizer = self._optimizers[phase]
        optimizer.zero_grad()
        noise = torch.Generator().manual_seed(
            derive_seed(self.options.seed, "noise", progress.epoch, progress.phase, progress.batch)
        )
        with torch.set_grad_enabled(phase == "model"):
            representations = self.backbone(noise)
        loss = self._objective(representations, batch)
        value = float(loss.detach())
        if not math.isfinite(value):
            self._diverged(value, progress)
        loss.backward()
        optimizer.step()
        self.loss.after_step(Step(batch.users, batch.positives, batch.negatives, self._objective.score))
        return value

    def _diverged(self, value: float, progress: Progress) -> None:
        raise TrainingDivergedError(
            f"the loss became {value} in epoch {progress.epoch + 1}, batch {progress.batch + 1}, with loss "
            f"`{self.loss.name}` ({self.loss.extra_repr()}), learning rate {self.options.learning_rate:g}, weight decay "
            f"{self.options.weight_decay:g}; the last good checkpoint was kept. "
            "Try a smaller learning rate or a higher temperature"
        )

    def _finish_epoch(self, progress: Progress) -> None:
        epoch = progress.epoch + 1
        mean_loss, seconds = progress.loss_sum / max(progress.n_steps, 1), progress.seconds
        is_last = epoch == self.options.epochs
        value = None
        is_best = False
        if self._validate is None:
            is_best = is_last
        elif epoch % self.options.validate_every == 0 or is_last:
            self.backbone.eval()
            value = self._validate()
            # Of equal values the later epoch wins, as in the paper's code.
            is_best = value >= progress.best_value
            self._looks_since_best = 0 if is_best else self._looks_since_best + 1
        if is_best:
            progress.best_epoch, progress.best_value = epoch, -math.inf if value is None else value
            self._store.save_best(self.backbone, epoch)
        self._emit(EpochFinished(epoch, mean_loss, seconds, value, is_best))
        gives_up = 0 < self.options.patience <= self._looks_since_best
        progress.total_seconds += seconds
        progress.epoch, progress.phase, progress.batch = epoch, 0, 0
        progress.loss_sum, progress.n_steps, progress.seconds = 0.0, 0, 0.0
        progress.is_finished = is_last or gives_up
        if progress.is_finished:
            self._checkpoint(progress)

    def _stop_or_checkpoint(self, progress: Progress) -> None:
        if self._stop_requested.is_set():
            self._checkpoint(progress)
            raise TrainingInterrupted(
                f"stopped in epoch {progress.epoch + 1} after batch {progress.batch}; all of it is saved"
            )
        if time.monotonic() - self._last_checkpoint >= self.options.checkpoint_seconds:
            self._checkpoint(progress)

    def _checkpoint(self, progress: Progress) -> None:
        self._store.save_checkpoint(capture(self._modules, self._optimizers, progress))
        self._last_checkpoint = time.monotonic()
        self._emit(CheckpointSaved(progress.epoch, progress.batch))

    @contextmanager
    def _stopping_gently(self) -> Iterator[None]:
        """Ctrl-C and a polite kill let the step finish and save; a second Ctrl-C stops at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def request(number: int, _frame: object) -> None:
            if self._stop_requested.is_set() and number == signal.SIGINT:
                raise KeyboardInterrupt
            self._stop_requested.set()

        previous = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _emit(self, event: object) -> None:
        for listener in self._listeners:
            listener(event)  # type: ignore[arg-type]
