"""Gowalla: check-ins of users at places, without ratings; many users return to the same place."""

from pathlib import Path

from pslrec.data._interactions import Interactions
from pslrec.data.sources._base import Source, Statistics, register
from pslrec.data.sources._raw import read_fields


def read_check_ins(path: Path) -> Interactions:
    """Read all check-ins; the item is the place."""
    return read_fields(
        path,
        ("user", "timestamp", "latitude", "longitude", "item"),
        separator="\t",
        whole_numbers=("user", "item"),
    )


GOWALLA = register(
    Source(
        name="gowalla",
        title="Gowalla",
        page="https://snap.stanford.edu/data/loc-Gowalla.html",
        licence=(
            "No licence is known to us; collected over Gowalla's public interface and published "
            "for research by the Stanford Network Analysis Project; cite Cho, Myers and Leskovec "
            "(KDD 2011). Do not redistribute."
        ),
        raw_file="loc-gowalla_totalCheckins.txt.gz",
        read_raw=read_check_ins,
        sample=(
            "0\t2010-10-19T23:55:27Z\t30.25\t-97.75\t22847\n"
            "0\t2010-10-18T22:17:43Z\t30.26\t-97.74\t420315\n"
            "7\t2009-02-28T00:00:01Z\t-33.9\t18.4\t22847\n"
        ),
        statistics=Statistics(n_users=29_858, n_items=40_988, n_interactions=1_027_464),
        stem="gowalla",
        url="https://snap.stanford.edu/data/loc-gowalla_totalCheckins.txt.gz",
        other_files=("loc-gowalla_totalCheckins.txt",),
        # Every check-in counts: there are no ratings to filter by.
        min_rating=None,
    )
)
