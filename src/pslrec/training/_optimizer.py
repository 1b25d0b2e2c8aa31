"""The optimiser of the paper: dense Adam with weight decay coupled into the gradient."""

from torch.optim import Adam

from pslrec.backbones import Backbone
from pslrec.losses import Loss, Phase

FUSED_DEVICES = ("cpu", "cuda", "mps")


def build_optimizers(
    backbone: Backbone, loss: Loss, *, learning_rate: float, weight_decay: float
) -> dict[Phase, Adam]:
    """One Adam per phase of the loss, each with what that phase trains.

    Every row of the tables moves at every step, by its momentum if not by its gradient; neither
    sparse Adam nor AdamW is a substitute.

    Args:
        backbone: whose tables the phase "model" trains.
        loss: names its own parameters by phase, perhaps with learning rates of their own.
        learning_rate: of the tables.
        weight_decay: coupled into the gradient.
    """
    optimizers: dict[Phase, Adam] = {}
    for phase in loss.phases:
        groups = loss.parameter_groups(learning_rate, phase)
        if phase == "model":
            # First: a checkpoint names the parameters of an optimiser by their number.
            tables = [backbone.user_table, backbone.item_table]
            groups = [{"params": tables, "lr": learning_rate}, *groups]
        # Torch has a fused step for these devices only.
        is_fused = backbone.item_table.device.type in FUSED_DEVICES
        optimizers[phase] = Adam(
            groups, lr=learning_rate, weight_decay=weight_decay, fused=is_fused
        )
    return optimizers
