"""The whole state of a run between two steps, as named tensors and a few numbers."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

import torch
from torch import Tensor, nn
from torch.optim import Adam

from pslrec.errors import PslrecError
from pslrec.training._lookup_adam import LookupAdam


class CheckpointError(PslrecError):
    """A checkpoint is not one of the run that is to be resumed."""


@dataclass
class Progress:
    """Where a run is, and what it has found so far.

    Args:
        epoch: the epoch that is being trained, counted from 0.
        phase: which pass of that epoch.
        batch: the next step of that pass.
        loss_sum: of the steps of this epoch.
        n_steps: how many those are.
        seconds: spent on this epoch, without checkpoints.
        best_epoch: counted from 1; 0 before the first validation.
        best_value: the validation value of that epoch.
        looks_since_best: evaluations on the validation part since then.
        total_seconds: of training, without evaluation.
        is_finished: no step is left.
    """

    epoch: int = 0
    phase: int = 0
    batch: int = 0
    loss_sum: float = 0.0
    n_steps: int = 0
    seconds: float = 0.0
    best_epoch: int = 0
    best_value: float = -float("inf")
    looks_since_best: int = 0
    total_seconds: float = 0.0
    is_finished: bool = False

    @property
    def mean_loss(self) -> float:
        """Of the steps of this epoch."""
        return self.loss_sum / max(self.n_steps, 1)

    def count_step(self, loss: float) -> None:
        """One more step is done."""
        self.loss_sum += loss
        self.n_steps += 1
        self.batch += 1

    def next_phase(self) -> None:
        """A pass over the data is done."""
        self.phase += 1
        self.batch = 0

    def next_epoch(self) -> None:
        """All passes of an epoch are done."""
        self.total_seconds += self.seconds
        self.epoch += 1
        self.phase = 0
        self.batch = 0
        self.loss_sum = 0.0
        self.n_steps = 0
        self.seconds = 0.0

    def to_json(self) -> str:
        """As text from which every number comes back exactly."""
        # JSON writes the shortest digits that give the same number, infinities included.
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Progress":
        """The inverse of `to_json`.

        Raises:
            ValueError: a value is not what `to_json` writes, or the text is not JSON.
            TypeError: the text is JSON of something else.
        """
        progress = cls(**json.loads(text))
        kinds: dict[object, tuple[type, ...]] = {int: (int,), float: (int, float), bool: (bool,)}
        for each in fields(progress):
            value = getattr(progress, each.name)
            is_right = isinstance(value, kinds[each.type])
            if each.type is not bool:
                # True is a whole number, too, in Python.
                is_right = is_right and not isinstance(value, bool)
            if is_right and each.type is int:
                is_right = 0 <= value < 2**53
            if not is_right:
                raise ValueError(f"`{each.name}` is {value!r}")
        return progress


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run needs to resume as if it had never stopped."""

    tensors: dict[str, Tensor]
    progress: Progress = field(default_factory=Progress)


def capture(
    modules: Mapping[str, nn.Module],
    optimizers: Mapping[str, Adam | LookupAdam],
    progress: Progress,
) -> Checkpoint:
    """The state of modules and optimisers.

    Nothing that is on the processor is copied, so it must be written before the next step.
    """
    tensors: dict[str, Tensor] = {}
    for name, module in modules.items():
        for key, value in module.state_dict().items():
            tensors[f"{name}/{key}"] = value.detach().cpu().contiguous()
    for name, optimizer in optimizers.items():
        for key, value in _state_of(optimizer).items():
            tensors[f"optimizer/{name}/{key}"] = value.detach().cpu().contiguous()
    return Checkpoint(tensors, progress)


def restore(
    checkpoint: Checkpoint,
    modules: Mapping[str, nn.Module],
    optimizers: Mapping[str, Adam | LookupAdam],
) -> Progress:
    """Put a captured state back into modules and optimisers of the same run.

    Raises:
        CheckpointError: it is the state of another run.
    """
    # Before anything is changed: a run that is refused must stay as it is.
    _check_fits(checkpoint, modules, optimizers)
    for name, module in modules.items():
        module.load_state_dict(_below(f"{name}/", checkpoint.tensors))
    for name, optimizer in optimizers.items():
        state = _below(f"optimizer/{name}/", checkpoint.tensors)
        if isinstance(optimizer, LookupAdam):
            try:
                optimizer.load_named_state(state)
            except ValueError as error:
                raise CheckpointError(
                    f"the checkpoint is not one of this run: {error}; "
                    "remove it to train from the beginning"
                ) from error
            continue
        for number, parameter in enumerate(_parameters(optimizer)):
            of_parameter = _below(f"{number}/", state)
            if of_parameter:
                # Copies, as the optimiser writes into its state, on the device that it trains on.
                device = parameter.device
                copies = {key: value.to(device, copy=True) for key, value in of_parameter.items()}
                optimizer.state[parameter] = copies
    return checkpoint.progress


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for key, value in tensors.items():
        if key.startswith(prefix):
            found[key.removeprefix(prefix)] = value
    return found


def _state_of(optimizer: Adam | LookupAdam) -> dict[str, Tensor]:
    if isinstance(optimizer, LookupAdam):
        return optimizer.named_state()
    state: dict[str, Tensor] = {}
    for number, parameter in enumerate(_parameters(optimizer)):
        for key, value in optimizer.state.get(parameter, {}).items():
            state[f"{number}/{key}"] = value
    return state


def _parameters(optimizer: Adam) -> list[torch.nn.Parameter]:
    parameters: list[torch.nn.Parameter] = []
    for group in optimizer.param_groups:
        parameters += group["params"]
    return parameters


def _check_fits(
    checkpoint: Checkpoint,
    modules: Mapping[str, nn.Module],
    optimizers: Mapping[str, Adam | LookupAdam],
) -> None:
    expected = capture(modules, optimizers, checkpoint.progress).tensors
    for name, optimizer in optimizers.items():
        if isinstance(optimizer, Adam):
            # Adam has no state before its first step, so what would be there is worked out.
            expected |= _adam_state(f"optimizer/{name}/", optimizer, checkpoint.tensors)
    for name in sorted({*expected, *checkpoint.tensors}):
        wanted = _described(expected.get(name))
        found = _described(checkpoint.tensors.get(name))
        if wanted != found:
            raise CheckpointError(
                f"the checkpoint is not one of this run: `{name}` must be {wanted}, got {found}; "
                "remove the checkpoint to train from the beginning"
            )


def _adam_state(prefix: str, optimizer: Adam, found: Mapping[str, Tensor]) -> dict[str, Tensor]:
    expected: dict[str, Tensor] = {}
    for number, parameter in enumerate(_parameters(optimizer)):
        place = f"{prefix}{number}/"
        if not _below(place, found):
            continue
        expected[f"{place}exp_avg"] = parameter.detach()
        expected[f"{place}exp_avg_sq"] = parameter.detach()
        expected[f"{place}step"] = torch.tensor(0.0)
    return expected


def _described(tensor: Tensor | None) -> str:
    if tensor is None:
        return "absent"
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"
