"""A made-up interactions log as a CSV file: string ids, long tails, repeated pairs."""

from pathlib import Path

import numpy as np
import polars as pl

from pslrec.files import whole_file

ROWS_PER_USER = 10
ROWS_PER_ITEM = 50
REPEATED = 0.05
RATING_SHARES = (0.08, 0.06, 0.11, 0.22, 0.53)  # of 1 to 5 stars, roughly those of reviews
FIRST_SECOND, LAST_SECOND = 1_300_000_000, 1_400_000_000
CHUNK = 1_000_000
COUNTING = 5


def write_log(path: Path, n_rows: int, seed: int = 0) -> None:
    """Write a log of so many rows; the same size and seed give the same file.

    Users are active by a log-normal law, items popular by Zipf's; one row in twenty repeats an earlier pair at another
    time with another rating.
    """
    random = np.random.default_rng(seed)
    users = _names("A", max(n_rows // ROWS_PER_USER, 2), width=13, random=random)
    items = _names("B", max(n_rows // ROWS_PER_ITEM, 2), width=9, random=random)
    user_shares = np.cumsum(random.lognormal(sigma=1.3, size=len(users)))
    item_shares = np.cumsum(1.0 / (np.arange(len(items)) + 10.0) ** 0.9)
    user_rows, item_rows = (
        np.searchsorted(shares, random.random(n_rows) * shares[-1]).astype(np.int32)
        for shares in (user_shares, item_shares)
    )
    repeats = np.flatnonzero(random.random(n_rows) < REPEATED)
    originals = (random.random(len(repeats)) * repeats).astype(np.int64)
    user_rows[repeats], item_rows[repeats] = user_rows[originals], item_rows[originals]
    with whole_file(path) as file:
        file.write(b"user_id,item_id,rating,timestamp\n")
        for start in range(0, n_rows, CHUNK):
            chunk = slice(start, start + CHUNK)
            length = len(user_rows[chunk])
            frame = pl.DataFrame(
                {
                    "user_id": users.gather(user_rows[chunk]),
                    "item_id": items.gather(item_rows[chunk]),
                    "rating": random.choice(np.arange(1, 6), size=length, p=RATING_SHARES),
                    "timestamp": random.integers(FIRST_SECOND, LAST_SECOND, size=length),
                }
            )
            frame.write_csv(file, include_header=False)


def _names(prefix: str, count: int, width: int, random: np.random.Generator) -> pl.Series:
    # Random letters and digits, as long as the ids of a shop; the last five count, so that no two are the same.
    alphabet = np.frombuffer(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", dtype=np.uint8)
    letters = alphabet[random.integers(36, size=(count, width))]
    number = random.permutation(count)
    for position in range(width - COUNTING, width):
        number, digit = np.divmod(number, 36)
        letters[:, position] = alphabet[digit]
    return prefix + pl.Series(letters.view(f"S{width}").ravel().astype(str))
