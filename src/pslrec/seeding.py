"""Random generators made from one seed and the name of their purpose; nothing here touches global state."""

import hashlib

import numpy as np


def derive_seed(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed for one purpose.

    Streams of different purposes do not depend on each other, so a new draw in one place does not shift those of another.

    >>> derive_seed(2024, "negatives", 3) == derive_seed(2024, "negatives", 3)
    True
    >>> derive_seed(2024, "negatives", 3) == derive_seed(2024, "negatives", 4)
    False
    """
    text = "/".join([str(seed), *map(str, purpose)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """A numpy generator for one purpose.

    >>> int(generator(0, "example").integers(1000)) == int(generator(0, "example").integers(1000))
    True
    """
    return np.random.default_rng(derive_seed(seed, *purpose))
