"""Where Optuna keeps its books: a journal in the study directory, or a database."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pslrec.errors import ConfigError
from pslrec.files import append_line, drop_torn_line, exclusive, explained

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.storages.journal import JournalFileBackend

JOURNAL = "journal"
JOURNAL_FILE = "journal.jsonl"


def open_storage(directory: Path, url: str | None) -> "BaseStorage":
    """Open the books of a study.

    Args:
        directory: of the study.
        url: of a database that SQLAlchemy knows; `None` is the journal in the directory.
    """
    # Optuna takes most of a second to import, which only commands with studies should wait for.
    import optuna

    # It would announce every study that is opened.
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if url is None:
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        path = directory / JOURNAL_FILE
        with explained(path, "written"):
            reader = JournalFileBackend(str(path))
        journal: Any = _Journal(path, reader)
        return JournalStorage(journal)
    from sqlalchemy import NullPool
    from sqlalchemy.exc import SQLAlchemyError

    try:
        # Trials take minutes and talk in between for milliseconds: a connection that is kept open
        # would only be one that many workers use up.
        return optuna.storages.RDBStorage(_with_driver(url), engine_kwargs={"poolclass": NullPool})
    except ImportError as error:
        raise ConfigError(
            f"`storage` {without_secrets(url)} needs a driver: {error}; for PostgreSQL, "
            "install pslrec[postgresql]"
        ) from error
    except SQLAlchemyError as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            "`storage` must be a database that can be reached, such as "
            f"postgresql://user@host/name, got {without_secrets(url)}: {reason}"
        ) from error


def _with_driver(url: str) -> str:
    # SQLAlchemy's own default is the driver before this one.
    if url.startswith("postgresql://"):
        return f"postgresql+psycopg://{url.removeprefix('postgresql://')}"
    return url


def without_secrets(url: str | None) -> str:
    """The address of a storage without user and password, to be shown and kept.

    >>> without_secrets("postgresql://me:secret@host:5432/studies"), without_secrets(None)
    ('postgresql://host:5432/studies', 'journal')
    """
    if url is None:
        return JOURNAL
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=place, query="").geturl()


class _Journal:
    """Read by Optuna, and written as everything else is.

    Optuna's own lock outlives a killed process by half a minute, this one goes with it; and a full
    disk leaves no half of a line behind.
    """

    def __init__(self, path: Path, reader: "JournalFileBackend") -> None:
        self._path = path
        self._reader = reader

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """What was written since."""
        return self._reader.read_logs(log_number_from)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write several lines at once."""
        lines = [json.dumps(log, separators=(",", ":")) for log in logs]
        with exclusive(self._path.with_name(f"{self._path.name}.lock"), wait=True):
            # The line of a process that was stopped in the middle of it has not been read by anybody.
            drop_torn_line(self._path)
            append_line(self._path, "\n".join(lines))
