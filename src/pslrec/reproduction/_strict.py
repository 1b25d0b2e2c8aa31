"""The files of a paper that people write: TOML in which a misspelt name is an error."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pslrec.errors import ConfigError
from pslrec.files import read_toml


class Strict(BaseModel):
    """What a file may say, and nothing else."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Content = TypeVar("Content", bound=Strict)


def read_strict(path: Path, content: type[Content], *, purpose: str) -> Content:
    """Read a file.

    Args:
        path: of the file.
        content: what it may say.
        purpose: what the file is there for, for the error where it does not.
    """
    try:
        return content.model_validate(read_toml(path, error=ConfigError))
    except ValidationError as error:
        raise ConfigError(f"{path} does not {purpose}: {error}") from error
