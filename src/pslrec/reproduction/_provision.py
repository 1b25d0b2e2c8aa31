"""The data of a cell: a published split, or one made of what is there; otherwise how to get it."""

from pathlib import Path

from pslrec.data import Interactions, Preparation, load_interactions, prepare, write_dataset
from pslrec.data.sources import SOURCES, find_raw, find_split
from pslrec.data.splits import split_by_name
from pslrec.errors import DownloadError
from pslrec.files import exclusive


class Provision:
    """Finds splits, and makes those that can be made.

    Args:
        directory: looked into first, before `PSLREC_DATA_DIR` and the cache.
        made: where splits are put that had to be made.
    """

    def __init__(self, directory: Path | None, made: Path) -> None:
        self.directory, self.made = directory, made

    def is_there(self, source: str, variant: str) -> bool:
        """Whether `path` will give something."""
        return self._split(source, variant) is not None or self._can_be_made(source)

    def path(self, source: str, variant: str) -> Path:
        """The split of a data set: `iid` or `popularity`."""
        found = self._split(source, variant)
        if found is not None:
            return found.resolve()
        if not self._can_be_made(source):
            raise DownloadError(self.how_to_get(source))
        return self._make(source, variant)

    def how_to_get(self, source: str) -> str:
        """What somebody has to do who does not have the data."""
        known = SOURCES[source]
        place = self.directory or Path("data")
        automatic = f"`pslrec data fetch {source} --directory {place}`, or " if known.url else ""
        by_hand = f"{known.instructions(place)}, or its published split at {place / known.stem}.zip"
        return f"{known.title} is not here: {automatic}{by_hand}; then give --data-dir {place}"

    def _made(self, source: str, variant: str) -> Path:
        stem = SOURCES[source].stem
        return self.made / (stem if variant == "iid" else f"{stem}-{variant}")

    def _split(self, source: str, variant: str) -> Path | None:
        made = self._made(source, variant)
        return find_split(source, self.directory, variant=variant) or (
            made if made.is_dir() else None
        )

    def _can_be_made(self, source: str) -> bool:
        return (
            find_split(source, self.directory) is not None
            or find_raw(source, self.directory) is not None
        )

    def _make(self, source: str, variant: str) -> Path:
        target = self._made(source, variant)
        with exclusive(self.made / f".{target.name}.lock", wait=True):
            if not target.is_dir():
                write_dataset(split_by_name(self._interactions(source), variant), target)
        return target.resolve()

    def _interactions(self, source: str) -> Interactions:
        split = find_split(source, self.directory)
        if split is not None:
            # The published splits of a data set have the same interactions, each rule of its own.
            return load_interactions(split)
        raw = find_raw(source, self.directory)
        assert raw is not None
        known = SOURCES[source]
        return prepare(known.read_raw(raw), Preparation(known.min_rating, known.k_core))
