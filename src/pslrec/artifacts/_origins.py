"""Where the parts of a run came from, for runs with a loss or a backbone from outside of pslrec.

`origins.json` maps `loss` and `backbone` to `{"module", "name", "distribution"}`; a run with parts of
pslrec alone has no such file. It is read to say what is missing and never to import anything: a run
directory may come from anybody, and loading it must not execute what it names.
"""

import json
import logging
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pslrec.artifacts._records import ArtifactError
from pslrec.backbones import BACKBONES
from pslrec.errors import UnknownNameError
from pslrec.files import read_json, write_text
from pslrec.losses import LOSSES
from pslrec.registry import Origin, Registry

logger = logging.getLogger(__name__)

FILE = "origins.json"
REGISTRIES: Mapping[str, Registry[Any]] = {"loss": LOSSES, "backbone": BACKBONES}

# What may stand in a command that a person is told to type; nothing that a shell would take apart.
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_DISTRIBUTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_-]*")


def origins_of(names: Mapping[str, str]) -> dict[str, Origin]:
    """The origins of those parts that are not pslrec's own.

    Args:
        names: of the parts, by section: `{"loss": "hinge", "backbone": "mf"}`.

    >>> origins_of({"loss": "sl", "backbone": "mf"})
    {}
    """
    origins = {}
    for section, name in names.items():
        origin = REGISTRIES[section].origin(name)
        if origin is not None:
            origins[section] = origin
    return origins


def write_origins(directory: Path, origins: Mapping[str, Origin]) -> None:
    """Write `origins.json`, unless all parts are pslrec's own.

    Args:
        directory: of the run.
        origins: by section, see `origins_of`.
    """
    if not origins:
        # Nothing has to be found again, and every installation can read the run.
        return
    record = {section: origin._asdict() for section, origin in origins.items()}
    text = json.dumps(record, indent=2)
    write_text(directory / FILE, f"{text}\n", error=ArtifactError)


def read_origins(directory: Path) -> dict[str, Origin]:
    """The origins that a run directory names; none if it has no such file.

    Args:
        directory: of the run.
    """
    path = directory / FILE
    if not path.exists():
        return {}
    origins = {}
    for section, record in read_json(path, error=ArtifactError).items():
        origins[section] = _checked(record, f"{path}: `{section}`")
    return origins


def _checked(record: object, where: str) -> Origin:
    if not isinstance(record, Mapping):
        raise ArtifactError(f"{where} must be an object, got {type(record).__name__}")
    module = record.get("module")
    name = record.get("name")
    distribution = record.get("distribution")
    if not isinstance(module, str) or not _MODULE.fullmatch(module):
        raise ArtifactError(f"{where} must name a module, got {str(module)[:40]!r}")
    if not isinstance(name, str):
        raise ArtifactError(f"{where} must name the part, got {str(name)[:40]!r}")
    if distribution is None:
        return Origin(module, name, None)
    if not isinstance(distribution, str) or not _DISTRIBUTION.fullmatch(distribution):
        raise ArtifactError(
            f"{where} must name a distribution as NAME==VERSION, got {str(distribution)[:40]!r}"
        )
    return Origin(module, name, distribution)


def check_parts(directory: Path, config: Mapping[str, Any]) -> None:
    """Raise if a part of a run is not at hand, and say what to install or to import.

    Parts are at hand if they are pslrec's own, if an installed package announces them by an entry
    point, or if the person at the keyboard has imported them.

    Args:
        directory: of the run.
        config: its settings, section by section.
    """
    for section, origin in read_origins(directory).items():
        settings = config.get(section)
        name = settings.get("name") if isinstance(settings, Mapping) else None
        # Settings may have been changed by hand since, and then the origin is of another part.
        if section not in REGISTRIES or name != origin.name:
            continue
        registry = REGISTRIES[section]
        if name not in registry:
            raise UnknownNameError(
                f"unknown {section} `{name}`: the run in {directory} took it from the module "
                f"`{origin.module}`{_advice(origin)}"
            )
        found = registry.origin(name)
        module = "pslrec" if found is None else found.module
        if module != origin.module:
            logger.warning(
                "the run in %s was trained with the %s `%s` of `%s`, and now takes that of `%s`",
                directory,
                section,
                name,
                origin.module,
                module,
            )


def _advice(origin: Origin) -> str:
    if origin.module == "__main__":
        return (
            ", a script or a notebook; define the class before loading the run, or move it to a "
            "module and add `--import MODULE`"
        )
    if origin.distribution is None:
        return (
            f"; if you trust it, add `--import {origin.module}` in the directory that holds it, or "
            f"`--import PATH/{origin.module.rpartition('.')[2]}.py`"
            f" (in Python: `import {origin.module}` before loading the run)"
        )
    package = origin.distribution.partition("==")[0]
    try:
        installed = version(package)
    except PackageNotFoundError:
        return (
            f" of {origin.distribution}, which is not installed; if you trust it, run "
            f"`pip install {origin.distribution}`"
        )
    return (
        f" of {origin.distribution}; {package} {installed} is installed and does not announce it: "
        f"if you trust it, add `--import {origin.module}`"
    )
