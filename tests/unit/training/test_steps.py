from collections.abc import Callable
from typing import Any

import pytest
import torch

from pslrec.backbones import Backbone
from pslrec.data import Interactions
from pslrec.distributed import Group
from pslrec.kernels._native import IS_COMPILED
from pslrec.losses import Loss
from pslrec.sampling import PairBatches, UserBlocks
from pslrec.training import Layout, Trainer, TrainingOptions
from pslrec.training._catalog_objective import CatalogObjective
from pslrec.training._steps import DenseStep, LookupStep, ModelStep, build_step

BuildParts = Callable[..., tuple[Backbone, Loss]]

needs_kernels = pytest.mark.skipif(not IS_COMPILED, reason="built without a compiler")
SETTINGS = [
    ("psl-relu", {"temperature": 0.1}, 0.0),
    ("sl", {"temperature": 0.2}, 1e-3),
    ("bpr", {}, 1e-4),
    ("llpauc", {}, 0.0),
]


def train(step: ModelStep, blocks: UserBlocks, epochs: int) -> None:
    for epoch in range(epochs):
        for block in blocks.epoch(epoch):
            step.move(step.loss_of(block, "model", torch.Generator), "model")
    step.settle()


@needs_kernels
@pytest.mark.parametrize(
    ("name", "options", "weight_decay"), SETTINGS, ids=[name for name, _, _ in SETTINGS]
)
def test_lookup_step_moves_tables_as_dense_step_does(
    name: str,
    options: dict[str, Any],
    weight_decay: float,
    build_parts: BuildParts,
    tiny_log: Interactions,
) -> None:
    training = TrainingOptions(learning_rate=0.05, weight_decay=weight_decay)
    blocks, tables = UserBlocks(tiny_log, batch_pairs=20, seed=3), []
    for kind in (DenseStep, LookupStep):
        backbone, loss = build_parts(name, **options)
        before = backbone.user_table.detach().clone()
        layout = Layout(backbone, loss, blocks, Group())
        step = kind(backbone, loss, CatalogObjective(backbone, loss), training, layout)
        train(step, blocks, epochs=5)
        assert not torch.allclose(backbone.user_table, before, atol=0.05)
        tables.append(torch.cat([backbone.user_table, backbone.item_table]).detach())
    torch.testing.assert_close(tables[1], tables[0], atol=2e-4, rtol=2e-4)


@needs_kernels
def test_lookup_step_is_chosen_for_tables_and_blocks_only(
    build_parts: BuildParts, tiny_log: Interactions
) -> None:
    options, blocks, pairs = (
        TrainingOptions(),
        UserBlocks(tiny_log),
        PairBatches(tiny_log, n_negatives=3),
    )
    assert isinstance(build_step(*build_parts("sl"), blocks, options), LookupStep)
    assert isinstance(build_step(*build_parts("sl"), pairs, options), DenseStep)
    assert isinstance(build_step(*build_parts("sl", "lightgcn"), blocks, options), DenseStep)


@pytest.mark.parametrize("name", ["psl-relu", "adv-infonce", "llpauc"])
@pytest.mark.parametrize("at", [0, 3, 7])
def test_exact_training_resumes_bit_for_bit(
    name: str,
    at: int,
    build_parts: BuildParts,
    tiny_log: Interactions,
    keeping_store: Callable[..., Any],
) -> None:
    def fit(store: Any) -> Backbone:
        backbone, loss = build_parts(name)
        options = TrainingOptions(
            epochs=6, schedule="cosine", checkpoint_seconds=0.0, learning_rate=0.05
        )
        Trainer(
            backbone,
            loss,
            UserBlocks(tiny_log, batch_pairs=30, seed=1),
            options=options,
            store=store,
        ).fit()
        return backbone

    whole = keeping_store()
    expected = fit(whole)
    resumed = fit(keeping_store(start=whole.checkpoints[at]))
    assert torch.equal(resumed.user_table, expected.user_table)
    assert torch.equal(resumed.item_table, expected.item_table)


@pytest.mark.parametrize("mode", ["catalog", "sampled"])
def test_schedule_scales_the_learning_rate(
    mode: str, build_parts: BuildParts, tiny_log: Interactions
) -> None:
    moved = []
    for factor in (1.0, 0.1):
        backbone, loss = build_parts("sl")
        before = backbone.item_table.detach().clone()
        batches = (
            UserBlocks(tiny_log) if mode == "catalog" else PairBatches(tiny_log, n_negatives=4)
        )
        step = build_step(backbone, loss, batches, TrainingOptions(learning_rate=0.01))
        step.scale_rate(factor)
        step.move(step.loss_of(next(batches.epoch(0)), "model", torch.Generator), "model")
        step.settle()
        moved.append(float((backbone.item_table.detach() - before).abs().max()))
    # The first step of Adam moves by the learning rate, whatever the gradient is.
    assert moved == pytest.approx([0.01, 0.001], rel=1e-3)
