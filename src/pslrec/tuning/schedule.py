"""How long cells are trained before the hopeless ones are left."""

from collections.abc import Sequence
from typing import NamedTuple

from pslrec.errors import ConfigError

HALVING_FACTOR = 3


class Round(NamedTuple):
    """Every cell that is still in is trained up to `epochs`; then the best `n_kept` stay in."""

    epochs: int
    n_kept: int


def single_round(n_cells: int, epochs: int) -> list[Round]:
    """Every cell to its end."""
    return [Round(epochs, n_cells)]


def halving_rounds(
    n_cells: int, epochs: int, *, validate_every: int, factor: int = HALVING_FACTOR
) -> list[Round]:
    """Successive halving: each round trains `factor` times longer and keeps one cell of `factor`.

    As many rounds as there are cells for, and no round shorter than two looks at the validation part.

    Args:
        n_cells: at the beginning.
        epochs: of a whole run.
        validate_every: epochs between two looks; rounds end on a look.
        factor: 3 leaves two thirds of the cells after each round.

    >>> halving_rounds(60, 200, validate_every=5)
    [Round(epochs=10, n_kept=20), Round(epochs=25, n_kept=7), Round(epochs=70, n_kept=3), Round(epochs=200, n_kept=3)]
    """
    if factor < 2:
        raise ConfigError(f"the factor of halving must be at least 2, got {factor}")
    shortest = 2 * validate_every
    lengths, counts = [epochs], [n_cells]
    while counts[-1] > 1 and _next_length(lengths[-1], factor, validate_every) >= shortest:
        if _next_length(lengths[-1], factor, validate_every) >= lengths[-1]:
            break
        lengths.append(_next_length(lengths[-1], factor, validate_every))
        counts.append(-(-counts[-1] // factor))
    kept = [*counts[1:], counts[-1]]
    return [Round(length, n_kept) for length, n_kept in zip(reversed(lengths), kept, strict=True)]


def _next_length(epochs: int, factor: int, validate_every: int) -> int:
    shorter = -(-epochs // factor)
    return -(-shorter // validate_every) * validate_every


def epochs_ahead(rounds: Sequence[Round], n_cells: int) -> int:
    """Epochs that a search makes in all, if no cell ends early."""
    total, before = 0, 0
    for each in rounds:
        total += n_cells * (each.epochs - before)
        n_cells, before = each.n_kept, each.epochs
    return total
