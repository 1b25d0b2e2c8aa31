"""Plain kernels: the formula in a loss runs in every mode, and the results are those of the fused ones."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from pslrec.backbones import Backbone
from pslrec.data import Interactions
from pslrec.errors import ConfigError
from pslrec.kernels import IS_COMPILED
from pslrec.losses import LOSSES, Loss
from pslrec.losses.psl import PairwiseSoftmaxLoss
from pslrec.sampling import PairBatches, UserBlocks
from pslrec.training import Trainer, TrainingOptions, memory_estimate, operation_for

BuildParts = Callable[..., tuple[Backbone, Loss]]

BATCHES: dict[str, Callable[[Interactions], Any]] = {
    "sampled": lambda log: PairBatches(log, n_negatives=8, batch_pairs=40, seed=1),
    "catalog": lambda log: UserBlocks(log, batch_pairs=40, seed=1),
    "shared": lambda log: UserBlocks(log, batch_pairs=40, n_shared=10, seed=1),
}
each_mode = pytest.mark.parametrize("mode", BATCHES)
each_backbone = pytest.mark.parametrize("backbone_name", ["mf", "lightgcn"])
needs_kernels = pytest.mark.skipif(not IS_COMPILED, reason="built without a compiler")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often the formulas of PSL are run; a breakpoint in them would be hit as often."""
    counted: Counter[str] = Counter()
    for name in ("_pairwise_values", "catalog_values"):
        original = getattr(PairwiseSoftmaxLoss, name)

        def counting(*arguments: Any, name: str = name, original: Any = original) -> Any:
            counted[name] += 1
            return original(*arguments)

        monkeypatch.setattr(PairwiseSoftmaxLoss, name, counting)
    return counted


def trained(
    parts: tuple[Backbone, Loss], batches: Any, store: Any, **options: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    backbone, loss = parts
    settings = TrainingOptions(epochs=2, learning_rate=0.02, **options)
    Trainer(backbone, loss, batches, options=settings, store=store).fit()
    return backbone.user_table.detach(), backbone.item_table.detach()


@each_mode
@each_backbone
def test_every_formula_is_hit_with_plain_kernels(
    mode: str,
    backbone_name: str,
    calls: Counter[str],
    build_parts: BuildParts,
    tiny_log: Interactions,
    keeping_store: Any,
) -> None:
    batches = BATCHES[mode](tiny_log)
    parts = build_parts("psl-relu", backbone_name)
    trained(parts, batches, keeping_store(), kernels="plain")
    n_steps = sum(1 for epoch in range(2) for _ in batches.epoch(epoch))
    hit = "_pairwise_values" if mode == "sampled" else "catalog_values"
    assert calls == {hit: n_steps}


@needs_kernels
@each_mode
@each_backbone
@pytest.mark.parametrize("name", ["psl-relu", "psl-relu@3"])
def test_no_formula_is_hit_where_a_fused_operation_takes_over(
    name: str,
    mode: str,
    backbone_name: str,
    calls: Counter[str],
    build_parts: BuildParts,
    tiny_log: Interactions,
    keeping_store: Any,
) -> None:
    trained(build_parts(name, backbone_name), BATCHES[mode](tiny_log), keeping_store())
    assert not calls


@each_mode
@pytest.mark.parametrize(
    "name", ["psl-relu", "psl-tanh", "bpr", "bsl", "adv-infonce", "sl@k", "psl-relu@3", "bsl@3"]
)
def test_results_are_those_of_the_fused_operations(
    name: str, mode: str, build_parts: BuildParts, tiny_log: Interactions, keeping_store: Any
) -> None:
    fused, plain = (
        trained(build_parts(name), BATCHES[mode](tiny_log), keeping_store(), kernels=kernels)
        for kernels in ("auto", "plain")
    )
    for ours, formula in zip(fused, plain, strict=True):
        torch.testing.assert_close(ours, formula, rtol=2e-3, atol=2e-4)


@needs_kernels
@pytest.mark.parametrize("name", [*LOSSES.names(), "psl-relu@3"])
@pytest.mark.parametrize("negatives", ["sampled", "catalog"])
def test_plain_is_never_fused(name: str, negatives: Any, build_parts: BuildParts) -> None:
    _, loss = build_parts(name)
    operation = operation_for(loss, negatives, torch.zeros(1, 1), "plain")
    assert type(operation).__name__ in ("SampledFormula", "CatalogFormula")
    assert type(operation_for(loss, negatives, torch.zeros(1, 1, dtype=torch.float64))) is type(
        operation
    )


@needs_kernels
def test_memory_is_estimated_for_what_is_run(
    build_parts: BuildParts, tiny_log: Interactions
) -> None:
    backbone, loss = build_parts("psl-relu")
    for batches in (BATCHES["sampled"](tiny_log), BATCHES["catalog"](tiny_log)):
        fused = memory_estimate(backbone, loss, batches)
        plain = memory_estimate(backbone, loss, batches, "plain")
        assert plain["batch"] > fused["batch"]


def test_another_kind_of_kernels_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="`kernels` must be one of auto, torch, plain, got 'fast'"
    ):
        TrainingOptions(kernels="fast")  # type: ignore[arg-type]


def python(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_environment_turns_the_compiled_module_off() -> None:
    program = "from pslrec import kernels; print(kernels.IS_COMPILED, kernels.WHY_NOT_COMPILED)"
    done = python(program, PSLREC_KERNELS="plain")
    assert done.stdout == "False the environment variable PSLREC_KERNELS is plain\n", done.stderr
    wrong = python(program, PSLREC_KERNELS="plian")
    assert "`PSLREC_KERNELS` must be auto or plain, got 'plian'" in wrong.stderr
