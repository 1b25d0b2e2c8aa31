"""MovieLens: ratings in a zip beside files about users and films."""

from collections.abc import Callable
from pathlib import Path

from pslrec.data._interactions import Interactions
from pslrec.data.sources._base import Source, Statistics
from pslrec.data.sources._raw import read_fields

FILES = "https://files.grouplens.org/datasets/movielens"


def ratings_reader(member: str, separator: str) -> Callable[[Path], Interactions]:
    """A function that reads the ratings, from the zip as published or unpacked from it."""

    def read_ratings(path: Path) -> Interactions:
        return read_fields(
            path,
            ("user", "item", "rating", "timestamp"),
            separator=separator,
            whole_numbers=("user", "item", "timestamp"),
            member=member,
        )

    return read_ratings


def movielens(
    size: str, *, member: str, separator: str, checksum: str, statistics: Statistics
) -> Source:
    """The source of one edition.

    Args:
        size: the edition as its file name spells it, "100k" or "1m".
        member: path of the ratings inside the zip.
        separator: the text between two fields of a rating.
        checksum: what the zip must hash to; GroupLens publishes it beside the file.
        statistics: the size after the paper's preparation.
    """
    # The editions differ in the separator only.
    sample = "1|1193|5|978300760\n1|661|3|978302109\n22|661|1|978299026\n".replace("|", separator)
    return Source(
        name=f"movielens-{size}",
        title=f"MovieLens {size.upper()}",
        page=f"https://grouplens.org/datasets/movielens/{size}/",
        licence=(
            "GroupLens conditions: research use with acknowledgement (Harper and Konstan, TiiS "
            "2015); no redistribution and no commercial use without permission."
        ),
        raw_file=f"ml-{size}.zip",
        read_raw=ratings_reader(member, separator),
        sample=sample,
        statistics=statistics,
        stem=f"movielens-{size}",
        url=f"{FILES}/ml-{size}.zip",
        checksum=checksum,
        member=member,
        # The ratings are found as well where somebody has unpacked the zip.
        other_files=(member,),
    )
