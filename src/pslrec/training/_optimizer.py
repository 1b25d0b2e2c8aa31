"""The optimiser of the paper: dense Adam with weight decay coupled into the gradient."""

from torch.optim import Adam

from pslrec.backbones import Backbone
from pslrec.losses import Loss, Phase


def build_optimizers(
    backbone: Backbone, loss: Loss, *, learning_rate: float, weight_decay: float
) -> dict[Phase, Adam]:
    """One Adam per phase of the loss, each with what that phase trains.

    Every row of the tables moves at every step, by its momentum if not by its gradient; neither sparse Adam nor AdamW is a
    substitute. A loss names its own parameters, and for its adversary perhaps a learning rate of their own.
    """
    optimizers: dict[Phase, Adam] = {}
    for phase in loss.phases:
        groups = loss.parameter_groups(learning_rate, phase)
        if phase == "model":
            groups = [
                {"params": [backbone.user_table, backbone.item_table], "lr": learning_rate},
                *groups,
            ]
        optimizers[phase] = Adam(groups, lr=learning_rate, weight_decay=weight_decay, fused=True)
    return optimizers
