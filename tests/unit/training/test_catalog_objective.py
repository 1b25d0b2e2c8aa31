"""Exact training as a step sees it: the compiled path against the loss written out, for every loss, on every backbone."""

import numpy as np
import pytest
import torch

from pslrec.backbones import BACKBONES
from pslrec.data._synthetic import planted_tastes
from pslrec.errors import ConfigError
from pslrec.losses import LOSSES, BPRLoss, Loss, Setup
from pslrec.sampling import PairBatches, UserBlocks
from pslrec.training import SampledObjective, scored_tables
from pslrec.training._catalog_objective import CatalogObjective

COMPILED = [
    *[
        (name, {})
        for name in ("sl", "bsl", "psl-tanh", "psl-atan", "psl-relu", "psl-softplus", "bpr")
    ],
    *[(f"psl-{surrogate}", {"form": "inside"}) for surrogate in ("tanh", "relu", "softplus")],
    ("psl-atan", {"form": "inside", "temperature": 1.0}),
    ("psl", {"surrogate": "exp", "form": "inside"}),
    *[
        ("adv-infonce", options)
        for options in ({}, {"temperature": 0.005}, {"variant": "original"})
    ],
    *[
        (f"{name}@5", {"weight_temperature": 0.25})
        for name in ("sl", "psl-tanh", "psl-atan", "psl-relu", "psl-softplus")
    ],
    ("bsl@5", {"positive_temperature": 0.2, "negative_temperature": 0.05}),
    ("sl@k", {"detach_weight": True, "k": 5}),
    ("psl-relu@5", {"detach_weight": True, "temperature": 0.15}),
    *[(f"psl-{surrogate}@5", {"form": "inside"}) for surrogate in ("tanh", "relu", "softplus")],
]
BOTH_WAYS = [
    *[(loss, options, "mf") for loss, options in COMPILED],
    *[
        (loss, {}, backbone)
        for loss in ("psl-relu", "bpr", "psl-relu@5")
        for backbone in ("lightgcn", "xsimgcl")
    ],
]


@pytest.fixture(scope="module")
def train():
    return planted_tastes(60, 80, seed=5).interactions


def built(name, train, **options):
    loss = LOSSES[name](**options)
    random = torch.Generator().manual_seed(0)
    loss.build(
        Setup(
            train.n_users,
            train.n_items,
            dimension=8,
            generator=random,
            history=train.rows,
        )
    )
    return loss


def backbone_for(loss, train, name="mf"):
    return BACKBONES[name](train, dimension=8, initialization=loss.initialization)


def value_and_gradients(backbone, loss, block):
    backbone.zero_grad()
    noise = torch.Generator().manual_seed(0)
    value = CatalogObjective(backbone, loss)(backbone(noise), block)
    value.backward()
    return float(value.detach()), backbone.user_table.grad.clone(), backbone.item_table.grad.clone()


def assert_same(ours, truth):
    assert ours[0] == pytest.approx(truth[0], rel=1e-5, abs=1e-5)
    for mine, true in zip(ours[1:], truth[1:], strict=True):
        torch.testing.assert_close(mine, true, rtol=1e-3, atol=1e-5 * float(true.abs().max() + 1))


@pytest.mark.parametrize("n_shared", [None, 30])
@pytest.mark.parametrize(("name", "options", "backbone"), BOTH_WAYS)
def test_compiled_and_plain_path_agree(train, name, options, backbone, n_shared, monkeypatch):
    loss = built(name, train, **options)
    model = backbone_for(loss, train, backbone)
    block = next(UserBlocks(train, batch_pairs=300, n_shared=n_shared).epoch(0))
    if hasattr(loss, "thresholds"):
        loss.thresholds.values.copy_(torch.linspace(-0.3, 0.3, train.n_users))
    compiled = value_and_gradients(model, loss, block)
    monkeypatch.setattr("pslrec.kernels._sampled.IS_COMPILED", False)
    monkeypatch.setattr("pslrec.kernels._catalog.native", None)
    assert_same(compiled, value_and_gradients(model, loss, block))


@pytest.mark.parametrize("keep_positives", [False, True])
@pytest.mark.parametrize("phase", ["model", "adversary"])
def test_adversary_and_model_get_the_gradient_of_the_plain_path(
    train, phase, keep_positives, monkeypatch
):
    loss = built("adv-infonce", train)
    loss.start_epoch(0, phase)
    model = backbone_for(loss, train)
    false = train.select(np.arange(0, len(train), 9))
    kept = (
        train
        if keep_positives
        else train.select(np.setdiff1d(np.arange(len(train)), np.arange(0, len(train), 9)))
    )
    block = next(UserBlocks(kept, batch_pairs=300, false_negatives=false, noise=0.2).epoch(0))

    def gradients():
        loss.zero_grad()
        found = value_and_gradients(model, loss, block)
        tables = (
            [loss.adversary.users.grad, loss.adversary.items.grad] if phase == "adversary" else []
        )
        return *found, *tables

    compiled = gradients()
    assert len(compiled) == (5 if phase == "adversary" else 3)
    monkeypatch.setattr("pslrec.kernels._sampled.IS_COMPILED", False)
    for ours, plain in zip(compiled[1:], gradients()[1:], strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-3, atol=1e-5 * float(plain.abs().max()))


# The others are normalised to a number of draws; the contract of the losses writes them out.
@pytest.mark.parametrize("name", sorted(set(LOSSES) - {"adv-infonce", "sl@k"}))
def test_value_is_the_mean_loss_over_all_negatives(train, name):
    loss = built(name, train)
    model = backbone_for(loss, train)
    block = next(UserBlocks(train, batch_pairs=200).epoch(0))
    users, items, scale = scored_tables(model(), loss.similarity)
    weights, values = block.weights(), []
    owners, pair_items = block.pairs()
    with torch.no_grad():
        for position, user in enumerate(block.users):
            row = scale * items @ users[user]
            negatives = row[weights[position] > 0]
            positives = row[pair_items[owners == position]]
            values.append(loss.pairwise_values(positives, negatives.expand(len(positives), -1)))
        value = CatalogObjective(model, loss)(model(), block)
    assert float(value) == pytest.approx(float(torch.cat(values).mean()), rel=1e-5)


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize(
    "name", ["bpr", "bce", "mse", "llpauc", "adv-infonce", "sl@k", "psl-relu@5", "bsl@5"]
)
def test_catalogue_means_what_many_draws_mean(train, name, noise):
    loss = built(name, train)
    model = backbone_for(loss, train)
    torch.nn.init.normal_(model.user_table, std=0.7, generator=torch.Generator().manual_seed(1))
    order = np.random.default_rng(0).permutation(len(train))
    kept, false = (train.select(np.sort(part)) for part in (order[50:], order[:50]))
    options = {"batch_pairs": len(train), "false_negatives": false, "noise": noise}
    with torch.no_grad():
        exact = CatalogObjective(model, loss)(model(), next(UserBlocks(kept, **options).epoch(0)))
        batch = next(PairBatches(kept, n_negatives=1000, **options).epoch(0))
        sampled = SampledObjective(model, loss)(model(), batch)
    assert float(exact) == pytest.approx(float(sampled), rel=0.01)


@pytest.mark.parametrize("name", [*LOSSES.names(), "psl-tanh@5"])
def test_blocks_of_any_size_give_the_same_loss(train, name):
    loss = built(name, train)
    model = backbone_for(loss, train)
    objective = CatalogObjective(model, loss)
    means = []
    for batch_pairs in (40, 300, 10_000):
        with torch.no_grad():
            blocks = list(UserBlocks(train, batch_pairs=batch_pairs).epoch(0))
            means.append(
                sum(float(objective(model(), block)) * block.n_pairs for block in blocks)
                / len(train)
            )
    assert means == pytest.approx([means[0]] * 3, rel=1e-5)


@pytest.mark.parametrize("name", [*LOSSES.names(), "psl-tanh@5"])
def test_shared_items_estimate_the_whole_catalogue(train, name):
    loss = built(name, train)
    model = backbone_for(loss, train)
    objective = CatalogObjective(model, loss)

    def mean(n_shared, epochs):
        blocks = UserBlocks(train, batch_pairs=len(train), n_shared=n_shared)
        with torch.no_grad():
            return np.mean(
                [
                    float(objective(model(), block))
                    for epoch in epochs
                    for block in blocks.epoch(epoch)
                ]
            )

    whole = mean(None, range(1))
    assert mean(train.n_items - 1, range(2)) == pytest.approx(whole, rel=0.05, abs=0.05)
    # The logarithm of a mean over few is below that over all, on average.
    assert mean(50, range(10)) == pytest.approx(whole, rel=0.1, abs=0.15)


def test_gradient_of_a_shared_block_reaches_drawn_items_and_positives_alone(train):
    loss = built("bpr", train)
    model = backbone_for(loss, train)
    block = next(UserBlocks(train, batch_pairs=30, n_shared=10).epoch(0))
    CatalogObjective(model, loss)(model(), block).backward()
    touched = torch.nonzero(model.item_table.grad.abs().sum(dim=1)).flatten()
    assert touched.tolist() == block.reduced().columns.tolist()
    assert len(touched) < train.n_items


def test_step_gives_the_scores_of_positives_and_negatives(train):
    loss = built("sl@k", train, k=5, update_every=1)
    model = backbone_for(loss, train)
    false = train.select(np.arange(0, len(train), 9))
    kept = train.select(np.setdiff1d(np.arange(len(train)), np.arange(0, len(train), 9)))
    block = next(UserBlocks(kept, batch_pairs=100, false_negatives=false).epoch(0))
    step = CatalogObjective(model, loss).step_of(block)
    scores = step.scores()
    owners, items = block.pairs()
    is_candidate = block.weights() > 0
    is_candidate[owners, items] = True
    assert (torch.isfinite(scores) == is_candidate).all()
    assert bool((~is_candidate).any())
    loss.start_epoch(0)
    loss.after_step(step)
    expected = [float(row[torch.isfinite(row)].sort(descending=True).values[4]) for row in scores]
    assert loss.thresholds(block.users).tolist() == pytest.approx(expected)


def test_loss_without_a_form_for_the_catalogue_is_refused(train):
    class Unfinished(BPRLoss):
        catalog_values = Loss.catalog_values
        needs = frozenset({"popularity"})

    with pytest.raises(ConfigError, match=r"needs `popularity` .* defines no `catalog_values`"):
        CatalogObjective(BACKBONES["mf"](train, dimension=8), Unfinished())
