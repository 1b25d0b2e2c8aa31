"""The pairwise softmax loss: the softmax loss with another activation than exp."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from pslrec.losses._base import (
    TEMPERATURES,
    CatalogForm,
    LogSumForm,
    Loss,
    differences,
    one_of,
    positive_number,
    register_loss,
    search_grid,
)
from pslrec.losses._catalog import CatalogView
from pslrec.losses._surrogates import SURROGATES
from pslrec.losses.softmax import catalog_softmax_loss

FORMS = ("outside", "inside")


def pairwise_softmax_loss(
    positive_scores: Tensor,
    negative_scores: Tensor,
    *,
    surrogate: str,
    temperature: float,
    form: str = "outside",
) -> Tensor:
    """PSL of each positive: log Σ_j σ(s_j - s)^(1/τ), or log Σ_j σ((s_j - s) / τ) in the inside form.

    Args:
        positive_scores: half cosines, shape (batch,).
        negative_scores: half cosines, shape (batch, negatives).
        surrogate: name of σ.
        temperature: τ.
        form: where τ stands, `outside` or `inside` of σ.

    Raises:
        DivergenceError: the inside form has no finite value here (`atan`: sum not positive; `exp-exp`:
            overflow).

    >>> scores = torch.tensor([0.5]), torch.tensor([[0.0, 0.5]])
    >>> pairwise_softmax_loss(*scores, surrogate="relu", temperature=0.5)  # log(0.5² + 1²)
    tensor([0.2231])
    """
    activation = SURROGATES[surrogate]()
    difference = differences(positive_scores, negative_scores)
    if form == "inside":
        return activation.log_sum(difference / temperature)
    return torch.logsumexp(activation.log_value(difference) / temperature, dim=1)


@register_loss("psl")
class PairwiseSoftmaxLoss(Loss):
    """PSL: log Σ_j σ(s_j - s)^(1/τ) over the negatives.

    With `exp` it is SL; `tanh`, `atan` and `relu` lie closer to the 0/1 step, which makes the loss a tighter
    bound of DCG and gives large differences, such as those of false negatives, less weight.

    Args:
        surrogate: name of σ: tanh, atan, relu, softplus, exp or exp-exp.
        temperature: τ, for half cosines.
        form: `outside`, σ(d)^(1/τ), or `inside`, σ(d/τ), the paper's ablation; the grid of the latter goes up
            to 1.

    >>> loss = PairwiseSoftmaxLoss("relu", temperature=0.1)
    >>> loss(torch.tensor([0.4, 0.1]), torch.tensor([[0.1, -0.2], [0.3, 0.0]]))
    tensor(-0.8425)
    """

    reference = "Yang et al., NeurIPS 2024, Eq. 4.1"
    search_space = search_grid({"loss.temperature": TEMPERATURES})

    def __init__(
        self, surrogate: str = "relu", temperature: float = 0.1, form: str = "outside"
    ) -> None:
        super().__init__()
        self.surrogate = surrogate
        SURROGATES[surrogate]
        self.temperature = positive_number("temperature", temperature)
        self.form = one_of("form", form, FORMS)
        if form == "inside":
            self.search_space = {**self.search_space, "loss.temperature": (*TEMPERATURES, 0.5, 1.0)}

    def log_sum_form(self) -> LogSumForm | None:
        # σ = exp does not care where the temperature stands.
        is_outside = self.form == "outside" or self.surrogate == "exp"
        return LogSumForm(self.surrogate, 1.0 / self.temperature) if is_outside else None

    def catalog_form(self) -> CatalogForm:
        kind: Literal["log-sum", "inside"] = "inside" if self.log_sum_form() is None else "log-sum"
        return CatalogForm(kind, self.surrogate, 1.0 / self.temperature)

    def catalog_values(self, view: CatalogView) -> Tensor:
        if self.surrogate == "exp":
            return catalog_softmax_loss(view, temperature=self.temperature)
        activation = SURROGATES[self.surrogate]()
        if self.form == "inside":
            return view.at_every_positive(
                lambda d, weights: activation.log_sum(d / self.temperature, weights)
            )
        return view.at_every_positive(
            lambda d, weights: torch.logsumexp(
                activation.log_value(d) / self.temperature + weights.log(), dim=1
            )
        )

    def _pairwise_values(
        self, positives: Tensor, negatives: Tensor, _extras: Mapping[str, Tensor], /
    ) -> Tensor:
        return pairwise_softmax_loss(
            positives,
            negatives,
            surrogate=self.surrogate,
            temperature=self.temperature,
            form=self.form,
        )


def _fix_surrogate(surrogate: str, formula: str) -> type[PairwiseSoftmaxLoss]:
    class FixedSurrogateLoss(PairwiseSoftmaxLoss):
        def __init__(self, temperature: float = 0.1, form: str = "outside") -> None:
            super().__init__(surrogate, temperature, form)

    FixedSurrogateLoss.__name__ = FixedSurrogateLoss.__qualname__ = (
        f"PSL{surrogate.capitalize()}Loss"
    )
    FixedSurrogateLoss.__doc__ = f"PSL-{surrogate}: `psl` with the surrogate {formula}."
    return register_loss(f"psl-{surrogate}")(FixedSurrogateLoss)


PSLTanhLoss = _fix_surrogate("tanh", "tanh d + 1")
PSLAtanLoss = _fix_surrogate("atan", "arctan d + 1")
PSLReluLoss = _fix_surrogate("relu", "max(d + 1, 1e-7)")
PSLSoftplusLoss = _fix_surrogate("softplus", "exp d + 1")
