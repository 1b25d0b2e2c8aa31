"""What a published data set is: address, terms, raw format, and the numbers to expect."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pslrec.data._interactions import Interactions
from pslrec.registry import Registry


@dataclass(frozen=True)
class Statistics:
    """Size of a data set after the paper's preparation.

    >>> round(Statistics(n_users=13_455, n_items=8_360, n_interactions=234_521).density, 5)
    0.00208
    """

    n_users: int
    n_items: int
    n_interactions: int

    @property
    def density(self) -> float:
        """Share of all user-item pairs that are there."""
        return self.n_interactions / (self.n_users * self.n_items)


@dataclass(frozen=True)
class Source:
    """A published data set.

    Args:
        name: what the command line calls it.
        title: what people call it.
        page: where its publishers describe it.
        licence: the terms of use in a sentence.
        raw_file: name of the file as published.
        read_raw: reads that file, wherever it is and under any of its other names.
        sample: a few made-up lines in the format of the raw file.
        statistics: the size after the paper's preparation.
        stem: file name of the published splits, without the ending.
        url: direct address of the raw file; `None` if there is none.
        checksum: "sha256:..." or "md5:..." of the raw file, if its publishers give one.
        member: path of the interactions inside the raw file, if that is a zip.
        other_files: further names under which the same content is found.
        min_rating: the lowest rating that the paper keeps; `None` where there are no ratings.
        k_core: the paper keeps users and items with at least this many interactions.
        by_hand: how to get the file where there is no direct address.
    """

    name: str
    title: str
    page: str
    licence: str
    raw_file: str
    read_raw: Callable[[Path], Interactions]
    sample: str
    statistics: Statistics
    stem: str
    url: str | None = None
    checksum: str | None = None
    member: str | None = None
    other_files: tuple[str, ...] = ()
    min_rating: float | None = 3.0
    k_core: int = 10
    by_hand: str = ""

    def instructions(self, directory: Path) -> str:
        """What to download and where to put it, for someone who has to do it by hand."""
        how = self.by_hand
        if self.url:
            how = f"download {self.url}"
        return f"{how}, and put the file at {directory / self.raw_file}"


SOURCES: Registry[Source] = Registry("source", group="pslrec.sources")


def register(source: Source) -> Source:
    """Make a source known under its name."""
    return SOURCES.register(source.name)(source)
