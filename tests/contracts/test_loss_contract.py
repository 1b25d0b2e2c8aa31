"""What holds for every loss of the registry, with its defaults, each value of its grid, and its other options."""

import copy
import itertools
import json

import pytest
import torch

from pslrec.losses import LOSSES, SURROGATES, Loss, Setup, Step
from pslrec.rows import Rows

EXAMPLE_EXTRAS = {
    "hardness": torch.randn,
    "threshold": lambda batch, negatives: torch.rand(batch) - 0.5,
    "users": lambda batch, negatives: torch.randint(3, (batch,)),
}

# Some of the losses with top-K weighting, which no list holds.
WEIGHTED = ["bsl@20", "psl-relu@20", "psl-tanh@20", "sl@20"]

OTHER_OPTIONS = [
    *[(name, {}) for name in WEIGHTED],
    ("bsl@3", {"positive_temperature": 0.005, "negative_temperature": 0.25, "update_every": 1}),
    ("psl@5", {"surrogate": "softplus", "weight_temperature": 0.25}),
    ("psl@5", {"surrogate": "exp-exp", "temperature": 0.005}),
    ("psl-tanh@20", {"form": "inside", "temperature": 0.005}),
    ("psl-relu@20", {"detach_weight": True, "temperature": 0.005}),
    ("adv-infonce", {"variant": "original"}),
    ("bsl", {"variant": "original"}),
    ("bsl", {"variant": "original", "positive_temperature": 0.005, "negative_temperature": 0.25}),
    ("bsl", {"variant": "original-grouped"}),
    ("llpauc", {"variant": "original"}),
    ("sl@k", {"detach_weight": True, "temperature": 0.005}),
    *[("bpr", {"surrogate": surrogate}) for surrogate in SURROGATES if surrogate != "exp-exp"],
    *[
        ("psl", {"surrogate": surrogate, "temperature": temperature})
        for surrogate in SURROGATES
        for temperature in (0.005, 0.025, 0.05, 0.1, 0.25)
    ],
    *[
        ("psl", {"surrogate": surrogate, "temperature": temperature, "form": "inside"})
        for surrogate in ("exp", "tanh", "relu", "softplus")
        for temperature in (0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
    ],
    ("psl", {"surrogate": "atan", "temperature": 1.0, "form": "inside"}),
    ("psl", {"surrogate": "exp-exp", "temperature": 0.5, "form": "inside"}),
]


def grid_options() -> list[tuple[str, dict[str, float]]]:
    cases = []
    for name in LOSSES:
        cases.append((name, {}))
        for setting, values in LOSSES[name].search_space.items():
            section, option = setting.split(".")
            if section == "loss":
                cases += [(name, {option: value}) for value in values]
    return cases


CASES = [(name, options) for name, options in grid_options() + OTHER_OPTIONS]
IDS = [
    "-".join([name, *(f"{key}={value}" for key, value in options.items())])
    for name, options in CASES
]
every_case = pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
every_loss = pytest.mark.parametrize("name", [*LOSSES.names(), *WEIGHTED])


def draw(
    loss: Loss, batch: int = 4, negatives: int = 6
) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    low, high = (max(loss.domain[0], -2.0), min(loss.domain[1], 2.0))
    positive = torch.empty(batch, dtype=torch.float64).uniform_(low, high)
    negative = torch.empty(batch, negatives, dtype=torch.float64).uniform_(low, high)
    return (
        positive,
        negative,
        {need: EXAMPLE_EXTRAS[need](batch, negatives) for need in sorted(loss.needs)},
    )


@every_case
def test_loss_is_the_scalar_mean_of_its_pairwise_values(name, options):
    loss = LOSSES[name](**options)
    positive, negative, extras = draw(loss)
    values = loss.pairwise_values(positive, negative, **extras)
    total = loss(positive, negative, **extras)
    assert values.shape == (4,)
    assert total.shape == ()
    torch.testing.assert_close(total, values.mean())


@every_case
def test_value_and_gradient_are_finite_at_the_corners_of_the_domain(name, options):
    loss = LOSSES[name](**options)
    ends = [max(loss.domain[0], -1e4), 0.0, min(loss.domain[1], 1e4)]
    corners = torch.tensor(list(itertools.product(ends, repeat=4)))
    # One ulp beyond a corner of the half cosines: what rounding of a norm makes of it.
    corners = torch.cat([corners, torch.nextafter(corners, corners * 2)])
    positive, negative = (
        corners[:, 0].clone().requires_grad_(),
        corners[:, 1:].clone().requires_grad_(),
    )
    extras = {need: EXAMPLE_EXTRAS[need](len(corners), 3) for need in sorted(loss.needs)}
    values = loss.pairwise_values(positive, negative, **extras)
    values.sum().backward()
    assert values.dtype == torch.float32
    assert torch.isfinite(values).all()
    assert torch.isfinite(positive.grad).all()
    assert torch.isfinite(negative.grad).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in loss.parameters())


# A detached weight leaves a part of the gradient out on purpose.
@pytest.mark.parametrize(
    ("name", "options"), [case for case in CASES if "detach_weight" not in case[1]]
)
def test_gradient_matches_finite_differences(name, options):
    loss = LOSSES[name](**options).double()
    positive, negative, extras = draw(loss, batch=3, negatives=4)
    if loss.options().get("form") == "inside":
        negative = positive.unsqueeze(1) + loss.options()["temperature"] * (
            negative - positive.unsqueeze(1)
        ).clamp(-0.9, 0.9)
    scores = (positive.requires_grad_(), negative.detach().requires_grad_())
    assert torch.autograd.gradcheck(lambda *pair: loss.pairwise_values(*pair, **extras), scores)


@every_loss
def test_order_of_negatives_does_not_matter(name):
    loss = LOSSES[name]()
    positive, negative, extras = draw(loss)
    order = torch.randperm(negative.shape[1])
    permuted = {key: value[:, order] if value.ndim == 2 else value for key, value in extras.items()}
    torch.testing.assert_close(
        loss.pairwise_values(positive, negative[:, order], **permuted),
        loss.pairwise_values(positive, negative, **extras),
    )


@every_case
def test_order_of_the_batch_does_not_matter(name, options):
    loss = LOSSES[name](**options)
    positive, negative, extras = draw(loss)
    order = torch.randperm(len(positive))
    permuted = {key: value[order] for key, value in extras.items()}
    torch.testing.assert_close(
        loss(positive[order], negative[order], **permuted), loss(positive, negative, **extras)
    )


@every_case
def test_loss_does_not_rise_with_a_positive_score(name, options):
    loss = LOSSES[name](**options)
    _, negative, extras = draw(loss, batch=50)
    low, high = (max(loss.domain[0], -5.0), min(loss.domain[1], 5.0))
    positive = torch.linspace(low, high, 50, dtype=torch.float64)
    fixed = {key: value[:1].expand_as(value) for key, value in extras.items()}
    if "users" in loss.needs:
        fixed["users"] = torch.arange(50)
    steps = loss.pairwise_values(positive, negative[:1].expand_as(negative), **fixed).diff()
    if loss.falls_with_positive:
        assert (steps <= 1e-12).all()
    else:
        assert loss.name == "mse" or "@" in loss.name


@every_loss
def test_loss_says_what_it_needs(name):
    loss = LOSSES[name]()
    positive, negative, extras = draw(loss)
    for need in loss.needs:
        rest = {key: value for key, value in extras.items() if key != need}
        with pytest.raises(ValueError, match=f"loss `{name}` needs `{need}=`"):
            loss(positive, negative, **rest)
    with pytest.raises(ValueError, match="got `surprise`"):
        loss(positive, negative, **extras, surprise=positive)


@every_loss
@pytest.mark.parametrize(
    "shapes", [((4, 1), (4, 2)), ((4,), (4,)), ((3,), (4, 2)), ((4,), (4, 0)), ((0,), (0, 3))]
)
def test_wrong_shapes_raise(name, shapes):
    loss = LOSSES[name]()
    with pytest.raises(ValueError, match=r"\(batch,\)|at least one"):
        loss(torch.zeros(shapes[0]), torch.zeros(shapes[1]))


@every_case
def test_options_construct_the_same_loss_again(name, options):
    loss = LOSSES[name](**options)
    written = json.loads(json.dumps(loss.options()))
    assert written.items() >= options.items()
    again = LOSSES[name](**written)
    assert again.options() == loss.options()
    positive, negative, extras = draw(loss)
    assert torch.equal(again(positive, negative, **extras), loss(positive, negative, **extras))


@every_loss
def test_loss_declares_itself(name):
    loss = LOSSES[name]()
    assert loss.name == name
    assert loss.reference
    assert loss.__doc__
    assert loss.similarity in {"half-cosine", "inner-product"}
    assert loss.default_negatives >= 1
    space = loss.search_space
    assert {"training.learning_rate", "training.weight_decay"} <= space.keys()
    own = {setting.removeprefix("loss.") for setting in space if setting.startswith("loss.")}
    assert own <= loss.options().keys()
    assert copy.deepcopy(loss).options() == loss.options()


def tiny_setup(seed: int) -> Setup:
    history = Rows.from_lists([[0, 1], [2], [3, 4]])
    return Setup(
        n_users=3,
        n_items=7,
        dimension=4,
        generator=torch.Generator().manual_seed(seed),
        history=history,
    )


def train(
    loss: Loss, epochs: range, model: torch.nn.Embedding, learning_rate: float = 0.05
) -> list[tuple[str, bool, bool]]:
    """The life cycle in the docstring of `Loss`; says for each pass whether the model and the loss moved."""
    users, positives = torch.tensor([0, 0, 1, 2, 2]), torch.tensor([0, 1, 2, 3, 4])
    negatives = torch.tensor([[5, 6], [4, 6], [5, 0], [6, 1], [5, 2]])

    def score(users, items):
        vectors = torch.nn.functional.normalize(model.weight, dim=1)
        return 0.5 * torch.einsum("bd,bnd->bn", vectors[users], vectors[3 + items])

    optimisers = {}
    for phase in loss.phases:
        own = [{"params": model.parameters()}] if phase == "model" else []
        optimisers[phase] = torch.optim.Adam(
            own + loss.parameter_groups(learning_rate, phase), lr=learning_rate
        )
    passes = []
    for epoch in epochs:
        for phase in loss.epoch_phases(epoch):
            before = copy.deepcopy((model.state_dict(), loss.state_dict()))
            loss.start_epoch(epoch, phase)
            with torch.set_grad_enabled(phase == "model"):
                scores = score(users, positives.unsqueeze(1)).squeeze(1), score(users, negatives)
            optimisers[phase].zero_grad()
            loss(*scores, **loss.extra_inputs(users, positives, negatives)).backward()
            optimisers[phase].step()
            with torch.no_grad():
                loss.after_step(Step(users, positives, negatives, score))
            moved = [
                not same(old, new)
                for old, new in zip(before, (model.state_dict(), loss.state_dict()), strict=True)
            ]
            passes.append((phase, *moved))
    return passes


def same(old: dict[str, torch.Tensor], new: dict[str, torch.Tensor]) -> bool:
    return old.keys() == new.keys() and all(torch.equal(old[key], new[key]) for key in old)


@every_loss
def test_life_cycle_trains_what_the_phase_says(name):
    loss, model = LOSSES[name](), torch.nn.Embedding(10, 4)
    loss.build(tiny_setup(seed=0))
    for phase, model_moved, _ in train(loss, range(6), model):
        assert model_moved == (phase == "model")


@every_loss
def test_parameter_groups_hold_each_parameter_once(name):
    loss = LOSSES[name]()
    loss.build(tiny_setup(seed=0))
    grouped = [
        p
        for phase in loss.phases
        for group in loss.parameter_groups(0.1, phase)
        for p in group["params"]
    ]
    assert sorted(map(id, grouped)) == sorted(map(id, loss.parameters()))


@every_loss
def test_state_dict_brings_a_trained_loss_back(name):
    loss, model = LOSSES[name](), torch.nn.Embedding(10, 4)
    loss.build(tiny_setup(seed=0))
    train(loss, range(6), model)
    again = LOSSES[name]()
    again.build(tiny_setup(seed=1))
    again.load_state_dict(loss.state_dict())
    positive, negative, _ = draw(loss, batch=2, negatives=3)
    ids = torch.tensor([0, 2]), torch.tensor([1, 3]), torch.tensor([[5, 6, 0], [6, 0, 1]])
    expected = loss(positive, negative, **loss.extra_inputs(*ids))
    assert torch.equal(again(positive, negative, **again.extra_inputs(*ids)), expected)


@pytest.mark.gpu
@every_case
def test_value_is_the_same_on_the_gpu(name, options):
    loss = LOSSES[name](**options)
    positive, negative, extras = draw(loss)
    expected = loss(positive, negative, **extras)
    moved = {key: value.cuda() for key, value in extras.items()}
    torch.testing.assert_close(
        loss.cuda()(positive.cuda(), negative.cuda(), **moved).cpu(), expected
    )
