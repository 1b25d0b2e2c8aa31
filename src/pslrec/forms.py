"""The formulas that one fused operation can compute: losses name theirs, the engine looks it up."""

from typing import Literal, NamedTuple

FormKind = Literal["log-sum", "inside", "mean"]


class FusedForm(NamedTuple):
    """A loss as a formula in the differences d_j = s_j - s of its negatives' scores and its own.

    | kind | loss of one positive |
    | --- | --- |
    | `log-sum` | factor * log Σ_j σ(d_j)^exponent |
    | `inside` | factor * log Σ_j σ(exponent * d_j) |
    | `mean` | factor * mean_j log σ(d_j) |

    The form says nothing about where negatives come from; sampled ones and the whole catalogue
    have the same one.

    Args:
        kind: which of the three.
        surrogate: name of σ.
        exponent: 1 / temperature; `mean` has none.
        factor: of the whole loss.
    """

    kind: FormKind
    surrogate: str
    exponent: float = 1.0
    factor: float = 1.0


class WeightedForm(NamedTuple):
    """A log-sum or inside form, times a weight of its positive that the loss gives.

    Args:
        form: what the weight multiplies.
        catalog_negatives: N; the sum over a whole catalogue is its mean times this.
    """

    form: FusedForm
    catalog_negatives: int
