"""The training loop: epochs, validation, the best epoch, checkpoints at any step."""

import math
import time
from collections.abc import Callable

import torch

from pslrec.backbones import Backbone
from pslrec.distributed import Group
from pslrec.errors import PslrecError
from pslrec.kernels import device_named
from pslrec.losses import DivergenceError, Loss, Phase
from pslrec.sampling import CatalogBlock, PairBatch, PairBatches, UserBlocks
from pslrec.seeding import derive_seed
from pslrec.training._checkpoint import CheckpointError, Progress
from pslrec.training._estimate import Pace, memory_estimate
from pslrec.training._events import (
    BatchFinished,
    CheckpointSaved,
    EpochFinished,
    EstimateMade,
    Event,
    Listener,
    TrainingStarted,
)
from pslrec.training._keeping import Keeper, Store
from pslrec.training._layout import Layout
from pslrec.training._options import TrainingOptions
from pslrec.training._steps import build_step
from pslrec.training._stopping import GentleStop, TrainingInterrupted


class TrainingDivergedError(PslrecError):
    """The loss or the model became infinite or not a number."""


class Trainer:
    """Trains a backbone with a loss.

    Args:
        backbone: what is trained.
        loss: what it is trained for; already built.
        batches: what it is trained on.
        options: how.
        store: keeps checkpoints and the best backbone.
        validate: the value of the backbone by which the best epoch is chosen, higher is better;
            without it the last epoch is best.
        listeners: called with every event.
        group: the processes that train together, each with a trainer like this one; the store and
            the listeners of the first one are told.
        shard_items: divide the items among the processes, too.
    """

    def __init__(
        self,
        backbone: Backbone,
        loss: Loss,
        batches: PairBatches | UserBlocks,
        *,
        options: TrainingOptions,
        store: Store,
        validate: Callable[[], float] | None = None,
        listeners: tuple[Listener, ...] = (),
        group: Group | None = None,
        shard_items: bool = False,
    ) -> None:
        self._group = group or Group()
        self._layout = Layout(backbone, loss, batches, self._group, shard_items=shard_items)
        owned = self._layout.batch_users
        # A contrast compares all pairs of a step, whoever works on them.
        has_contrast = type(backbone).auxiliary_loss is not Backbone.auxiliary_loss
        if owned is not None and isinstance(batches, UserBlocks) and not has_contrast:
            batches.keep(owned)
        self.backbone = backbone
        self.loss = loss
        self.batches = batches
        self.options = options
        self._validate = validate
        self._listeners = listeners
        device = device_named(
            options.device, worker=self._group.local_rank, n_workers=self._group.local_size
        )
        if device.type == "cuda":
            # What is made on "cuda" without a number, as nccl does, must not go to another card.
            torch.cuda.set_device(device)
        backbone.to(device)
        loss.to(device)
        self._model_step = build_step(backbone, loss, batches, options, self._layout)
        self._keeper = Keeper(
            store,
            {"backbone": backbone, "loss": loss},
            self._model_step.optimizers,
            every_seconds=options.checkpoint_seconds,
            layout=self._layout,
        )
        self._stop = GentleStop()
        # What was last agreed on; one process cannot stop or write without the others.
        self._must_stop = False
        self._must_keep = False
        self._pace = Pace()

    def fit(self, *, pause: Callable[[int], bool] | None = None) -> Progress:
        """Train to the end, from the store's checkpoint if it has one.

        The best backbone is then in the store.

        Args:
            pause: called before each epoch with the number of epochs done; if it returns true, the
                state is saved and training ends for now.
        """
        progress = self._keeper.begin()
        self._check_place(progress)
        self._emit(
            TrainingStarted(self.options.epochs, len(self.batches), progress.epoch, progress.batch)
        )
        with self._stop:
            while not progress.is_finished:
                if pause is not None and pause(progress.epoch):
                    self._checkpoint(progress)
                    break
                self._run_epoch(progress)
        if self._is_any(self._stop.is_requested):
            # Asked for after the last step; a caller that trains several models must hear of it.
            raise TrainingInterrupted(f"stopped after epoch {progress.epoch}; all of it is saved")
        return progress

    def _check_place(self, progress: Progress) -> None:
        """Raise if the checkpoint is of a place that this run never comes to.

        From there it would never come to its end either.
        """
        is_beyond = progress.epoch >= self.options.epochs and not progress.is_finished
        if is_beyond or progress.epoch > self.options.epochs or progress.batch > len(self.batches):
            raise CheckpointError(
                f"the checkpoint is of epoch {progress.epoch + 1}, batch {progress.batch}, "
                f"and this run has {self.options.epochs} epochs of {len(self.batches)} batches; "
                "remove it to train from the beginning"
            )

    def _run_epoch(self, progress: Progress) -> None:
        phases = self.loss.epoch_phases(progress.epoch)
        while progress.phase < len(phases):
            self._run_pass(progress, phases[progress.phase])
            progress.next_phase()
        self._finish_epoch(progress)

    def _run_pass(self, progress: Progress, phase: Phase) -> None:
        self.backbone.train()
        self.loss.start_epoch(progress.epoch, phase)
        self._model_step.scale_rate(self.options.rate_factor(progress.epoch))
        # Seconds of training alone: neither checkpoints nor listeners are in them.
        started = time.perf_counter()
        own = self._layout.batch_users
        for batch in self.batches.epoch(progress.epoch, first_batch=progress.batch, owned=own):
            value = self._step(batch, phase, progress)
            progress.seconds += time.perf_counter() - started
            progress.count_step(value)
            self._estimate(progress)
            self._emit(BatchFinished(progress.epoch, progress.batch, value))
            self._stop_or_checkpoint(progress)
            started = time.perf_counter()
        self._model_step.settle()
        progress.seconds += time.perf_counter() - started

    def _step(self, batch: PairBatch | CatalogBlock, phase: Phase, progress: Progress) -> float:
        def noise() -> torch.Generator:
            # From where the run is, so that a resumed one draws the same.
            place = (progress.epoch, progress.phase, progress.batch)
            return torch.Generator().manual_seed(derive_seed(self.options.seed, "noise", *place))

        try:
            loss = self._model_step.loss_of(batch, phase, noise)
        except DivergenceError as error:
            # The others must hear of it in this step, before they wait for the next one.
            self._agree(math.nan)
            raise self._diverged(str(error), progress, progress.batch + 1) from error
        value = self._agree(float(loss.detach()))
        if not math.isfinite(value):
            raise self._diverged(f"the loss became {value}", progress, progress.batch + 1)
        # Only after the check: a step on a loss that is not finite would spoil the parameters.
        self._model_step.move(loss, phase)
        self.loss.after_step(self._model_step.objective.step_of(batch))
        return value

    def _agree(self, value: float) -> float:
        """The loss of the whole step, from this process's part, and what is to be done after it."""
        if self._group.is_single:
            return value
        # Clocks differ, so the first process decides when to write; anybody may be told to stop.
        is_due = self._keeper.is_due and self._group.is_first
        numbers = torch.tensor([value, self._stop.is_requested, is_due], dtype=torch.float64)
        self._group.sum(numbers)
        total, stops, keeps = numbers.tolist()
        self._must_stop = stops > 0
        self._must_keep = keeps > 0
        return float(total)

    def _is_any(self, condition: bool) -> bool:
        """Whether it holds in any of the processes."""
        if self._group.is_single:
            return condition
        number = torch.tensor([float(condition)])
        self._group.sum(number)
        return bool(number > 0)

    def _diverged(self, what: str, progress: Progress, batch: int) -> TrainingDivergedError:
        return TrainingDivergedError(
            f"{what} in epoch {progress.epoch + 1}, batch {batch}, "
            f"with backbone `{self.backbone.name}` and loss `{self.loss.name}` "
            f"({self.loss.extra_repr()}), learning rate {self.options.learning_rate:g}, "
            f"weight decay {self.options.weight_decay:g}, seed {self.options.seed}; "
            f"{self._keeper.kept}. "
            "Try a smaller learning rate or a higher temperature"
        )

    def _check_state(self, progress: Progress, batch: int) -> None:
        # A finite loss may have a gradient that is not. The step after it would show that, but what
        # it spoilt would be saved by then.
        spoilt = self._keeper.spoilt()
        if self._is_any(spoilt is not None) and spoilt is None:
            spoilt = "a table of another process"
        if spoilt is not None:
            raise self._diverged(f"`{spoilt}` became infinite or not a number", progress, batch)

    def _finish_epoch(self, progress: Progress) -> None:
        epoch = progress.epoch + 1
        is_last = epoch == self.options.epochs
        is_due = epoch % self.options.validate_every == 0 and self._validate is not None
        value = None
        is_best = False
        if is_last or is_due:
            with self._layout.whole():
                value, is_best = self._look(progress)
                if is_best:
                    self._keep_best(progress, value)
        self._emit(EpochFinished(epoch, progress.mean_loss, progress.seconds, value, is_best))
        # Told before it is counted, so that a listener sees the epoch that has ended.
        progress.next_epoch()
        progress.is_finished = is_last or 0 < self.options.patience <= progress.looks_since_best
        if progress.is_finished:
            self._checkpoint(progress)

    def _keep_best(self, progress: Progress, value: float | None) -> None:
        self._check_state(progress, len(self.batches))
        progress.best_epoch = progress.epoch + 1
        progress.best_value = -math.inf
        if value is not None:
            progress.best_value = value
        self._keeper.keep_best(self.backbone, progress.best_epoch)

    def _look(self, progress: Progress) -> tuple[float | None, bool]:
        """The validation value, and whether the epoch is the best one so far."""
        if self._validate is None:
            return None, True
        self._check_state(progress, len(self.batches))
        self.backbone.eval()
        value = self._validate()
        # Of equal values the later epoch wins, as in the paper's code; a value that is NaN must not
        # leave a run without a model.
        is_best = not value < progress.best_value
        if is_best:
            progress.looks_since_best = 0
        else:
            progress.looks_since_best += 1
        return value, is_best

    def _stop_or_checkpoint(self, progress: Progress) -> None:
        if self._group.is_single:
            self._must_stop = self._stop.is_requested
            self._must_keep = self._keeper.is_due
        if self._must_stop:
            self._checkpoint(progress)
            raise TrainingInterrupted(
                f"stopped in epoch {progress.epoch + 1} after batch {progress.batch}; "
                "all of it is saved"
            )
        if self._must_keep:
            self._checkpoint(progress)

    def _checkpoint(self, progress: Progress) -> None:
        self._check_state(progress, progress.batch)
        self._keeper.keep(progress)
        self._emit(CheckpointSaved(progress.epoch, progress.batch))

    def _estimate(self, progress: Progress) -> None:
        n_batches = len(self.batches)
        seconds_per_step = self._pace.step(is_last=progress.batch == n_batches)
        if seconds_per_step is None:
            return
        # An epoch may have two passes, one of them the adversary's.
        passes = -progress.phase
        for epoch in range(progress.epoch, self.options.epochs):
            passes += len(self.loss.epoch_phases(epoch))
        seconds = seconds_per_step * (passes * n_batches - progress.batch)
        memory = memory_estimate(
            self.backbone, self.loss, self.batches, self.options.kernels, self.options.torch_pass
        )
        self._emit(EstimateMade(seconds, memory))

    def _emit(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)
