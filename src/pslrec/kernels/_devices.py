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


def device_named(name: str) -> torch.device:
    """The device of a name; `auto` is the first one that this machine has.

    Args:
        name: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`.

    Raises:
        ConfigError: the name is none of these, or the machine has no such device.

    >>> device_named("cpu")
    device(type='cpu')
    """
    if not is_device_name(name):
        raise ConfigError(f"`device` must be {DEVICE_NAMES}, got {name!r}")
    here = devices_here()
    if name == "auto":
        return torch.device(here[0])
    wanted = name
    if name == "cuda":
        wanted = "cuda:0"
    if wanted not in here:
        raise ConfigError(
            f"`device` is {name}, which torch {torch.__version__} does not find here; it finds "
            f"{', '.join(here)}. Take one of these, or auto; a graphics card needs its driver and "
            "a build of torch for it"
        )
    return torch.device(wanted)
