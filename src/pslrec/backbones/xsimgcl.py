"""XSimGCL: propagation with noise, and a contrast between an early layer and the result."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from pslrec.backbones._base import (
    MOST_LAYERS,
    Backbone,
    NewUsers,
    Representations,
    SearchSpace,
    register_backbone,
)
from pslrec.backbones._graph import Graph
from pslrec.checks import number_from_zero, positive_number, whole_number
from pslrec.data import Interactions
from pslrec.kernels import add_row_noise


@register_backbone("xsimgcl")
class XSimGCL(Backbone):
    """XSimGCL: the mean of the noisy layers 1 to L, contrasted with one of them.

    In training each layer is E <- A E, then E <- E + sign(E) * noise, whose rows are Gaussian
    directions of length `noise`; the noisy layer feeds the next. Layer 0 is not in the mean. The
    contrast is InfoNCE on the rows of the batch, users and items apart. The original paper's code
    draws its noise uniformly and contrasts distinct rows with other constants (two layers, noise
    0.2, temperature 0.15); the defaults here are those of the PSL paper.

    Args:
        train: the interactions to learn from; its pairs are the edges.
        dimension: columns of the tables.
        initialization: how the tables start; `None` is `xavier-uniform`.
        seed: of the tables' first values.
        layers: L, up to 64: how far a representation looks.
        noise: length of the perturbation of a row at each layer, in training only; 0 switches it
            off.
        contrast_layer: which layer, from 1 to L, is compared with the mean.
        contrast_temperature: of the InfoNCE; lower makes near neighbours in the batch count more.
        contrast_weight: of the contrast beside the ranking loss; the paper uses 0.2, and 0.05 on
            Amazon-Electronic.
        unique_contrast: whether a row that is several times in the batch counts once in the
            contrast. By default it counts as often as it occurs, so that its other occurrences are
            negatives of it, as in the PSL paper's code.
    """

    reference = "Yu et al., TKDE 2023"
    default_initialization = "xavier-uniform"
    search_space: ClassVar[SearchSpace] = {"backbone.contrast_weight": (0.05, 0.1, 0.2)}

    def __init__(
        self,
        train: Interactions,
        *,
        dimension: int = 64,
        initialization: str | None = None,
        seed: int = 0,
        layers: int = 3,
        noise: float = 0.1,
        contrast_layer: int = 1,
        contrast_temperature: float = 0.1,
        contrast_weight: float = 0.2,
        unique_contrast: bool = False,
    ) -> None:
        super().__init__(train, dimension=dimension, initialization=initialization, seed=seed)
        self.layers = whole_number("layers", layers, maximum=MOST_LAYERS)
        self.noise = number_from_zero("noise", noise)
        self.contrast_layer = whole_number("contrast_layer", contrast_layer, maximum=self.layers)
        self.contrast_temperature = positive_number("contrast_temperature", contrast_temperature)
        self.contrast_weight = number_from_zero("contrast_weight", contrast_weight)
        self.unique_contrast = unique_contrast
        self.graph = Graph(train)

    def forward(self, noise: torch.Generator | None = None) -> Representations:
        """The mean of layers 1 to L, and the layer it is contrasted with."""
        is_noisy = self.training and self.noise > 0
        users: Tensor = self.user_table
        items: Tensor = self.item_table
        user_layers = []
        item_layers = []
        for _ in range(self.layers):
            users, items = self.graph.propagate(users, items)
            if noise is not None and is_noisy:
                # Users first: the order of the draws is part of what a seed means.
                users = perturbed(users, self.noise, noise)
                items = perturbed(items, self.noise, noise)
            user_layers.append(users)
            item_layers.append(items)
        return Representations(
            users=_mean(user_layers),
            items=_mean(item_layers),
            contrast_users=user_layers[self.contrast_layer - 1],
            contrast_items=item_layers[self.contrast_layer - 1],
        )

    def new_users(self) -> NewUsers:
        """Layers 1 to L of a new user come from its items, and layer 0 is not in the mean."""
        messages = self.graph.messages(self.user_table, self.item_table, layers=self.layers)
        return NewUsers(messages / self.layers, share=0.0)

    def auxiliary_loss(
        self, representations: Representations, users: Tensor, items: Tensor
    ) -> Tensor | None:
        """`contrast_weight` times the InfoNCE of the users plus that of the items."""
        if representations.contrast_users is None or representations.contrast_items is None:
            raise ValueError(
                "`representations` must hold contrast views; pass what `forward` of this backbone "
                "returned"
            )
        if self.unique_contrast:
            users = torch.unique(users)
            items = torch.unique(items)
        user_term = info_nce(
            representations.users[users],
            representations.contrast_users[users],
            temperature=self.contrast_temperature,
        )
        item_term = info_nce(
            representations.items[items],
            representations.contrast_items[items],
            temperature=self.contrast_temperature,
        )
        return self.contrast_weight * (user_term + item_term)


def _mean(tables: list[Tensor]) -> Tensor:
    # One running sum: a stack would copy every layer once more.
    total = tables[0]
    for table in tables[1:]:
        total = total + table
    return total / len(tables)


def perturbed(table: Tensor, length: float, generator: torch.Generator) -> Tensor:
    """The table, changed in place: each row moves by a Gaussian direction of the given length.

    The entries of the direction take the signs of those of the row. A row of zeros has no signs and
    stays as it is.

    Args:
        table: shape (rows, dimension).
        length: how far each row moves.
        generator: gives one number, from which the noise follows row by row, so that it does not
            depend on threads.

    >>> rows = torch.tensor([[3.0, -4.0], [0.0, 0.0]])
    >>> moved = perturbed(rows.clone(), 0.5, torch.Generator().manual_seed(0))
    >>> (moved - rows).norm(dim=1)
    tensor([0.5000, 0.0000])
    """
    key = int(torch.randint(2**63 - 1, (), generator=generator, device=generator.device))
    return add_row_noise(table, key=key, length=length)


def info_nce(first: Tensor, second: Tensor, *, temperature: float) -> Tensor:
    """Mean over rows a of -log( exp(c_aa / t) / Σ_b exp(c_ab / t) ).

    c_ab is the cosine of row a of one view and row b of the other.

    Args:
        first: one view, shape (rows, dimension).
        second: the other view of the same rows.
        temperature: t.

    >>> info_nce(torch.eye(2), torch.eye(2), temperature=1.0)  # log(1 + 1/e)
    tensor(0.3133)
    """
    cosines = functional.normalize(first, dim=1) @ functional.normalize(second, dim=1).T
    # The right answer of row a is row a.
    targets = torch.arange(len(first), device=first.device)
    return functional.cross_entropy(cosines / temperature, targets)
