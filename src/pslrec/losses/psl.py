"""The pairwise softmax loss: the softmax loss with another activation than exp."""

from collections.abc import Mapping

import torch
from torch import Tensor

from pslrec.forms import FusedForm
from pslrec.losses._base import (
    TEMPERATURES,
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
    """PSL of each positive: log Σ_j σ(s_j - s)^(1/τ), inside form log Σ_j σ((s_j - s) / τ).

    Args:
        positive_scores: half cosines, shape (batch,).
        negative_scores: half cosines, shape (batch, negatives).
        surrogate: name of σ.
        temperature: τ.
        form: where τ stands, `outside` or `inside` of σ.

    Raises:
        DivergenceError: the inside form has no finite value here (`atan`: sum not positive;
            `exp-exp`: overflow).

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

    With `exp` it is SL; `tanh`, `atan` and `relu` lie closer to the 0/1 step, which makes the loss
    a tighter bound of DCG and gives large differences, such as those of false negatives, less
    weight.

    Args:
        surrogate: name of σ: tanh, atan, relu, softplus, exp or exp-exp.
        temperature: τ, for half cosines.
        form: `outside`, σ(d)^(1/τ), or `inside`, σ(d/τ), the paper's ablation; the grid of the
            latter goes up to 1.

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
        SURROGATES[surrogate]  # raises for an unknown name
        self.temperature = positive_number("temperature", temperature)
        self.form = one_of("form", form, FORMS)
        if form == "inside":
            wider = (*TEMPERATURES, 0.5, 1.0)
            self.search_space = {**self.search_space, "loss.temperature": wider}

    def fused_form(self) -> FusedForm:
        exponent = 1.0 / self.temperature
        # σ = exp does not care where the temperature stands.
        if self.form == "outside" or self.surrogate == "exp":
            return FusedForm("log-sum", self.surrogate, exponent)
        return FusedForm("inside", self.surrogate, exponent)

    def catalog_values(self, view: CatalogView) -> Tensor:
        # One sum per user serves all its positives, where any other σ needs one per positive.
        if self.surrogate == "exp":
            return catalog_softmax_loss(view, temperature=self.temperature)
        return view.at_every_positive(self._weighted_values)

    def _weighted_values(self, difference: Tensor, weights: Tensor) -> Tensor:
        activation = SURROGATES[self.surrogate]()
        if self.form == "inside":
            return activation.log_sum(difference / self.temperature, weights)
        exponents = activation.log_value(difference) / self.temperature
        # An item that is not a negative has weight 0, whose logarithm takes it out of the sum.
        return torch.logsumexp(exponents + weights.log(), dim=1)

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

    # As if each had been written out: the name appears in messages and documentation.
    name = f"PSL{surrogate.capitalize()}Loss"
    FixedSurrogateLoss.__name__ = name
    FixedSurrogateLoss.__qualname__ = name
    FixedSurrogateLoss.__doc__ = f"PSL-{surrogate}: `psl` with the surrogate {formula}."
    return register_loss(f"psl-{surrogate}")(FixedSurrogateLoss)


PSLTanhLoss = _fix_surrogate("tanh", "tanh d + 1")
PSLAtanLoss = _fix_surrogate("atan", "arctan d + 1")
PSLReluLoss = _fix_surrogate("relu", "max(d + 1, 1e-7)")
PSLSoftplusLoss = _fix_surrogate("softplus", "exp d + 1")
