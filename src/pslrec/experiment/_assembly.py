"""The parts of a run, made from its configuration: backbone, loss, batches, and the vectors that score."""

from pathlib import Path

import torch

from pslrec.backbones import BACKBONES, Backbone, Representations
from pslrec.config import RunConfig, component_options
from pslrec.data import Interactions
from pslrec.errors import ConfigError
from pslrec.experiment._inputs import TrainingData
from pslrec.experiment._warm_start import start_warm
from pslrec.kernels import sampled_scores
from pslrec.losses import LOSSES, Loss, Setup
from pslrec.sampling import PairBatches, UserBlocks
from pslrec.seeding import derive_seed
from pslrec.training import scored_tables


def build_model(config: RunConfig, train: Interactions) -> tuple[Backbone, Loss]:
    """Backbone and loss of a run, as they are before the first step."""
    config = config.resolved()
    seed = config.training.seed
    loss = LOSSES[config.loss.name](**component_options(LOSSES, config.loss, "loss"))
    options = component_options(
        BACKBONES, config.backbone, "backbone", given_elsewhere=("train", "seed")
    )
    backbone = BACKBONES[config.backbone.name](train, seed=seed, **options)
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
    return sampled_scores(users, items, candidates.int().contiguous())


def build_batches(config: RunConfig, data: TrainingData) -> PairBatches | UserBlocks:
    """The batches of a run: pairs with sampled negatives, or blocks of users with the catalogue or a part of it."""
    sampling = config.sampling
    if isinstance(sampling.negatives, str):
        return UserBlocks(
            data.train,
            batch_pairs=sampling.batch_pairs,
            n_shared=sampling.n_shared(data.train.n_items),
            include_positives=sampling.include_positives,
            false_negatives=data.false_negatives,
            noise=sampling.noise.probability,
            seed=config.training.seed,
        )
    if sampling.include_positives:
        raise ConfigError(
            '`sampling.include_positives` needs `sampling.negatives` = "catalog" or "shared:N"'
        )
    return PairBatches(
        data.train,
        n_negatives=sampling.negatives or LOSSES[config.loss.name].default_negatives,
        batch_pairs=sampling.batch_pairs,
        false_negatives=data.false_negatives,
        noise=sampling.noise.probability,
        replacement=sampling.replacement,
        seed=config.training.seed,
    )


def scored_vectors(
    tensors: dict[str, torch.Tensor], similarity: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """User and item vectors of a model whose inner products are its scores."""
    users, items, scale = scored_tables(
        Representations(tensors["users"], tensors["items"]), similarity
    )
    return users * scale, items
