"""Every loss over a whole catalogue is what it is over the same negatives written out, pair by pair."""

import pytest
import torch

from pslrec.losses import LOSSES, SURROGATES, DivergenceError, Loss, Setup
from pslrec.losses import _catalog as catalog_module
from pslrec.losses._base import TEMPERATURES
from pslrec.losses._catalog import CatalogStep, CatalogView
from pslrec.rows import Rows

N_ITEMS, N_USERS = 40, 6
TOTAL_WEIGHT = 30
# One positive, several, nearly the whole catalogue.
N_POSITIVES = (1, 38, 9, 3, 20, 2)

# Some of the losses with top-K weighting, which no list holds.
WEIGHTED = ["bsl@20", "psl-relu@20", "psl-tanh@20", "sl@20"]

CASES = [
    *[(name, {}) for name in [*LOSSES.names(), *WEIGHTED]],
    *[("sl", {"temperature": temperature}) for temperature in (*TEMPERATURES, 0.15)],
    *[
        (
            "bsl",
            {"variant": variant, "positive_temperature": temperature, "negative_temperature": 0.15},
        )
        for variant in ("tables", "original", "original-grouped")
        for temperature in TEMPERATURES
    ],
    *[
        (name, {"temperature": temperature})
        for name in ("adv-infonce", "sl@k")
        for temperature in (*TEMPERATURES, 0.15)
    ],
    ("adv-infonce", {"variant": "original"}),
    ("sl@k", {"detach_weight": True}),
    ("psl-relu@20", {"detach_weight": True}),
    ("bsl@20", {"positive_temperature": 0.05, "negative_temperature": 0.15}),
    ("psl@20", {"surrogate": "exp-exp", "temperature": 0.15}),
    *[("psl@20", {"surrogate": surrogate, "form": "inside"}) for surrogate in ("tanh", "relu")],
    ("llpauc", {"variant": "original", "beta": 0.1}),
    ("bce", {"negative_weight": 3.0}),
    ("mse", {"negative_weight": 3.0}),
    *[("bpr", {"surrogate": surrogate}) for surrogate in SURROGATES if surrogate != "exp-exp"],
    *[
        ("psl", {"surrogate": surrogate, "temperature": temperature, "form": form})
        for surrogate in SURROGATES
        for form in ("outside", "inside")
        for temperature in (*TEMPERATURES, 0.15, 1.0)
        if not (form == "inside" and surrogate in ("atan", "exp-exp") and temperature < 0.5)
    ],
]
IDS = [
    "-".join([name, *(f"{key}={value}" for key, value in options.items())])
    for name, options in CASES
]


def built(name: str, options: dict[str, object]) -> Loss:
    loss = LOSSES[name](**options)
    history = Rows.from_lists([[0]] * N_USERS)
    random = torch.Generator().manual_seed(1)
    loss.build(
        Setup(n_users=N_USERS, n_items=N_ITEMS, dimension=4, generator=random, history=history)
    )
    if "catalog_negatives" in loss.options():
        loss.catalog_negatives = TOTAL_WEIGHT
    return loss.double()


def rows(low: float, high: float, random: torch.Generator) -> torch.Tensor:
    """Scores of one kind for each user: Gaussian three times, in two clusters, at the ends of the range, all the same."""
    scores = (
        torch.randn(N_USERS, N_ITEMS, generator=random, dtype=torch.float64) * 0.25 * (high - low)
    )
    scores[3] = torch.where(scores[3] > 0, 0.7 * high, 0.8 * low) + 0.01 * scores[2]
    scores[4] = torch.where(scores[4] > 0, low, high)
    scores[5] = 0.3 * high
    return scores.clamp(low, high)


def view_of(loss: Loss) -> CatalogView:
    random = torch.Generator().manual_seed(0)
    low, high = max(loss.domain[0], -3.0), min(loss.domain[1], 3.0)
    weights = torch.zeros(N_USERS, N_ITEMS, dtype=torch.float64)
    owners, items = [], []
    for user, count in enumerate(N_POSITIVES):
        order = torch.randperm(N_ITEMS, generator=random)
        owners += [user] * count
        items += order[:count].tolist()
        # Some negatives count several times, as false negatives do; all users' weigh the same together.
        draws = order[count:][torch.randint(N_ITEMS - count, (TOTAL_WEIGHT,), generator=random)]
        weights[user] = torch.bincount(draws, minlength=N_ITEMS).double()
    users = torch.randperm(N_USERS, generator=random)
    scores = rows(low, high, random).requires_grad_()
    return CatalogView(scores, weights, users, torch.tensor(owners), torch.tensor(items))


def written_out(loss: Loss, view: CatalogView) -> torch.Tensor:
    """The loss of each positive by `pairwise_values`, every negative as often as it weighs."""
    values = []
    for position, user in enumerate(view.users):
        items = view.items[view.owners == position]
        negatives = torch.repeat_interleave(torch.arange(N_ITEMS), view.weights[position].long())
        drawn = negatives.expand(len(items), -1)
        extras = loss.extra_inputs(user.expand(len(items)), items, drawn) if loss.needs else {}
        row = view.scores[position]
        values.append(
            loss.pairwise_values(row[items], row[negatives].expand(len(items), -1), **extras)
        )
    return torch.cat(values)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_catalog_values_and_gradient_equal_all_pairs_written_out(name, options):
    loss = built(name, options)
    if "thresholds" in dict(loss.named_modules()):
        loss.thresholds.values.copy_(torch.linspace(-0.4, 0.4, N_USERS))
    view = view_of(loss)
    truth, values = written_out(loss, view), loss.catalog_values(view)
    assert values.shape == view.owners.shape
    torch.testing.assert_close(values, truth, rtol=1e-9, atol=1e-9)
    factors = torch.linspace(0.5, 1.5, len(values), dtype=torch.float64)
    inputs = [view.scores, *loss.parameters()]
    ours, wanted = (
        torch.autograd.grad((each * factors).sum(), inputs, allow_unused=True)
        for each in (values, truth)
    )
    for mine, true in zip(ours, wanted, strict=True):
        assert (mine is None) == (true is None)
        if true is not None:
            torch.testing.assert_close(
                mine, true, rtol=1e-7, atol=1e-8 * float(true.abs().max()) + 1e-12
            )


@pytest.mark.parametrize(("surrogate", "what"), [("atan", "sums to"), ("exp-exp", "overflows")])
def test_inside_form_without_a_value_raises(surrogate, what):
    loss = built("psl", {"surrogate": surrogate, "temperature": 0.001, "form": "inside"})
    with pytest.raises(DivergenceError, match=what):
        loss.catalog_values(view_of(loss))


@pytest.mark.parametrize("name", [*LOSSES.names(), *WEIGHTED])
def test_values_do_not_depend_on_the_piece(name, monkeypatch):
    loss = built(name, {})
    view = view_of(loss)
    whole = loss.catalog_values(view)
    (whole_gradient,) = torch.autograd.grad(whole.sum(), view.scores)
    monkeypatch.setattr(catalog_module, "LARGEST_PIECE", 3 * N_ITEMS)
    view = view_of(loss)
    pieces = loss.catalog_values(view)
    torch.testing.assert_close(pieces, whole)
    torch.testing.assert_close(torch.autograd.grad(pieces.sum(), view.scores)[0], whole_gradient)


def test_no_more_than_a_piece_is_kept_for_the_way_back(monkeypatch):
    monkeypatch.setattr(catalog_module, "LARGEST_PIECE", 2 * N_ITEMS)
    loss = built("psl-tanh", {})
    view = view_of(loss)
    kept = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss.catalog_values(view)
    assert 0 < sum(tensor.numel() for tensor in kept.values()) < len(view.owners) * N_ITEMS / 2


@pytest.mark.parametrize(
    ("phase", "expected"), [("model", (True, False)), ("adversary", (False, True))]
)
def test_adversary_learns_in_its_own_phase_alone(phase, expected):
    loss = built("adv-infonce", {})
    view = view_of(loss)
    if phase == "adversary":
        view = CatalogView(view.scores.detach(), view.weights, view.users, view.owners, view.items)
    loss.start_epoch(0, phase)
    loss.catalog_values(view).mean().backward()
    tables = [loss.adversary.users, loss.adversary.items]
    assert (
        view.scores.grad is not None,
        all(table.grad is not None for table in tables),
    ) == expected
    assert all(table.grad is None or float(table.grad.abs().max()) > 0 for table in tables)


@pytest.mark.parametrize("name", ["adv-infonce", "sl@k", *WEIGHTED])
def test_catalog_negatives_scale_the_sum(name):
    loss = built(name, {})
    view = view_of(loss)
    few = loss.catalog_values(view)
    loss.catalog_negatives *= 10
    assert bool((loss.catalog_values(view) > few).all())


def test_part_of_the_items_takes_their_rows_of_the_adversary():
    loss = built("adv-infonce", {})
    view = view_of(loss)
    order = torch.randperm(N_ITEMS, generator=torch.Generator().manual_seed(2))
    places = torch.argsort(order)
    shuffled = CatalogView(
        view.scores[:, order],
        view.weights[:, order],
        view.users,
        view.owners,
        places[view.items],
        item_rows=order,
    )
    torch.testing.assert_close(loss.catalog_values(shuffled), loss.catalog_values(view))


def test_thresholds_are_the_kth_largest_of_the_whole_row():
    loss = built("sl@k", {"k": 3, "update_every": 1}).float()
    scores = torch.tensor([[0.1, 0.4, -0.2, 0.3], [0.2, -float("inf"), -0.4, -float("inf")]])
    loss.start_epoch(0)
    loss.after_step(CatalogStep(torch.tensor([2, 0]), lambda: scores))
    assert loss.thresholds(torch.arange(3)).tolist() == pytest.approx([-0.5, 0.0, 0.1])


@pytest.mark.parametrize("name", [*LOSSES.names(), *WEIGHTED])
def test_every_loss_says_what_it_is_on_the_catalogue(name):
    assert LOSSES[name].catalog_values is not Loss.catalog_values
