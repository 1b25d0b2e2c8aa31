"""The "ratings only" files of the 2014 Amazon review data: four columns without a header."""

from pathlib import Path

from pslrec.data._interactions import Interactions
from pslrec.data.sources._base import Source, Statistics
from pslrec.data.sources._raw import read_fields

FILES = "https://snap.stanford.edu/data/amazon/productGraph/categoryFiles"


def read_ratings(path: Path) -> Interactions:
    """Read the ratings of one category."""
    # Ids are not among the whole numbers: many items begin with zeros, which must stay.
    return read_fields(
        path,
        ("user", "item", "rating", "timestamp"),
        separator=",",
        whole_numbers=("timestamp",),
    )


def amazon_2014(label: str, category: str, statistics: Statistics) -> Source:
    """The source of one category.

    Args:
        label: the category as the paper calls it.
        category: the category as the published files spell it.
        statistics: the size after the paper's preparation.
    """
    raw_file = f"ratings_{category}.csv"
    return Source(
        name=f"amazon-{label.lower()}",
        title=f"Amazon-{label} (2014)",
        page="https://cseweb.ucsd.edu/~jmcauley/datasets/amazon/links.html",
        licence=(
            "No licence is known to us; collected from Amazon for research by McAuley's group at "
            "UC San Diego, which asks to cite He and McAuley (WWW 2016) and McAuley et al. "
            "(SIGIR 2015). Do not redistribute."
        ),
        raw_file=raw_file,
        read_raw=read_ratings,
        sample=(
            "A1EXAMPLE0USER,0000012345,5.0,1369699200\nA2EXAMPLE0USER,B00EXAMPLE,3.0,1355443200\n"
        ),
        statistics=statistics,
        stem=f"amazon2014-{label.lower()}",
        url=f"{FILES}/{raw_file}",
        other_files=(f"{raw_file}.gz",),
    )
