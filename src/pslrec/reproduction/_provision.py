"""The data of a cell: a published split, or one made of what is there; otherwise how to get it."""

import os
from dataclasses import dataclass
from pathlib import Path

from pslrec.data import Interactions, Preparation, load_interactions, prepare, write_dataset
from pslrec.data.sources import SOURCES, find_raw, find_split
from pslrec.data.splits import split_by_name
from pslrec.errors import DownloadError
from pslrec.files import exclusive

# Data that come with pslrec, known by name wherever a file is expected.
INCLUDED = ("debian", "synthetic")


@dataclass(frozen=True)
class Provision:
    """Finds splits, and makes those that can be made.

    A data set is the name of a source or of data that come with pslrec, or a file: one of the
    paper's folder, or below the directory of data sets.

    Args:
        directory: looked into first, before `PSLREC_DATA_DIR` and the cache.
        made: where splits are put that had to be made.
        folder: of the paper.
    """

    directory: Path | None
    made: Path
    folder: Path

    def is_there(self, source: str, split: str) -> bool:
        """Whether `path` will give something."""
        return self._find(source, split) is not None or self._can_be_made(source)

    def path(self, source: str, split: str) -> str:
        """Where the split of a data set is, as `data.source` takes it."""
        found = self._find(source, split)
        if found is None and self._can_be_made(source):
            found = str(self._make(source, split).resolve())
        if found is None:
            raise DownloadError(self.how_to_get(source))
        return found

    def how_to_get(self, source: str) -> str:
        """What somebody has to do who does not have the data."""
        place = self.directory or Path("data")
        if source not in SOURCES:
            return f"{source} is not here: put it at {place / source}; then give --data-dir {place}"
        known = SOURCES[source]
        automatic = ""
        if known.url:
            automatic = f"`pslrec data fetch {source} --directory {place}`, or "
        by_hand = f"{known.instructions(place)}, or its published split at {place / known.stem}.zip"
        return f"{known.title} is not here: {automatic}{by_hand}; then give --data-dir {place}"

    def _find(self, source: str, split: str) -> str | None:
        if source in INCLUDED:
            return source
        if source in SOURCES:
            places = [find_split(source, self.directory, variant=split), self._made(source, split)]
        else:
            elsewhere = (self.directory, os.environ.get("PSLREC_DATA_DIR"))
            places = [self.folder / source]
            places += [Path(place) / source for place in elsewhere if place]
        for place in places:
            if place is not None and place.exists():
                return str(place.resolve())
        return None

    def _made(self, source: str, split: str) -> Path:
        stem = SOURCES[source].stem
        if split != "iid":
            stem = f"{stem}-{split}"
        return self.made / stem

    def _can_be_made(self, source: str) -> bool:
        if source not in SOURCES:
            return False
        found = find_split(source, self.directory) or find_raw(source, self.directory)
        return found is not None

    def _make(self, source: str, split: str) -> Path:
        target = self._made(source, split)
        with exclusive(self.made / f".{target.name}.lock", wait=True):
            if not target.is_dir():
                write_dataset(split_by_name(self._interactions(source), split), target)
        return target

    def _interactions(self, source: str) -> Interactions:
        found = find_split(source, self.directory)
        if found is not None:
            # The published splits of a data set have the same interactions, each rule of its own.
            return load_interactions(found)
        raw = find_raw(source, self.directory)
        assert raw is not None
        known = SOURCES[source]
        return prepare(known.read_raw(raw), Preparation(known.min_rating, known.k_core))
