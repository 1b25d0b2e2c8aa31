"""A loss of your own, trained by pslrec over the whole catalogue, without sampling."""

from collections.abc import Mapping

from torch import Tensor

from pslrec import Recommender
from pslrec.data import Preparation, load_interactions, prepare
from pslrec.losses import Loss, register_loss


@register_loss("squared-hinge")
class SquaredHingeLoss(Loss):
    """Squared hinge: mean_j max(s_j - s + margin, 0)².

    Args:
        margin: by which a positive should score higher than a negative.
    """

    def __init__(self, margin: float = 0.2) -> None:
        super().__init__()
        self.margin = margin

    def _pairwise_values(
        self, positives: Tensor, negatives: Tensor, _extras: Mapping[str, Tensor], /
    ) -> Tensor:
        violations = negatives - positives.unsqueeze(1) + self.margin
        return violations.clamp(min=0).square().mean(dim=1)


def main() -> None:
    log = prepare(load_interactions("debian"), Preparation(k_core=20))
    recommender = Recommender(SquaredHingeLoss(margin=0.3), epochs=3, dimension=16).fit(log)
    print(recommender.config_.loss)
    print(recommender.recommend(recommender.users_[:2], k=3))


if __name__ == "__main__":
    main()
