"""Why cells are far from their published values: what `causes.toml` of a paper says."""

from pathlib import Path
from typing import Any

from pydantic import model_validator

from pslrec.reproduction._published import Row, fits
from pslrec.reproduction._strict import Strict, read_strict

FILE = "causes.toml"
UNKNOWN = "Not looked into"


class Cause(Strict):
    """Why some cells are far from what was printed; either `found` or `tried` is given.

    Args:
        where: which cells, by columns of the results, each with a value or a list of them.
        found: the cause.
        tried: what was tried to find it, in vain.
    """

    where: dict[str, Any]
    found: str = ""
    tried: str = ""

    @model_validator(mode="after")
    def _is_one(self) -> "Cause":
        if bool(self.found) == bool(self.tried):
            raise ValueError("a cause has either `found` or `tried`")
        return self

    @property
    def text(self) -> str:
        """For the page."""
        return self.found or f"Not found, tried: {self.tried}"


class _CausesFile(Strict):
    causes: tuple[Cause, ...] = ()


def read_causes(folder: Path) -> tuple[Cause, ...]:
    """Read `causes.toml`; nothing where a paper has none.

    Args:
        folder: of the paper.
    """
    path = folder / FILE
    if not path.exists():
        return ()
    return read_strict(path, _CausesFile, purpose="hold causes").causes


def cause_of(row: Row, causes: tuple[Cause, ...]) -> Cause | None:
    """The first that is about a cell."""
    for cause in causes:
        if fits(row, cause.where):
            return cause
    return None
