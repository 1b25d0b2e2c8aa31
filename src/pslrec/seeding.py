"""Random generators made from one seed and the name of their purpose; no global state is touched."""

import hashlib

import numpy as np


def derive_seed(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed for one purpose.

    Streams of different purposes do not depend on each other, so a new draw in one place does not
    shift those of another.

    Args:
        seed: of the run.
        purpose: what the numbers are for, and how often they were needed before.

    >>> derive_seed(2024, "negatives", 3) == derive_seed(2024, "negatives", 3)
    True
    >>> derive_seed(2024, "negatives", 3) == derive_seed(2024, "negatives", 4)
    False
    """
    text = "/".join([str(seed), *map(str, purpose)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    # Torch takes signed seeds, so the highest bit stays free.
    return int.from_bytes(digest, "little") >> 1


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """A numpy generator for one purpose.

    Args:
        seed: of the run.
        purpose: as in `derive_seed`.

    >>> int(generator(0, "example").integers(1000)) == int(generator(0, "example").integers(1000))
    True
    """
    return np.random.default_rng(derive_seed(seed, *purpose))
