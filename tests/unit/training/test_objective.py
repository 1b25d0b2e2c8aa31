"""What a step minimises: the fused way equals the way the losses are written."""

import pytest
import torch
from torch.nn import functional

from pslrec.backbones import BACKBONES, Representations
from pslrec.data import Interactions
from pslrec.kernels import _log_sum as log_sum
from pslrec.losses import LOSSES
from pslrec.sampling import PairBatch, PairBatches
from pslrec.training import SampledObjective, scored_tables

CASES = [(name, {}) for name in [*LOSSES.names(), "psl-relu@3", "bsl@3"]] + [
    ("psl", {"surrogate": "exp", "temperature": 0.025}),
    ("psl", {"surrogate": "exp-exp", "temperature": 0.25}),
    ("psl", {"surrogate": "tanh", "temperature": 0.005}),
    ("psl", {"surrogate": "relu", "form": "inside", "temperature": 0.25}),
    ("bsl", {"positive_temperature": 0.05, "negative_temperature": 0.25}),
    ("bsl", {"variant": "original"}),
    ("bsl", {"variant": "original-grouped"}),
    ("adv-infonce", {"variant": "original"}),
]
IDS = ["-".join([name, *map(str, options.values())]) for name, options in CASES]


@pytest.fixture(scope="module")
def batch(tiny_log: Interactions) -> PairBatch:
    return next(PairBatches(tiny_log, n_negatives=30, batch_pairs=50, seed=2).epoch(0))


def leaves(representations: Representations, dtype: torch.dtype) -> Representations:
    return Representations(
        *(
            None if table is None else table.detach().to(dtype).requires_grad_()
            for table in representations
        )
    )


def value_and_gradients(
    objective: SampledObjective, tables: Representations, batch: PairBatch
) -> list[torch.Tensor]:
    value = objective(tables, batch)
    wanted = [table for table in tables if table is not None]
    gradients = torch.autograd.grad(value, wanted, allow_unused=True)
    return [value.detach(), *(gradient for gradient in gradients if gradient is not None)]


@pytest.mark.parametrize("backbone_name", BACKBONES.names())
@pytest.mark.parametrize(("loss_name", "options"), CASES, ids=IDS)
def test_single_precision_equals_the_plain_path_in_double(
    build_parts, batch, backbone_name, loss_name, options
) -> None:
    backbone, loss = build_parts(loss_name, backbone_name, **options)
    objective = SampledObjective(backbone, loss)
    representations = backbone()
    ours = value_and_gradients(objective, leaves(representations, torch.float32), batch)
    truth = value_and_gradients(objective, leaves(representations, torch.float64), batch)
    assert len(ours) == len(truth)
    for one, other in zip(ours, truth, strict=True):
        scale = float(other.abs().max())
        torch.testing.assert_close(one.double(), other, rtol=2e-4, atol=2e-4 * scale)


@pytest.mark.parametrize("name", [*LOSSES.names(), "psl-relu@3", "bsl@3"])
def test_it_is_the_loss_of_scores_computed_the_long_way(build_parts, batch, name: str) -> None:
    backbone, loss = build_parts(name)
    users, items = backbone.user_table.double(), backbone.item_table.double()
    if loss.similarity == "half-cosine":
        scores = 0.5 * functional.normalize(users, dim=1) @ functional.normalize(items, dim=1).T
    else:
        scores = users @ items.T
    rows = batch.users.unsqueeze(1)
    extras = loss.extra_inputs(batch.users, batch.positives, batch.negatives.long())
    expected = loss(
        scores[batch.users, batch.positives], scores[rows, batch.negatives.long()], **extras
    )
    torch.testing.assert_close(
        SampledObjective(backbone, loss)(backbone(), batch).double(),
        expected.double(),
        rtol=1e-4,
        atol=1e-5,
    )


def test_the_fused_operation_is_used_where_there_is_one(
    build_parts, batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr(
        "pslrec.training._operations.sampled_log_sum",
        lambda *tables, **options: (
            calls.append(options["surrogate"]) or log_sum.sampled_log_sum(*tables, **options)
        ),
    )
    fused = set()
    for name in LOSSES.names():
        backbone, loss = build_parts(name)
        calls.clear()
        SampledObjective(backbone, loss)(backbone(), batch)
        fused |= {name} if calls else set()
    expected = {"bsl", "psl", "psl-atan", "psl-relu", "psl-softplus", "psl-tanh", "sl", "sl@k"}
    assert fused == (expected if log_sum.runs_compiled(torch.zeros(1)) else set())


def test_the_contrast_of_xsimgcl_is_added(build_parts, batch) -> None:
    backbone, loss = build_parts("sl", "xsimgcl")
    backbone.train()
    representations = backbone(torch.Generator().manual_seed(0))
    contrast = backbone.auxiliary_loss(representations, batch.users, batch.positives)
    assert contrast.item() > 0
    whole = SampledObjective(backbone, loss)(representations, batch)
    backbone.contrast_weight = 0.0
    alone = SampledObjective(backbone, loss)(representations, batch)
    torch.testing.assert_close(whole - alone, contrast)


def test_scores_are_those_of_the_current_model_without_a_graph(build_parts, batch) -> None:
    backbone, loss = build_parts("sl@k", "lightgcn")
    scores = SampledObjective(backbone, loss).score(batch.users, batch.negatives)
    assert not scores.requires_grad
    users, items, scale = scored_tables(backbone(), "half-cosine")
    expected = scale * (users @ items.T)[batch.users.unsqueeze(1), batch.negatives.long()]
    torch.testing.assert_close(scores, expected.detach())


def test_half_cosines_lie_between_minus_and_plus_one_half() -> None:
    tables = Representations(
        torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.tensor([[6.0, 8.0], [-3.0, -4.0]])
    )
    users, items, scale = scored_tables(tables, "half-cosine")
    torch.testing.assert_close(scale * users @ items.T, torch.tensor([[0.5, -0.5], [0.0, 0.0]]))
    users, items, scale = scored_tables(tables, "inner-product")
    torch.testing.assert_close(scale * users @ items.T, torch.tensor([[50.0, -25.0], [0.0, 0.0]]))
