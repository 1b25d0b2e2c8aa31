"""Debian packages and what they depend on or recommend, and the compact file that holds them.

The file is xz-compressed text: a line that names the format, a line that tells the origin, a line with all
item names in sorted order, then a line per user in sorted order: its name and its items, as gaps between
their ascending row numbers.
"""

import lzma
from functools import cache
from importlib.resources import files
from itertools import chain

import numpy as np

from pslrec.data._interactions import Interactions
from pslrec.data._vocabulary import Vocabulary
from pslrec.errors import DataError

FORMAT = "pslrec packed interactions 1"
FILE = "debian-bookworm-main.txt.xz"


def debian_packages() -> Interactions:
    """Debian's packages (as users) and the packages that they depend on or recommend (as items), 5-core.

    Real implicit feedback with names that a person can read: who needs `libgtk-3-0` also needs what? It is
    read at the first call and shared by later ones.

    >>> packages = debian_packages()
    >>> packages
    Interactions(150,559 pairs of 15,877 users and 5,077 items)
    >>> vim = packages.user_vocabulary.rows(["vim"])[0]
    >>> packages.item_vocabulary.ids(packages.items[packages.users == vim])
    ['libacl1', 'libc6', 'libgpm2', 'libselinux1', 'libsodium23', 'libtinfo6', 'vim-common']
    """
    return _embedded()[0]


def debian_origin() -> str:
    """Which package index the embedded data was made from, in one line."""
    return _embedded()[1]


def pack(interactions: Interactions, origin: str) -> bytes:
    """The pairs of `interactions` as a file of this module's format; anything beside the pairs is left out.

    Args:
        interactions: pairs of string ids without white space, vocabularies in sorted order.
        origin: one line that says where the data is from.
    """
    for vocabulary in (interactions.user_vocabulary, interactions.item_vocabulary):
        names = [str(name) for name in vocabulary.series]
        if names != vocabulary.series.sort().to_list() or any(
            name.split() != [name] for name in names
        ):
            raise DataError(
                f"`interactions` must have sorted {vocabulary.kind} names without white space"
            )
    pairs = interactions.sorted()
    first_of_user = np.searchsorted(pairs.users, np.arange(pairs.n_users + 1))
    gaps = np.diff(pairs.items, prepend=0)
    starts = first_of_user[:-1][first_of_user[:-1] < first_of_user[1:]]
    gaps[starts] = pairs.items[starts]
    numbers = gaps.astype(str).tolist()
    users = interactions.user_vocabulary.series.to_list()
    lines = [
        FORMAT,
        " ".join(origin.split()),
        " ".join(interactions.item_vocabulary.series.to_list()),
    ]
    lines += [
        " ".join([user, *numbers[first:last]])
        for user, first, last in zip(users, first_of_user[:-1], first_of_user[1:], strict=True)
    ]
    return lzma.compress("\n".join([*lines, ""]).encode(), preset=9 | lzma.PRESET_EXTREME)


def unpack(data: bytes) -> tuple[Interactions, str]:
    """The interactions and the origin in the bytes of a packed file."""
    try:
        lines = lzma.decompress(data).decode().splitlines()
    except (lzma.LZMAError, UnicodeDecodeError) as problem:
        raise DataError(
            f"the packed interactions are damaged ({problem}); install pslrec again"
        ) from None
    if len(lines) < 3 or lines[0] != FORMAT:
        raise DataError(
            f"packed interactions must begin with `{FORMAT}`, got `{lines[0] if lines else ''}`"
        )
    rows = [line.split(" ") for line in lines[3:]]
    lengths = np.array([len(row) - 1 for row in rows], dtype=np.int64)
    gaps = np.array(list(chain.from_iterable(row[1:] for row in rows)), dtype=np.int64)
    # A running sum over all gaps, less what had been summed up before each user.
    sums = np.concatenate([[0], np.cumsum(gaps)])
    items = sums[1:] - np.repeat(sums[np.cumsum(lengths) - lengths], lengths)
    interactions = Interactions(
        np.repeat(np.arange(len(rows)), lengths),
        items,
        Vocabulary([row[0] for row in rows], kind="user"),
        Vocabulary(lines[2].split(), kind="item"),
    )
    return interactions, lines[1]


@cache
def _embedded() -> tuple[Interactions, str]:
    return unpack(files(__package__).joinpath(FILE).read_bytes())
