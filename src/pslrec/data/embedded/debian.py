"""Debian packages and what they depend on or recommend, and the compact file that holds them.

The file is xz-compressed text: a line that names the format, a line that states the origin, a line
with all item names in sorted order, then a line per user in sorted order: its name and its items,
as gaps between their ascending row numbers.
"""

import lzma
from functools import cache
from importlib.resources import files

import numpy as np

from pslrec.data._interactions import Interactions
from pslrec.data._vocabulary import Vocabulary
from pslrec.errors import DataError

FORMAT = "pslrec packed interactions 1"
FILE = "debian-bookworm-main.txt.xz"


def debian_packages() -> Interactions:
    """Debian's packages as users, the packages they depend on or recommend as items, 5-core.

    This is real implicit feedback with names that a person can read: who needs `libgtk-3-0` also
    needs what? It is read at the first call and shared by later ones.

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
    """The pairs of `interactions` as a file of this module's format; other columns are left out.

    Args:
        interactions: pairs of string ids without white space, vocabularies in sorted order.
        origin: one line that says where the data is from.
    """
    for vocabulary in (interactions.user_vocabulary, interactions.item_vocabulary):
        _check_names(vocabulary)
    pairs = interactions.sorted()
    bounds = np.searchsorted(pairs.users, np.arange(pairs.n_users + 1))
    firsts = bounds[:-1]
    lasts = bounds[1:]
    # Gaps are small numbers that repeat, and compress better than row numbers.
    gaps = np.diff(pairs.items, prepend=0)
    # The first gap of a user counts from 0, not from the last item of the user before.
    starts = firsts[firsts < lasts]
    gaps[starts] = pairs.items[starts]
    numbers = gaps.astype(str).tolist()
    lines = [
        FORMAT,
        # Always one line: readers find the rest by the number of the line.
        " ".join(origin.split()),
        " ".join(interactions.item_vocabulary.series.to_list()),
    ]
    users = interactions.user_vocabulary.series.to_list()
    for user, first, last in zip(users, firsts, lasts, strict=True):
        lines.append(" ".join([user, *numbers[first:last]]))
    text = "\n".join(lines) + "\n"
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def _check_names(vocabulary: Vocabulary) -> None:
    names = list(map(str, vocabulary.series))
    is_sorted = names == vocabulary.series.sort().to_list()
    has_spaces = any(name.split() != [name] for name in names)
    if not is_sorted or has_spaces:
        raise DataError(
            f"`interactions` must have sorted {vocabulary.kind} names without white space"
        )


def unpack(data: bytes) -> tuple[Interactions, str]:
    """The interactions and the origin in the bytes of a packed file."""
    try:
        lines = lzma.decompress(data).decode().splitlines()
    except (lzma.LZMAError, UnicodeDecodeError) as problem:
        raise DataError(
            f"the packed interactions are damaged ({problem}); install pslrec again"
        ) from None
    if len(lines) < 3 or lines[0] != FORMAT:
        first = "".join(lines[:1])
        raise DataError(f"packed interactions must begin with `{FORMAT}`, got `{first}`")
    names = []
    counts = []
    texts: list[str] = []
    for line in lines[3:]:
        name, *numbers = line.split(" ")
        names.append(name)
        counts.append(len(numbers))
        texts += numbers
    lengths = np.array(counts, dtype=np.int64)
    gaps = np.array(texts, dtype=np.int64)
    # A running sum over all gaps, minus the sum that was reached before each user.
    sums = np.concatenate([[0], np.cumsum(gaps)])
    sums_before = sums[np.cumsum(lengths) - lengths]
    items = sums[1:] - np.repeat(sums_before, lengths)
    interactions = Interactions(
        np.repeat(np.arange(len(names)), lengths),
        items,
        Vocabulary(names, kind="user"),
        Vocabulary(lines[2].split(), kind="item"),
    )
    return interactions, lines[1]


# Kept in memory: unpacking takes longer than most uses of it.
@cache
def _embedded() -> tuple[Interactions, str]:
    return unpack(files(__package__).joinpath(FILE).read_bytes())
