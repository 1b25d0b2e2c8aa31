"""The parts of a run, built from its configuration: backbone, loss and batches."""

from pathlib import Path

import torch

from pslrec.backbones import BACKBONES, Backbone
from pslrec.config import RunConfig, component_options
from pslrec.data import Interactions
from pslrec.errors import ConfigError
from pslrec.experiment._inputs import TrainingData
from pslrec.experiment._warm_start import start_warm
from pslrec.kernels import sampled_scores
from pslrec.losses import LOSSES, Loss, Setup
from pslrec.sampling import Hiding, PairBatches, UserBlocks
from pslrec.seeding import derive_seed


def build_model(config: RunConfig, train: Interactions) -> tuple[Backbone, Loss]:
    """Build the backbone and the loss of a run, as they are before the first step.

    Args:
        config: need not be complete.
        train: the training pairs.
    """
    return build_resolved_model(config.resolved(), train)


def build_resolved_model(config: RunConfig, train: Interactions) -> tuple[Backbone, Loss]:
    """Build the backbone and the loss of a complete configuration, which is not checked again.

    Args:
        config: as `RunConfig.resolved` gives it. The initialisation of the backbone depends on the
            loss, so an incomplete one would silently start from other values.
        train: the training pairs.
    """
    seed = config.training.seed
    loss = LOSSES[config.loss.name](**component_options(LOSSES, config.loss, "loss"))
    backbone_options = component_options(
        BACKBONES, config.backbone, "backbone", given_elsewhere=("train", "seed")
    )
    backbone = BACKBONES[config.backbone.name](train, seed=seed, **backbone_options)
    # Over the initial values, which stay for rows that the earlier run says nothing about.
    if config.training.warm_start is not None:
        start_warm(backbone, train, Path(config.training.warm_start))
    loss.build(
        Setup(
            n_users=train.n_users,
            n_items=train.n_items,
            dimension=backbone.dimension,
            generator=torch.Generator().manual_seed(derive_seed(seed, "loss")),
            history=train.rows,
            products=_products,
        )
    )
    return backbone, loss


def _products(users: torch.Tensor, items: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
    # A loss imports torch alone, so it is handed the kernel that computes its products.
    return sampled_scores(users, items, candidates.int().contiguous())


def build_batches(config: RunConfig, data: TrainingData) -> PairBatches | UserBlocks:
    """Build the batches of a run.

    Args:
        config: `sampling.negatives` decides between pairs with sampled negatives, for a number,
            and blocks of users with the whole catalogue or a shared part of it, for a name.
        data: the training pairs, and false negatives for the noise setting.
    """
    sampling = config.sampling
    hiding = _hiding(config)
    if isinstance(sampling.negatives, str):
        return UserBlocks(
            data.train,
            batch_pairs=sampling.batch_pairs,
            n_shared=sampling.n_shared(data.train.n_items),
            include_positives=sampling.include_positives,
            false_negatives=data.false_negatives,
            noise=sampling.noise.probability,
            hiding=hiding,
            seed=config.training.seed,
        )
    if sampling.include_positives:
        raise ConfigError(
            '`sampling.include_positives` needs `sampling.negatives` = "catalog" or "shared:N"'
        )
    # Complete configurations have a number here; others take the one of the loss.
    return PairBatches(
        data.train,
        n_negatives=sampling.negatives or LOSSES[config.loss.name].default_negatives,
        batch_pairs=sampling.batch_pairs,
        false_negatives=data.false_negatives,
        noise=sampling.noise.probability,
        replacement=sampling.replacement,
        hiding=hiding,
        seed=config.training.seed,
    )


def _hiding(config: RunConfig) -> Hiding | None:
    """How histories are divided; `None` where users have rows of their own."""
    kind = BACKBONES[config.backbone.name]
    if not kind.sums_histories:
        return None
    options = config.resolved().backbone.options()
    # A backbone from outside may have neither setting.
    defaults = Hiding()
    return Hiding(
        float(options.get("visible", defaults.visible)),
        str(options.get("predicts", defaults.predicts)),
    )
