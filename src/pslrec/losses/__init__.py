"""Losses: scores of positives and negatives in, one number to minimise out; torch is all they need.

>>> import torch
>>> loss = PairwiseSoftmaxLoss(surrogate="relu", temperature=0.1)
>>> loss(torch.tensor([0.5]), torch.tensor([[0.5, -0.5]]))
tensor(0.)
"""

from pslrec.checks import number_from_zero, one_of, positive_number, whole_number
from pslrec.losses._base import (
    LOSSES,
    TEMPERATURES,
    DivergenceError,
    Loss,
    Phase,
    Setup,
    Step,
    differences,
    register_loss,
    search_grid,
)
from pslrec.losses._catalog import CatalogFactors, CatalogStep, CatalogView
from pslrec.losses._surrogates import SURROGATES, Surrogate
from pslrec.losses.adv_infonce import AdvInfoNCELoss, adv_infonce_loss
from pslrec.losses.bce import BCELoss, bce_loss
from pslrec.losses.bpr import BPRLoss, bpr_loss
from pslrec.losses.bsl import (
    BilateralSoftmaxLoss,
    bilateral_softmax_loss,
    original_bilateral_softmax_loss,
)
from pslrec.losses.llpauc import LLPAUCLoss, LLPAUCScalars, llpauc_loss
from pslrec.losses.mse import MSELoss, mse_loss
from pslrec.losses.psl import PairwiseSoftmaxLoss, pairwise_softmax_loss
from pslrec.losses.softmax import SoftmaxLoss, softmax_loss
from pslrec.losses.softmax_at_k import SoftmaxAtKLoss, softmax_at_k_loss
from pslrec.losses.top_k import TopK, log_sum_losses, top_k_weights
from pslrec.registry import import_parts

# A file put here is a loss by itself; the imports above are for those who use one alone.
import_parts(__name__, __path__)

__all__ = [
    "LOSSES",
    "SURROGATES",
    "TEMPERATURES",
    "AdvInfoNCELoss",
    "BCELoss",
    "BPRLoss",
    "BilateralSoftmaxLoss",
    "CatalogFactors",
    "CatalogStep",
    "CatalogView",
    "DivergenceError",
    "LLPAUCLoss",
    "LLPAUCScalars",
    "Loss",
    "MSELoss",
    "PairwiseSoftmaxLoss",
    "Phase",
    "Setup",
    "SoftmaxAtKLoss",
    "SoftmaxLoss",
    "Step",
    "Surrogate",
    "TopK",
    "adv_infonce_loss",
    "bce_loss",
    "bilateral_softmax_loss",
    "bpr_loss",
    "differences",
    "llpauc_loss",
    "log_sum_losses",
    "mse_loss",
    "number_from_zero",
    "one_of",
    "original_bilateral_softmax_loss",
    "pairwise_softmax_loss",
    "positive_number",
    "register_loss",
    "search_grid",
    "softmax_at_k_loss",
    "softmax_loss",
    "top_k_weights",
    "whole_number",
]
