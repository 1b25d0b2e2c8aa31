"""Training on histories: every loss, every kind of negatives, and gradients against a loop."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from pslrec.artifacts import read_tensors
from pslrec.backbones import Backbone, History
from pslrec.data import Interactions
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.distributed import Group
from pslrec.errors import ConfigError
from pslrec.kernels import IS_COMPILED
from pslrec.losses import LOSSES, Loss
from pslrec.sampling import CatalogBlock, Hiding, PairBatches, UserBlocks
from pslrec.training import Layout, Trainer, TrainingOptions
from pslrec.training._catalog_objective import CatalogObjective
from pslrec.training._objective import SampledObjective
from pslrec.training._steps import DenseStep, LookupStep, build_step

BuildParts = Callable[..., tuple[Backbone, Loss]]

HIDINGS = {
    "hidden": Hiding(0.5, predicts="hidden"),
    "all": Hiding(0.5, predicts="all"),
    "all from all": Hiding(1.0, predicts="all"),
}
MODES = ("sampled", "catalog", "shared")
each_mode = pytest.mark.parametrize("mode", MODES)
each_hiding = pytest.mark.parametrize("hiding", HIDINGS)
needs_kernels = pytest.mark.skipif(not IS_COMPILED, reason="built without a compiler")


def batches_of(mode: str, log: Interactions, hiding: str) -> Any:
    options: dict[str, Any] = {"batch_pairs": 40, "hiding": HIDINGS[hiding], "seed": 1}
    if mode == "sampled":
        return PairBatches(log, n_negatives=8, **options)
    if mode == "shared":
        options["n_shared"] = 10
    return UserBlocks(log, **options)


def trained(
    parts: tuple[Backbone, Loss], batches: Any, store: Any, **options: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    backbone, loss = parts
    settings = TrainingOptions(**{"epochs": 2, "learning_rate": 0.02, **options})
    Trainer(backbone, loss, batches, options=settings, store=store).fit()
    return backbone.user_table.detach().clone(), backbone.item_table.detach().clone()


@each_hiding
@each_mode
@pytest.mark.parametrize("name", LOSSES.names())
def test_every_loss_trains_and_fused_operations_equal_the_formula(
    name: str,
    mode: str,
    hiding: str,
    build_parts: BuildParts,
    tiny_log: Interactions,
    keeping_store: Any,
) -> None:
    before = build_parts(name, "history")[0]
    found = {}
    for kernels in ("auto", "plain"):
        batches = batches_of(mode, tiny_log, hiding)
        parts = build_parts(name, "history")
        if mode != "sampled" and parts[1].why_not_on_catalog() is not None:
            with pytest.raises(ConfigError, match=r"set `sampling.negatives` to a number"):
                trained(parts, batches, keeping_store(), kernels=kernels)
            return
        found[kernels] = trained(parts, batches, keeping_store(), kernels=kernels)
    for first, fused, formula in zip(
        (before.user_table, before.item_table), found["auto"], found["plain"], strict=True
    ):
        assert fused.isfinite().all()
        assert not torch.equal(fused, first.detach())
        torch.testing.assert_close(fused, formula, rtol=2e-3, atol=2e-4)


def naive_loss(
    summed: torch.Tensor,
    ranked: torch.Tensor,
    block: CatalogBlock,
    log: Interactions,
    *,
    predicts_all: bool,
) -> torch.Tensor:
    """SL over the catalogue, temperature 1/4: user by user, positive by positive."""
    values = []
    items = functional.normalize(ranked, dim=1)
    assert block.visible is not None
    for user in block.users.tolist():
        history = log.rows.list_of(user).tolist()
        visible = block.visible.list_of(user).tolist()
        vector = sum(summed[item] for item in visible)
        scores = 0.5 * (items @ vector) / vector.norm()
        negatives = [item for item in range(log.n_items) if item not in history]
        for item in history:
            if predicts_all or item not in visible:
                differences = scores[negatives] - scores[item]
                values.append(torch.logsumexp(differences / 0.25, dim=0))
    return torch.stack(values).mean()


@each_hiding
@pytest.mark.parametrize("kernels", ["auto", "plain"])
@pytest.mark.parametrize("own_step", [True, False])
def test_gradients_of_a_step_are_those_of_a_loop(
    kernels: str, own_step: bool, hiding: str, build_parts: BuildParts, tiny_log: Interactions
) -> None:
    if own_step and not IS_COMPILED:
        pytest.skip("built without a compiler")
    backbone, loss = build_parts("sl", "history", temperature=0.25)
    block = next(batches_of("catalog", tiny_log, hiding).epoch(0))
    summed, ranked = (table.detach().clone().requires_grad_() for table in backbone.parameters())
    predicts_all = hiding != "hidden"
    expected = naive_loss(summed, ranked, block, tiny_log, predicts_all=predicts_all)
    expected.backward()
    options = TrainingOptions(kernels=kernels)  # type: ignore[arg-type]
    kind = LookupStep if own_step else DenseStep
    layout = Layout(backbone, loss, batches_of("catalog", tiny_log, hiding), Group())
    objective = CatalogObjective(backbone, loss, options.kernels)
    step = kind(backbone, loss, objective, options, layout)
    value = step.loss_of(block, "model", torch.Generator)
    step.move(value, "model")
    # In this project a catalogue's sum may be a mean: that is a constant, without a gradient.
    gradients = [backbone.user_table.grad, backbone.item_table.grad]
    if own_step:
        # The first moments of Adam are a tenth of the first gradient.
        state = step.optimizers["model"].named_state()
        gradients = [10 * state[f"{side}/first_moments"] for side in ("users", "items")]
    for found, reference in zip(gradients, (summed.grad, ranked.grad), strict=True):
        torch.testing.assert_close(found, reference, rtol=1e-3, atol=1e-6)


@needs_kernels
@each_hiding
@pytest.mark.parametrize("weight_decay", [0.0, 1e-3])
@pytest.mark.parametrize("name", ["psl-relu", "bpr", "llpauc"])
def test_its_own_step_moves_tables_as_the_dense_step_does(
    name: str, weight_decay: float, hiding: str, build_parts: BuildParts, tiny_log: Interactions
) -> None:
    options = TrainingOptions(learning_rate=0.05, weight_decay=weight_decay)
    found = []
    for kind in (DenseStep, LookupStep):
        backbone, loss = build_parts(name, "history")
        layout = Layout(backbone, loss, batches_of("catalog", tiny_log, hiding), Group())
        step = kind(backbone, loss, CatalogObjective(backbone, loss), options, layout)
        for epoch in range(5):
            for block in batches_of("catalog", tiny_log, hiding).epoch(epoch):
                step.move(step.loss_of(block, "model", torch.Generator), "model")
        found.append(torch.cat([backbone.user_table, backbone.item_table]).detach())
    torch.testing.assert_close(found[1], found[0], atol=5e-4, rtol=5e-4)


@needs_kernels
@each_hiding
def test_blocks_have_a_step_of_their_own_and_pairs_have_not(
    hiding: str, build_parts: BuildParts, tiny_log: Interactions
) -> None:
    options = TrainingOptions()
    for mode, kind in (("catalog", LookupStep), ("shared", LookupStep), ("sampled", DenseStep)):
        parts = build_parts("sl", "history")
        batches = batches_of(mode, tiny_log, hiding)
        assert isinstance(build_step(*parts, batches, options), kind)


@each_hiding
@each_mode
@pytest.mark.parametrize("name", ["psl-relu", "sl@k", "adv-infonce"])
@pytest.mark.parametrize("at", [0, 3, 5])
def test_training_resumes_bit_for_bit(
    name: str,
    mode: str,
    hiding: str,
    at: int,
    build_parts: BuildParts,
    tiny_log: Interactions,
    keeping_store: Callable[..., Any],
) -> None:
    options = {"epochs": 4, "schedule": "cosine", "checkpoint_seconds": 0.0, "learning_rate": 0.05}

    def fit(store: Any) -> tuple[torch.Tensor, torch.Tensor]:
        batches = batches_of(mode, tiny_log, hiding)
        return trained(build_parts(name, "history"), batches, store, **options)

    whole = keeping_store()
    expected = fit(whole)
    resumed = fit(keeping_store(start=whole.checkpoints[at]))
    for ours, theirs in zip(resumed, expected, strict=True):
        assert torch.equal(ours, theirs)


@each_hiding
@each_mode
def test_the_number_of_threads_changes_nothing(
    mode: str, hiding: str, build_parts: BuildParts, tiny_log: Interactions, keeping_store: Any
) -> None:
    found = []
    n_threads = torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            parts = build_parts("psl-relu", "history")
            batches = batches_of(mode, tiny_log, hiding)
            found.append(trained(parts, batches, keeping_store()))
    finally:
        torch.set_num_threads(n_threads)
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(two, one, rtol=1e-5, atol=1e-6)


@each_hiding
def test_thresholds_are_taken_from_the_part_that_the_step_saw(
    hiding: str, build_parts: BuildParts, tiny_log: Interactions
) -> None:
    """They were taken from the whole history, which the scores of a step are not made of."""
    backbone, loss = build_parts("sl@k", "history")
    assert isinstance(backbone, History)
    block = next(batches_of("catalog", tiny_log, hiding).epoch(0))
    scores = CatalogObjective(backbone, loss).step_of(block).scores()
    owners, items = block.pairs()
    users = backbone.users_of(backbone.step_tables(), block.users, block.visible).detach()
    ranked = functional.normalize(backbone.item_table.detach(), dim=1)
    expected = 0.5 * users @ ranked.T
    torch.testing.assert_close(scores[owners, items], expected[owners, items])
    places, visible = block.visible.positions(block.users.numpy())
    if hiding == "hidden":
        # What is visible is no candidate: it cannot be recommended either.
        assert bool((scores[places, visible] == -float("inf")).all())
    else:
        # What is visible is a positive as well, and no negative of itself.
        torch.testing.assert_close(scores[places, visible], expected[places, visible])

    batch = next(batches_of("sampled", tiny_log, hiding).epoch(0))
    step = SampledObjective(backbone, loss).step_of(batch)
    users = backbone.users_of(backbone.step_tables(), batch.users, batch.visible).detach()
    products = 0.5 * users @ ranked.T
    expected = products.gather(1, batch.negatives.long())
    torch.testing.assert_close(step.score(batch.users, batch.negatives), expected)


PROGRAM = """
import sys
from pathlib import Path
from pslrec.config import RunConfig
from pslrec.experiment import run

for negatives in ("catalog", "shared:8", 5):
    settings = {
        "backbone.name": "history",
        "backbone.predicts": sys.argv[2],
        "backbone.initialization": sys.argv[3],
        "backbone.dimension": 8,
        "data.source": "log.csv",
        "data.validation": "none",
        "sampling.negatives": negatives,
        "sampling.batch_pairs": 40,
        "training.epochs": 2,
        "training.learning_rate": 0.02,
    }
    run(RunConfig.from_settings(settings), out=Path(f"{sys.argv[1]}-{negatives}"))
"""


# Rounding decides the signs of a spectral start's columns, so one log alone is started by it.
@pytest.mark.parametrize(
    ("predicts", "start", "seed"),
    [("hidden", "spectral:2", 1), ("hidden", "normal", 2), ("all", "normal", 3)],
)
def test_without_compiled_kernels_training_is_the_same(
    tmp_path: Path, predicts: str, start: str, seed: int
) -> None:
    """The other process has no compiled module at all, and so another Adam and another product."""
    model = TasteModel(n_topics=3, median_history=6, minimum_history=4)
    log = planted_tastes(24, 20, model=model, seed=seed).interactions
    log.to_frame().write_csv(tmp_path / "log.csv")
    for kernels in ("auto", "plain"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, kernels, predicts, start],
            env={**os.environ, "PSLREC_KERNELS": kernels, "OMP_NUM_THREADS": "1"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    for negatives in ("catalog", "shared:8", "5"):
        ours, theirs = (
            read_tensors(tmp_path / f"{kernels}-{negatives}" / "model.safetensors")[0]
            for kernels in ("auto", "plain")
        )
        assert ours.keys() == theirs.keys() == {"users", "items", "user_table"}
        for name, table in ours.items():
            torch.testing.assert_close(table, theirs[name], rtol=2e-3, atol=2e-4)
