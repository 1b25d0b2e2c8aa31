"""Why cells are far from their published values: what `causes.toml` of a paper says."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from pslrec.errors import ConfigError
from pslrec.files import read_toml
from pslrec.reproduction._published import Row, fits

FILE = "causes.toml"
UNKNOWN = "Not looked into"


class Cause(BaseModel):
    """Why some cells are far from what was printed; either `found` or `tried` is given.

    Args:
        where: which cells, by columns of the results, each with a value or a list of them.
        found: the cause.
        tried: what was tried to find it, in vain.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
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


class _CausesFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    causes: tuple[Cause, ...] = ()


def read_causes(folder: Path) -> tuple[Cause, ...]:
    """Read `causes.toml`; nothing where a paper has none.

    Args:
        folder: of the paper.
    """
    path = folder / FILE
    if not path.exists():
        return ()
    try:
        return _CausesFile.model_validate(read_toml(path, error=ConfigError)).causes
    except ValidationError as error:
        raise ConfigError(f"{path} does not hold causes: {error}") from error


def cause_of(row: Row, causes: tuple[Cause, ...]) -> Cause | None:
    """The first that is about a cell."""
    for cause in causes:
        if fits(row, cause.where):
            return cause
    return None
