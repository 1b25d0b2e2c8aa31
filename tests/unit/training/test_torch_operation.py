"""Exact training in torch: where it takes over, what it gives, and that it stays on its device."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pslrec.backbones import Backbone
from pslrec.data import Interactions
from pslrec.distributed import Group, Pending
from pslrec.errors import ConfigError
from pslrec.kernels import TorchPass, _torch_nodes, _torch_operations
from pslrec.losses import Loss
from pslrec.sampling import PairBatches, UserBlocks
from pslrec.training import Trainer, TrainingOptions, build_step, memory_estimate, operation_for
from pslrec.training._layout import Layout

BuildParts = Callable[..., tuple[Backbone, Loss]]
SINGLE = torch.zeros(1, 1)
META = torch.device("meta")


def name_of(*arguments: Any) -> str:
    return type(operation_for(*arguments)).__name__


def trained(parts: tuple[Backbone, Loss], batches: Any, store: Any, kernels: Any) -> Any:
    backbone, loss = parts
    options = TrainingOptions(epochs=2, learning_rate=0.02, kernels=kernels)
    Trainer(backbone, loss, batches, options=options, store=store).fit()
    return backbone.user_table.detach(), backbone.item_table.detach()


@pytest.mark.parametrize("name", ["psl-relu", "psl-tanh", "sl", "bsl", "bpr", "psl-relu@3", "sl@k"])
def test_torch_takes_over_where_it_is_asked_for(name: str, build_parts: BuildParts) -> None:
    _, loss = build_parts(name)
    assert name_of(loss, "catalog", SINGLE, "torch") == "CatalogTorch"
    assert name_of(loss, "catalog", SINGLE, "auto", TorchPass("bfloat16")) == "CatalogTorch"
    assert name_of(loss, "catalog", SINGLE, "plain") == "CatalogFormula"
    # Double precision is for comparison with the formula.
    assert name_of(loss, "catalog", SINGLE.double(), "torch") == "CatalogFormula"
    assert name_of(loss, "sampled", SINGLE, "torch") == "SampledFormula"


@pytest.mark.parametrize(("name", "options"), [("llpauc", {}), ("psl", {"surrogate": "exp-exp"})])
def test_a_loss_without_an_operation_in_torch_is_its_formula(
    name: str,
    options: dict[str, Any],
    build_parts: BuildParts,
    tiny_log: Interactions,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    backbone, loss = build_parts(name, **options)
    assert name_of(loss, "catalog", SINGLE, "torch") == "CatalogFormula"
    monkeypatch.setattr("pslrec.training._steps.runs_compiled", lambda _: False)
    build_step(backbone, loss, UserBlocks(tiny_log), TrainingOptions(kernels="torch"))
    assert f"loss `{loss.name}` has no fused operation on the device cpu" in caplog.text


@pytest.mark.parametrize("backbone_name", ["mf", "history", "lightgcn"])
@pytest.mark.parametrize("n_shared", [None, 10])
@pytest.mark.parametrize("name", ["psl-relu", "psl-tanh", "bsl", "bpr", "psl-relu@3"])
def test_training_gives_what_the_formula_gives(
    name: str,
    n_shared: int | None,
    backbone_name: str,
    build_parts: BuildParts,
    tiny_log: Interactions,
    keeping_store: Any,
) -> None:
    found = []
    for kernels in ("torch", "plain"):
        batches = UserBlocks(tiny_log, batch_pairs=40, n_shared=n_shared, seed=1)
        parts = build_parts(name, backbone_name)
        found.append(trained(parts, batches, keeping_store(), kernels))
    for ours, formula in zip(*found, strict=True):
        torch.testing.assert_close(ours, formula, rtol=2e-3, atol=2e-4)


def test_memory_does_not_grow_with_the_batch(
    build_parts: BuildParts, tiny_log: Interactions
) -> None:
    backbone, loss = build_parts("psl-tanh")
    sizes = set()
    for batch_pairs in (10, 1000):
        batches = UserBlocks(tiny_log, batch_pairs=batch_pairs)
        sizes.add(memory_estimate(backbone, loss, batches, "torch")["batch"])
    assert len(sizes) == 1


@pytest.fixture
def all_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors without numbers cannot say whether a row needs more nodes."""
    for module in (_torch_nodes, _torch_operations):
        monkeypatch.setattr(module, "has_any", lambda _: False)


@pytest.mark.usefixtures("all_resolved")
@pytest.mark.parametrize("name", ["sl", "psl-relu", "psl-tanh", "psl-atan", "bpr", "psl-relu@3"])
def test_a_step_of_exact_training_stays_on_its_device(
    name: str, build_parts: BuildParts, tiny_log: Interactions
) -> None:
    # Torch refuses operations between the meta device and another one, as it does for every
    # other pair of devices, so a tensor that was made on the processor by mistake raises here.
    # Backbones with sparse products are left out, which torch does not have for meta.
    backbone, loss = build_parts(name)
    backbone.to(META)
    loss.to(META)
    # The last of five epochs, in which thresholds of top-K weighting are updated.
    loss.start_epoch(4, "model")
    batches = UserBlocks(tiny_log, batch_pairs=40, seed=1)
    step = build_step(backbone, loss, batches, TrainingOptions())
    assert type(step).__name__ == "DenseStep"
    for block in batches.epoch(0):
        value = step.loss_of(block, "model", torch.Generator)
        assert value.device == META
        step.move(value, "model")
        loss.after_step(step.objective.step_of(block))
    for parameter in backbone.parameters():
        assert parameter.device == META
        assert parameter.grad is not None
        assert parameter.grad.device == META


class SilentGroup(Group):
    """One of two processes, whose numbers stay its own."""

    def start_sum(self, tensor: torch.Tensor) -> Pending:
        return Pending()

    def maximum(self, tensor: torch.Tensor) -> None: ...


@pytest.mark.usefixtures("all_resolved")
@pytest.mark.parametrize("n_shared", [None, 10])
@pytest.mark.parametrize("name", ["sl", "psl-relu", "psl-tanh", "bpr"])
def test_a_step_with_divided_items_stays_on_its_device(
    name: str, n_shared: int | None, build_parts: BuildParts, tiny_log: Interactions
) -> None:
    backbone, loss = build_parts(name)
    batches = UserBlocks(tiny_log, batch_pairs=40, n_shared=n_shared, seed=1)
    layout = Layout(backbone, loss, batches, SilentGroup(1, 2), shard_items=True)
    backbone.to(META)
    loss.to(META)
    step = build_step(backbone, loss, batches, TrainingOptions(), layout)
    assert type(step).__name__ == "ShardedStep"
    for block in batches.epoch(0):
        value = step.loss_of(block, "model", torch.Generator)
        assert value.device == META
        step.move(value, "model")
    assert backbone.item_table.grad is not None
    assert backbone.item_table.grad.device == META


def test_a_share_of_a_step_is_one_on_every_device(tiny_log: Interactions) -> None:
    batches = PairBatches(tiny_log, n_negatives=2, batch_pairs=40)
    (batch, *_) = batches.epoch(0, owned=range(12))
    assert 0 < batch.share < 1
    moved = batch.to(META)
    assert moved.share == batch.share
    for tensor in (*moved.step_pairs(), moved.users, moved.candidates):
        assert tensor.device == META


@pytest.mark.parametrize("name", ["sl", "psl-tanh", "bpr", "llpauc"])
def test_a_step_with_sampled_negatives_stays_on_its_device(
    name: str, build_parts: BuildParts, tiny_log: Interactions
) -> None:
    backbone, loss = build_parts(name)
    backbone.to(META)
    loss.to(META)
    batches = PairBatches(tiny_log, n_negatives=6, batch_pairs=40)
    step = build_step(backbone, loss, batches, TrainingOptions())
    batch = next(iter(batches.epoch(0)))
    value = step.loss_of(batch, "model", torch.Generator)
    assert value.device == META
    step.move(value, "model")
    loss.after_step(step.objective.step_of(batch))


def test_bfloat16_is_refused_where_nothing_would_be_computed_in_it(
    build_parts: BuildParts, tiny_log: Interactions
) -> None:
    with pytest.raises(ConfigError, match="`products` must be float32 with `kernels` plain"):
        TrainingOptions(products="bfloat16", kernels="plain")
    batches = PairBatches(tiny_log, n_negatives=2)
    options = TrainingOptions(products="bfloat16")
    with pytest.raises(ConfigError, match="`products` must be float32 with sampled negatives"):
        build_step(*build_parts("sl"), batches, options)


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "meta", ""])
def test_a_name_that_is_no_device_is_refused(device: str) -> None:
    with pytest.raises(ConfigError, match="`device` must be auto, cpu, cuda, cuda:N or mps, got"):
        TrainingOptions(device=device)


def test_a_device_that_is_not_there_is_named(
    build_parts: BuildParts, tiny_log: Interactions, keeping_store: Any
) -> None:
    options = TrainingOptions(device="cuda:99")
    with pytest.raises(ConfigError, match=r"`device` is cuda:99, which torch .* does not find"):
        Trainer(*build_parts("sl"), UserBlocks(tiny_log), options=options, store=keeping_store())


def test_auto_is_the_first_device_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from pslrec.kernels import _devices

    assert _devices.device_named("auto").type == _devices.devices_here()[0].partition(":")[0]
    monkeypatch.setattr(_devices, "devices_here", lambda: ["cuda:0", "cuda:1", "cpu"])
    assert _devices.device_named("auto") == torch.device("cuda:0")
    assert _devices.device_named("cuda") == torch.device("cuda:0")
    assert _devices.device_named("cuda:1") == torch.device("cuda:1")


@pytest.mark.parametrize(
    ("name", "here", "expected"),
    [
        ("cuda", ["cuda:0", "cuda:1", "cpu"], ["cuda:0", "cuda:1"]),
        ("auto", ["cuda:0", "cuda:1", "cuda:2", "cpu"], ["cuda:0", "cuda:1"]),
        ("auto", ["mps", "cpu"], ["cpu", "cpu"]),
        ("cpu", ["cuda:0", "cuda:1", "cpu"], ["cpu", "cpu"]),
    ],
)
def test_each_process_of_a_machine_has_a_card_of_its_own(
    name: str, here: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pslrec.kernels import _devices

    monkeypatch.setattr(_devices, "devices_here", lambda: here)
    found = [_devices.device_named(name, worker=worker, n_workers=2) for worker in range(2)]
    assert found == [torch.device(each) for each in expected]


@pytest.mark.parametrize(
    ("name", "here", "message"),
    [
        (
            "cuda",
            ["cuda:0", "cpu"],
            "2 processes of this machine need a card each, but torch finds 1",
        ),
        ("auto", ["cuda:0", "cpu"], "start 1 at most, or give the device cpu"),
        ("cuda", ["cpu"], "does not find here"),
        ("cuda:1", ["cuda:0", "cuda:1", "cpu"], "one device for the 2 processes"),
        ("mps", ["mps", "cpu"], "one device for the 2 processes"),
    ],
)
def test_processes_without_a_card_each_are_told(
    name: str, here: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pslrec.kernels import _devices

    monkeypatch.setattr(_devices, "devices_here", lambda: here)
    with pytest.raises(ConfigError, match=message):
        _devices.device_named(name, worker=0, n_workers=2)


def test_the_trainer_takes_the_card_of_its_process(
    build_parts: BuildParts,
    tiny_log: Interactions,
    keeping_store: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pslrec.kernels import _devices

    monkeypatch.setattr(_devices, "devices_here", lambda: ["cuda:0", "cpu"])
    group = Group(3, 4, local_rank=1, local_size=2)
    options = TrainingOptions(device="cuda")
    with pytest.raises(ConfigError, match="2 processes of this machine need a card each"):
        Trainer(
            *build_parts("sl"),
            UserBlocks(tiny_log),
            options=options,
            store=keeping_store(),
            group=group,
        )
