"""How the tables of a backbone start: drawn at random, or read off the training matrix."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from pslrec.backbones.graph import normalized_matrix
from pslrec.data.interactions import Interactions
from pslrec.errors import ConfigError, UnknownNameError
from pslrec.kernels.sparse_product import CompressedRows, sparse_product

Draw = Callable[[int, int, torch.Generator], Tensor]

# Directions beyond those wanted, and rounds of multiplication: these give all 64 singular values of Gowalla to 0.2 % and
# those of Amazon-Electronic, which hardly differ from each other, to 3 %, as good a start there as the exact ones.
SPARE_DIRECTIONS = 16
POWER_ROUNDS = 12
NOISE_OF_EMPTY_ROWS = 0.01
SMALLEST_VALUE = 1e-4  # of a singular value, where the largest is 1: below is rounding error


def initial_tables(
    method: str, train: Interactions, *, dimension: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """First values of the user and the item table, float32.

    Args:
        method: `normal` draws from N(0, 1), and `normal:STD` with another standard deviation. `xavier-uniform` and
            `xavier-normal` shrink with the table: variance 2 / (rows + dimension). `spectral` starts from a truncated singular
            value decomposition of the training matrix, see `spectral_tables`. The norm of a row sets how far a step of
            the optimiser turns it, so the method and the learning rate belong together.
        train: the training interactions: their vocabularies give the sizes, and `spectral` looks at the pairs.
        dimension: columns of both tables.
        generator: source of all random numbers.

    >>> log = Interactions.from_ids(["ann", "bob", "bob"], ["tea", "tea", "milk"])
    >>> users, items = initial_tables("normal:0.1", log, dimension=8, generator=torch.Generator().manual_seed(1))
    >>> users.shape, items.shape
    (torch.Size([2, 8]), torch.Size([2, 8]))
    """
    if method == "spectral":
        return spectral_tables(train, dimension=dimension, generator=generator)
    draw = _draw(method)
    return draw(train.n_users, dimension, generator), draw(train.n_items, dimension, generator)


def _draw(method: str) -> Draw:
    if method in DRAWS:
        return DRAWS[method]
    if method.startswith("normal:"):
        return _normal_with(_standard_deviation(method))
    allowed = ", ".join(["normal", "normal:STD", *(name for name in DRAWS if name != "normal"), "spectral"])
    raise UnknownNameError(f"unknown initialization `{method}`. Available: {allowed}")


def _standard_deviation(method: str) -> float:
    text = method.partition(":")[2]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ConfigError(
            f"`initialization` must give a positive standard deviation, as in `normal:0.01`, got {method!r}"
        )
    return value


def _normal_with(standard_deviation: float) -> Draw:
    def draw(rows: int, dimension: int, generator: torch.Generator) -> Tensor:
        return torch.randn(rows, dimension, generator=generator) * standard_deviation

    return draw


def _xavier_normal(rows: int, dimension: int, generator: torch.Generator) -> Tensor:
    return _normal_with(math.sqrt(2 / (rows + dimension)))(rows, dimension, generator)


def _xavier_uniform(rows: int, dimension: int, generator: torch.Generator) -> Tensor:
    bound = math.sqrt(6 / (rows + dimension))
    return (2 * torch.rand(rows, dimension, generator=generator) - 1) * bound


DRAWS: dict[str, Draw] = {
    "normal": _normal_with(1.0),
    "xavier-uniform": _xavier_uniform,
    "xavier-normal": _xavier_normal,
}


def spectral_tables(train: Interactions, *, dimension: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Tables whose cosines already know the coarse structure of the data, each row of norm 1.

    With D_u^-1/2 R D_i^-1/2 ≈ P S Qᵀ, a truncated singular value decomposition of the degree-normalised training matrix,
    users start at the rows of P and items at those of Q, scaled to norm 1. Users and items without a training pair get
    small noise, and so do the columns beyond the rank of the matrix: a column of zeros in both tables would never move.

    Args:
        train: the training interactions.
        dimension: columns of both tables.
        generator: of the directions the decomposition starts with, and of the noise.
    """
    left, _, right = truncated_svd(normalized_matrix(train), rank=dimension, generator=generator)
    return _unit_rows(left, dimension, generator), _unit_rows(right, dimension, generator)


def _unit_rows(vectors: Tensor, dimension: int, generator: torch.Generator) -> Tensor:
    table = torch.randn(len(vectors), dimension, generator=generator) * NOISE_OF_EMPTY_ROWS
    norms = vectors.norm(dim=1)
    # What is that small beside the others is rounding error: the row is empty, or in a part of the graph too small to count.
    is_filled = norms > 1e-4 * norms.square().mean().sqrt()
    table[is_filled, : vectors.shape[1]] = vectors[is_filled] / norms[is_filled, None]
    return table


def truncated_svd(matrix: CompressedRows, *, rank: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """The largest singular values of a sparse matrix with their vectors, by randomised subspace iteration.

    A random subspace is multiplied by the matrix and its transpose in turn, and made orthonormal after each round, until
    it holds the leading directions; the rest is a small dense decomposition.

    Args:
        matrix: the sparse matrix, shape (rows, columns).
        rank: singular values wanted; fewer come back if the matrix is smaller or of lower rank.
        generator: of the subspace to start with.

    Returns:
        Left vectors (rows, rank), singular values in falling order (rank,), right vectors (columns, rank).

    Reference: Halko, Martinsson and Tropp, SIAM Review 2011, algorithms 4.4 and 5.1.
    """
    transposed = matrix.transposed()
    n_directions = min(rank + SPARE_DIRECTIONS, matrix.n_rows, matrix.n_columns)
    basis = torch.randn(matrix.n_columns, n_directions, generator=generator, dtype=matrix.values.dtype)
    for _ in range(POWER_ROUNDS):
        product = sparse_product(matrix, transposed, basis)
        basis = torch.linalg.qr(sparse_product(transposed, matrix, product)).Q
    left, values, rotation = torch.linalg.svd(sparse_product(matrix, transposed, basis), full_matrices=False)
    kept = min(rank, int((values > SMALLEST_VALUE).sum()))
    return left[:, :kept], values[:kept], basis @ rotation[:kept].T
