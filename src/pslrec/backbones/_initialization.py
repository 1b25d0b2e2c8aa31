"""How the tables of a backbone start: drawn at random, or read off the training matrix."""

import math
import weakref
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pslrec.backbones._graph import normalized_matrix
from pslrec.data import Interactions
from pslrec.errors import ConfigError, UnknownNameError
from pslrec.kernels import CompressedRows, sparse_product

Draw = Callable[[int, int, torch.Generator], Tensor]

# Directions beyond those wanted, and rounds of multiplication. These give all 64 singular values of
# Gowalla to 0.2 %, and those of Amazon-Electronic, which hardly differ from each other, to 3 %: as
# good a start there as the exact ones.
SPARE_DIRECTIONS = 16
POWER_ROUNDS = 12
NOISE_OF_EMPTY_ROWS = 0.01
# Chosen on validation data, see reproductions/presets.
SPECTRAL_POWER = 3.0
# The longest items would leave all others near zero; their lengths are cut to this quantile.
LENGTH_QUANTILE = 0.99
# The largest singular value is 1; what is below this is rounding error.
SMALLEST_VALUE = 1e-4
# A row that short beside the others is rounding error: it is empty, or in a part of the graph too
# small to count.
SHORTEST_ROW = 1e-4


def initial_tables(
    method: str, train: Interactions, *, dimension: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """First values of the user and the item table, float32.

    Args:
        method: `normal` draws from N(0, 1), and `normal:STD` with another standard deviation.
            `xavier-uniform` and `xavier-normal` shrink with the table: variance
            2 / (rows + dimension). `spectral` starts from a truncated singular value decomposition
            of the training matrix, `spectral:POWER` with another power of its singular values, see
            `spectral_tables`. The norm of a row sets how far a step of the optimiser turns it, so
            the method and the learning rate belong together.
        train: the training interactions. Their vocabularies give the sizes, and `spectral` uses the
            pairs.
        dimension: columns of both tables.
        generator: source of all random numbers.

    >>> log = Interactions.from_ids(["ann", "bob", "bob"], ["tea", "tea", "milk"])
    >>> generator = torch.Generator().manual_seed(1)
    >>> users, items = initial_tables("normal:0.1", log, dimension=8, generator=generator)
    >>> users.shape, items.shape
    (torch.Size([2, 8]), torch.Size([2, 8]))
    """
    if method == "spectral":
        return spectral_tables(train, dimension=dimension, generator=generator)
    if method.startswith("spectral:"):
        power = _number_of(method)
        return spectral_tables(train, dimension=dimension, generator=generator, power=power)
    draw = _draw(method)
    # Users first: the order of the draws is part of what a seed means.
    users = draw(train.n_users, dimension, generator)
    items = draw(train.n_items, dimension, generator)
    return users, items


def initial_history_tables(
    method: str, train: Interactions, *, dimension: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """First values of two tables with a row per item: what users are sums of, and what is ranked.

    With `spectral`, a user's sum over the whole history points where the row of the user in
    `initial_tables` does.

    Arguments as in `initial_tables`.
    """
    if method == "spectral":
        return spectral_history_tables(train, dimension=dimension, generator=generator)
    if method.startswith("spectral:"):
        power = _number_of(method)
        return spectral_history_tables(train, dimension=dimension, generator=generator, power=power)
    draw = _draw(method)
    summed = draw(train.n_items, dimension, generator)
    items = draw(train.n_items, dimension, generator)
    return summed, items


def _draw(method: str) -> Draw:
    if method in DRAWS:
        return DRAWS[method]
    if method.startswith("normal:"):
        return _normal_with(_number_of(method))
    names = ["normal:STD", *DRAWS, "spectral", "spectral:POWER"]
    allowed = ", ".join(sorted(names))
    raise UnknownNameError(f"unknown initialization `{method}`. Available: {allowed}")


def _number_of(method: str) -> float:
    text = method.partition(":")[2]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ConfigError(
            "`initialization` must give a positive number, as in `normal:0.01` or `spectral:2.5`, "
            f"got {method!r}"
        )
    return value


def _normal_with(standard_deviation: float) -> Draw:
    def draw(rows: int, dimension: int, generator: torch.Generator) -> Tensor:
        return torch.randn(rows, dimension, generator=generator) * standard_deviation

    return draw


def _xavier_normal(rows: int, dimension: int, generator: torch.Generator) -> Tensor:
    draw = _normal_with(math.sqrt(2 / (rows + dimension)))
    return draw(rows, dimension, generator)


def _xavier_uniform(rows: int, dimension: int, generator: torch.Generator) -> Tensor:
    bound = math.sqrt(6 / (rows + dimension))
    shares = torch.rand(rows, dimension, generator=generator)
    return (2 * shares - 1) * bound


DRAWS: dict[str, Draw] = {
    "normal": _normal_with(1.0),
    "xavier-uniform": _xavier_uniform,
    "xavier-normal": _xavier_normal,
}


def spectral_tables(
    train: Interactions,
    *,
    dimension: int,
    generator: torch.Generator,
    power: float = SPECTRAL_POWER,
) -> tuple[Tensor, Tensor]:
    """Tables that rank before any training, by cosines as by inner products.

    With D_u^-1/2 R D_i^-1/2 ≈ P S Qᵀ, a truncated singular value decomposition of the
    degree-normalised training matrix, users start at the rows of P S^power and items at those of
    Q S^power: the power keeps what many people share and damps the rest. How well that ranks
    depends on the data.

    Lengths of items carry their popularity, which cosines would lose. So the last column is kept
    for them: items are scaled to lengths of at most 1 and the column makes up for the rest, while
    it is 0 for users, whose rows have norm 1. All rows then have norm 1, and cosines rank as the
    inner products do.

    Users and items without a training pair get small noise, and so do the columns beyond the rank
    of the matrix: a column of zeros in both tables would never move.

    Args:
        train: the training interactions.
        dimension: columns of both tables.
        generator: of the directions the decomposition starts with, and of the noise.
        power: of the singular values.
    """
    # One column fewer than there are, for the lengths of the items.
    rank = max(dimension - 1, 1)
    left, values, right = _decomposition(train, rank, generator)
    users = _unit_rows(left * values**power, dimension, generator)
    if dimension == 1:
        items = _unit_rows(right * values**power, dimension, generator)
    else:
        items = _rows_with_lengths(right * values**power, dimension, generator)
    return users, items


def spectral_history_tables(
    train: Interactions,
    *,
    dimension: int,
    generator: torch.Generator,
    power: float = SPECTRAL_POWER,
) -> tuple[Tensor, Tensor]:
    """The spectral start without rows of users.

    P S^power is D_u^-1/2 R D_i^-1/2 Q S^(power - 1), and the length of a user's vector does not
    count. So the sum of the rows of D_i^-1/2 Q S^(power - 1) over a history points where the user's
    row in `spectral_tables` does. These rows are scaled to a mean square length of 1, like those
    that are ranked.

    Arguments as in `spectral_tables`.
    """
    rank = max(dimension - 1, 1)
    _, values, right = _decomposition(train, rank, generator)
    degrees = np.bincount(train.rows.items, minlength=train.n_items)
    rarity = torch.from_numpy(degrees.clip(min=1) ** -0.5).to(right.dtype)
    sent = right * values ** (power - 1) * rarity.unsqueeze(1)
    is_trained = torch.from_numpy(degrees > 0)
    summed = torch.randn(len(sent), dimension, generator=generator) * NOISE_OF_EMPTY_ROWS
    if bool(is_trained.any()):
        mean_square = sent[is_trained].square().sum(dim=1).mean()
        summed[is_trained, : sent.shape[1]] = sent[is_trained] / mean_square.sqrt()
    if dimension == 1:
        items = _unit_rows(right * values**power, dimension, generator)
    else:
        # The last column carries the lengths of items, in which users have no part.
        summed[:, -1] = 0.0
        items = _rows_with_lengths(right * values**power, dimension, generator)
    return summed, items


def _unit_rows(vectors: Tensor, dimension: int, generator: torch.Generator) -> Tensor:
    table, norms, is_filled = _noise_and_norms(vectors, dimension, generator)
    table[is_filled, : vectors.shape[1]] = vectors[is_filled] / norms[is_filled, None]
    if dimension > 1:
        table[is_filled, -1] = 0.0
    return table


def _rows_with_lengths(vectors: Tensor, dimension: int, generator: torch.Generator) -> Tensor:
    table, norms, is_filled = _noise_and_norms(vectors, dimension, generator)
    longest = 1.0
    if bool(is_filled.any()):
        longest = float(np.quantile(norms[is_filled].numpy(), LENGTH_QUANTILE))
    lengths = (norms / longest).clamp(max=1.0)
    scales = (lengths / norms)[is_filled, None]
    table[is_filled, : vectors.shape[1]] = vectors[is_filled] * scales
    # Rounding may leave a length a little above 1.
    missing = (1 - lengths[is_filled].square()).clamp(min=0.0)
    table[is_filled, -1] = missing.sqrt()
    return table


def _noise_and_norms(
    vectors: Tensor, dimension: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """A table of noise, the norm of each row of the vectors, and which rows are not empty."""
    table = torch.randn(len(vectors), dimension, generator=generator) * NOISE_OF_EMPTY_ROWS
    norms = vectors.norm(dim=1)
    typical = norms.square().mean().sqrt()
    return table, norms, norms > SHORTEST_ROW * typical


class _Decomposed(NamedTuple):
    train: "weakref.ref[Interactions]"
    rank: int
    state_before: Tensor
    state_after: Tensor
    parts: tuple[Tensor, Tensor, Tensor]


# The last decomposition of a few training sets: a race trains from the same start several times, and
# a decomposition costs as much as an epoch or two.
_MOST_KEPT = 4
_last: list[_Decomposed] = []


def _decomposition(
    train: Interactions, rank: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """The decomposition of the normalised training matrix; nobody may write to what comes back."""
    state = generator.get_state()
    # A copy: another thread may replace the last one meanwhile.
    for known in _last:
        is_same = known.train() is train and known.rank == rank
        if is_same and torch.equal(known.state_before, state):
            # As if the directions had been drawn again.
            generator.set_state(known.state_after)
            return known.parts
    parts = truncated_svd(normalized_matrix(train), rank=rank, generator=generator)
    found = _Decomposed(weakref.ref(train), rank, state, generator.get_state(), parts)
    # One of each training set, and none of those that are gone.
    others = [known for known in _last if known.train() not in (None, train)]
    _last[:] = [*others[1 - _MOST_KEPT :], found]
    return parts


def truncated_svd(
    matrix: CompressedRows, *, rank: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """The largest singular values of a sparse matrix with their vectors.

    Computed by randomised subspace iteration: a random subspace is multiplied by the matrix and its
    transpose in turn, and made orthonormal after each round, until it holds the leading directions;
    the rest is a small dense decomposition.

    Args:
        matrix: the sparse matrix, shape (rows, columns).
        rank: singular values wanted; fewer come back if the matrix is smaller or of lower rank.
        generator: of the subspace to start with.

    Returns:
        Left vectors (rows, rank), singular values in falling order (rank,), and right vectors
        (columns, rank).

    Reference: Halko, Martinsson and Tropp, SIAM Review 2011, algorithms 4.4 and 5.1.
    """
    transposed = matrix.transposed()
    n_directions = min(rank + SPARE_DIRECTIONS, matrix.n_rows, matrix.n_columns)
    basis = torch.randn(
        matrix.n_columns, n_directions, generator=generator, dtype=matrix.values.dtype
    )
    for _ in range(POWER_ROUNDS):
        product = sparse_product(matrix, transposed, basis)
        product = sparse_product(transposed, matrix, product)
        # Without this, all directions would turn into the first one.
        basis = torch.linalg.qr(product).Q
    product = sparse_product(matrix, transposed, basis)
    left, values, rotation = torch.linalg.svd(product, full_matrices=False)
    n_values = int((values > SMALLEST_VALUE).sum())
    kept = min(rank, n_values)
    right = basis @ rotation[:kept].T
    return left[:, :kept], values[:kept], right
