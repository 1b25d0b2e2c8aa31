"""Dense Adam with coupled weight decay, against the formula written out."""

import pytest
import torch
from torch.nn import functional

from pslrec.sampling import PairBatches
from pslrec.training._optimizer import build_optimizers


def adam_by_hand(table, gradient, moments, step, *, learning_rate, weight_decay):
    gradient = gradient + weight_decay * table
    first = 0.9 * moments[0] + 0.1 * gradient
    second = 0.999 * moments[1] + 0.001 * gradient**2
    corrected = first / (1 - 0.9**step), second / (1 - 0.999**step)
    return table - learning_rate * corrected[0] / (corrected[1].sqrt() + 1e-8), (first, second)


@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_training_is_dense_adam_with_coupled_weight_decay(
    build_run, tiny_log, weight_decay: float
) -> None:
    run = build_run("bpr", epochs=2, n_negatives=1, learning_rate=0.05, weight_decay=weight_decay)
    tables = [run.backbone.user_table.detach().double(), run.backbone.item_table.detach().double()]
    moments = [(torch.zeros_like(table), torch.zeros_like(table)) for table in tables]
    batches = PairBatches(tiny_log, n_negatives=1, batch_pairs=40, seed=5)
    step = 0
    for epoch in range(2):
        for batch in batches.epoch(epoch):
            step += 1
            users, items = (table.clone().requires_grad_() for table in tables)
            difference = (
                (items[batch.negatives[:, 0].long()] - items[batch.positives]) * users[batch.users]
            ).sum(1)
            gradients = torch.autograd.grad(functional.softplus(difference).mean(), (users, items))
            for place in (0, 1):
                tables[place], moments[place] = adam_by_hand(
                    tables[place],
                    gradients[place],
                    moments[place],
                    step,
                    learning_rate=0.05,
                    weight_decay=weight_decay,
                )
    run.trainer.fit()
    # Adam divides by roots of tiny squares, which magnifies the rounding of single precision.
    torch.testing.assert_close(run.backbone.user_table.double(), tables[0], rtol=1e-3, atol=2e-3)
    torch.testing.assert_close(run.backbone.item_table.double(), tables[1], rtol=1e-3, atol=2e-3)


def test_rows_outside_the_batch_keep_moving(build_run, tiny_log) -> None:
    run = build_run("sl", epochs=1, learning_rate=0.1)
    batches = list(PairBatches(tiny_log, n_negatives=6, batch_pairs=40, seed=5).epoch(0))
    before = set(batches[0].users.tolist())
    absent = sorted(before - set(batches[1].users.tolist()))
    assert absent
    tables = []
    run.trainer._listeners = (lambda _: tables.append(run.backbone.user_table.detach().clone()),)
    run.trainer.fit()
    after_first, after_second = tables[1], tables[2]  # the first event comes before the first step
    assert bool(((after_first - after_second)[absent].abs().sum(dim=1) > 0).all())


def test_weight_decay_acts_on_rows_without_any_gradient(build_run) -> None:
    run = build_run("sl", epochs=1, learning_rate=0.01, weight_decay=0.1)
    optimizer = run.trainer._model_step.optimizers["model"]
    table = run.backbone.user_table
    before = table.detach().clone()
    table.grad = torch.zeros_like(table)
    optimizer.step()
    # The gradient is the decay alone, whose size Adam takes out: every entry moves by the learning rate towards 0.
    torch.testing.assert_close(before - table.detach(), 0.01 * before.sign(), rtol=1e-3, atol=1e-5)


def test_llpauc_scalars_have_rates_of_their_own(build_parts) -> None:
    backbone, loss = build_parts("llpauc")
    optimizer = build_optimizers(backbone, loss, learning_rate=0.1, weight_decay=1e-4)["model"]
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert rates[id(backbone.user_table)] == 0.1
    assert {name: rates[id(scalar)] for name, scalar in loss.scalars.items()} == {
        "positive_centre": 0.1,
        "negative_centre": 0.1,
        "positive_multiplier": 0.1,
        "negative_multiplier": 0.1,
        "positive_quantile": 0.2,
        "negative_quantile": 0.2,
        "margin": 0.2,
    }
    assert all(group["weight_decay"] == 1e-4 for group in optimizer.param_groups)


def test_the_adversary_has_an_optimiser_of_its_own_that_ascends(build_parts) -> None:
    backbone, loss = build_parts("adv-infonce")
    optimizers = build_optimizers(backbone, loss, learning_rate=0.1, weight_decay=0.0)
    assert optimizers.keys() == {"model", "adversary"}
    (group,) = optimizers["adversary"].param_groups
    assert group["maximize"] is True
    assert group["lr"] == 5e-5
    trained = {id(p) for group in optimizers["model"].param_groups for p in group["params"]}
    assert trained == {id(backbone.user_table), id(backbone.item_table)}
