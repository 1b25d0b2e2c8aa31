"""`origins.json`: where the parts of a run came from that are not pslrec's own.

A run of our own parts has no such file. It never makes anything be imported by itself: whoever
reads it decides whether to import a module that it names.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from pslrec.artifacts._format import ArtifactError
from pslrec.files import read_json, write_text

ORIGINS_FILE = "origins.json"


class Origin(TypedDict):
    """Where to find a part again.

    Args:
        module: to import, such as `my_package.losses`.
        name: of the part within that module.
        distribution: name and version of the installed package that holds the module, such as
            `my-package 1.2`; `None` for a module that belongs to none, such as a script.
    """

    module: str
    name: str
    distribution: str | None


def write_origins(path: Path, origins: Mapping[str, Origin]) -> None:
    """Write where the parts of a run came from.

    Args:
        path: directory of the run.
        origins: by section of the configuration, `loss` or `backbone`; parts of our own are left
            out, and without any other there is no file.
    """
    if not origins:
        # Then nothing has to be found again, and every installation can read the run.
        return
    text = json.dumps(origins, indent=2)
    write_text(path / ORIGINS_FILE, f"{text}\n", error=ArtifactError)


def read_origins(path: Path) -> dict[str, Origin]:
    """Read where the parts of a run came from; empty if all are pslrec's own.

    Args:
        path: directory of the run.
    """
    file = path / ORIGINS_FILE
    if not file.exists():
        return {}
    origins: dict[str, Origin] = {}
    for section, value in read_json(file, error=ArtifactError).items():
        origins[section] = _checked(value, section, file)
    return origins


def _checked(
    value: object,
    section: str,
    file: Path,
) -> Origin:
    if isinstance(value, Mapping):
        module = value.get("module")
        name = value.get("name")
        distribution = value.get("distribution")
        is_known = distribution is None or isinstance(distribution, str)
        if isinstance(module, str) and isinstance(name, str) and is_known:
            return Origin(module=module, name=name, distribution=distribution)
    raise ArtifactError(
        f"{file}: `{section}` must hold texts `module` and `name`, and a text or null "
        f"`distribution`, got {str(value)[:60]!r}"
    )
