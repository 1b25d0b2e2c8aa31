"""From representations to the vectors whose products are the scores that a loss asks for."""

from torch import Tensor
from torch.nn import functional

from pslrec.backbones import Representations

SCALES = {"half-cosine": 0.5, "inner-product": 1.0}


def scored_tables(
    representations: Representations, similarity: str
) -> tuple[Tensor, Tensor, float]:
    """Users, items and a factor: the factor times their inner products is the score.

    Args:
        representations: of users and items; of length 1 afterwards where scores are cosines.
        similarity: as the loss declares it.
    """
    users = representations.users
    items = representations.items
    if similarity == "half-cosine":
        users = functional.normalize(users, dim=1)
        items = functional.normalize(items, dim=1)
    return users, items, SCALES[similarity]
