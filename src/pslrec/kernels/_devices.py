"""Which devices torch has here, and the one that a name means."""

import re

import torch

from pslrec.errors import ConfigError

DEVICE_NAMES = "auto, cpu, cuda, cuda:N or mps"
_NAME = re.compile(r"auto|cpu|mps|cuda(:\d{1,3})?")


def is_device_name(name: str) -> bool:
    """Whether a name may be one of a device, here or on another machine.

    >>> is_device_name("cuda:1"), is_device_name("gpu")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None


def devices_here() -> list[str]:
    """Names of the devices of this machine; the processor is the last one.

    >>> devices_here()[-1]
    'cpu'
    """
    names = []
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            names.append(f"cuda:{number}")
    if torch.backends.mps.is_available():
        names.append("mps")
    names.append("cpu")
    return names


def device_named(name: str, *, worker: int = 0, n_workers: int = 1) -> torch.device:
    """The device of a name; `auto` is the first one that this machine has.

    Where several processes of one machine train together, each takes a card of its own: `auto` and
    `cuda` mean the card with the number of the process.

    Args:
        name: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`.
        worker: number of this process among those of this machine, from 0.
        n_workers: how many there are on this machine.

    Raises:
        ConfigError: the name is none of these, the machine has no such device, or not one for each
            process.

    >>> device_named("cpu")
    device(type='cpu')
    """
    if not is_device_name(name):
        raise ConfigError(f"`device` must be {DEVICE_NAMES}, got {name!r}")
    here = devices_here()
    if n_workers > 1:
        return torch.device(_own_device(name, here, worker, n_workers))
    if name == "auto":
        return torch.device(here[0])
    wanted = name
    if name == "cuda":
        wanted = "cuda:0"
    _check_is_here(name, wanted, here)
    return torch.device(wanted)


def _own_device(name: str, here: list[str], worker: int, n_workers: int) -> str:
    """The device of one process of several."""
    cards = [device for device in here if device.startswith("cuda")]
    if name == "cpu" or (name == "auto" and not cards):
        return "cpu"
    if name not in ("auto", "cuda"):
        raise ConfigError(
            f"`device` is {name}, one device for the {n_workers} processes of this machine; give "
            "cuda, which is a card for each, or cpu, or start one process"
        )
    _check_is_here(name, "cuda:0", here)
    if n_workers > len(cards):
        raise ConfigError(
            f"`device` is {name}, and {n_workers} processes of this machine need a card each, but "
            f"torch finds {len(cards)} here; start {len(cards)} at most, or give the device cpu"
        )
    return cards[worker]


def _check_is_here(name: str, wanted: str, here: list[str]) -> None:
    if wanted not in here:
        raise ConfigError(
            f"`device` is {name}, which torch {torch.__version__} does not find here; it finds "
            f"{', '.join(here)}. Take one of these, or auto; a graphics card needs its driver and "
            "a build of torch for it"
        )
