"""MovieLens: ratings in a zip beside files about users and films."""

from collections.abc import Callable
from pathlib import Path
from zipfile import is_zipfile

from pslrec.data._interactions import Interactions
from pslrec.data.sources._base import Source, Statistics
from pslrec.data.sources._raw import Kind, read_delimited, to_interactions

FILES = "https://files.grouplens.org/datasets/movielens"
COLUMNS = {
    "user": Kind.INTEGER,
    "item": Kind.INTEGER,
    "rating": Kind.NUMBER,
    "timestamp": Kind.INTEGER,
}


def ratings_reader(member: str, separator: str) -> Callable[[Path], Interactions]:
    """A function that reads the ratings, from the zip as published or unpacked from it."""

    def read_ratings(path: Path) -> Interactions:
        # A zip whose end is missing is no zip to `is_zipfile`, but it is not the unpacked file either.
        is_zip = is_zipfile(path) or path.suffix == ".zip"
        return to_interactions(
            read_delimited(path, COLUMNS, separator=separator, member=member if is_zip else None)
        )

    return read_ratings


def movielens(
    size: str, *, member: str, separator: str, checksum: str, statistics: Statistics
) -> Source:
    """The source of one edition.

    Args:
        size: as in its file name, "100k" or "1m".
        member: the ratings within the zip.
        separator: between the fields of a rating.
        checksum: of the zip, as GroupLens publishes it beside the file.
        statistics: after the paper's preparation.
    """
    ratings = (
        ("1", "1193", "5", "978300760"),
        ("1", "661", "3", "978302109"),
        ("22", "661", "1", "978299026"),
    )
    return Source(
        name=f"movielens-{size}",
        title=f"MovieLens {size.upper()}",
        page=f"https://grouplens.org/datasets/movielens/{size}/",
        licence=(
            "GroupLens conditions: research use with acknowledgement (Harper and Konstan, TiiS 2015); no "
            "redistribution and no commercial use without permission."
        ),
        raw_file=f"ml-{size}.zip",
        read_raw=ratings_reader(member, separator),
        sample="".join(separator.join(fields) + "\n" for fields in ratings),
        statistics=statistics,
        stem=f"movielens-{size}",
        url=f"{FILES}/ml-{size}.zip",
        checksum=checksum,
        member=member,
        other_files=(member,),
    )
