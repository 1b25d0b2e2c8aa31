"""The format number of a run directory, and the checks that every reader of one makes first."""

from pathlib import Path

from pslrec.files import FileError, check_regular, explained, local_path, read_text

# Raised whenever this version, or an older one, would misread the runs of the other.
FORMAT = "1"
# Of runs with walks, which versions that do not know them would leave out of the scores.
FORMAT_WITH_WALKS = "2"


class ArtifactError(FileError):
    """A run directory cannot be read, written or understood."""


class DirectoryInUseError(ArtifactError):
    """Another process is working in a run directory."""


def check_version(path: Path) -> None:
    """Raise unless the directory holds a run, finished or not, that this version can read.

    Args:
        path: directory of the run.
    """
    local_path(path, error=ArtifactError)
    if not path.is_dir():
        raise ArtifactError(
            f"{path} is not a run directory; train a run with `pslrec train DATA --out {path}`"
        )
    file = path / "format"
    if not file.exists() and (path / "request.toml").exists():
        raise ArtifactError(
            f"the run in {path} was stopped before it had settings, so there is no model yet; resume it "
            f"with `pslrec train --out {path} --resume`"
        )
    if not file.exists():
        raise ArtifactError(f"{path} is not a run directory: it has no file `format`")
    # Before anything is read, `format` included.
    _check_regular_files(path)
    # A damaged file still has a beginning that the message can show.
    found = read_text(file, damaged="replace", error=ArtifactError).strip()
    if found not in (FORMAT, FORMAT_WITH_WALKS):
        raise ArtifactError(
            f"{path} was written in format {found[:20]!r}, this version reads formats {FORMAT} and "
            f"{FORMAT_WITH_WALKS}; train it again"
        )


def check_finished(path: Path) -> None:
    """Raise unless the directory holds a finished run that this version can read.

    Args:
        path: directory of the run.
    """
    check_version(path)
    if not (path / "metrics.json").exists():
        raise ArtifactError(
            f"the run in {path} is not finished; resume it with "
            f"`pslrec train --out {path} --resume`"
        )


def _check_regular_files(path: Path) -> None:
    # Reading a pipe or a device would block, or never come to an end.
    with explained(path, "read", error=ArtifactError):
        entries = sorted(path.iterdir())
    for entry in entries:
        # Another process may be writing here, so an entry may be gone by now.
        if entry.exists() and not entry.is_dir():
            check_regular(entry, error=ArtifactError)
