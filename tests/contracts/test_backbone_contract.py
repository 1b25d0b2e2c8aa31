import copy

import numpy as np
import pytest
import torch

from matrices import interactions_of
from pslrec.backbones import BACKBONES, Representations
from pslrec.data import Interactions
from pslrec.errors import ConfigError, UnknownNameError

N_USERS, N_ITEMS = 12, 9
ISOLATED_USER, ISOLATED_ITEM = 5, 7


@pytest.fixture(scope="module")
def train() -> Interactions:
    pairs = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.4
    pairs[ISOLATED_USER] = False
    pairs[:, ISOLATED_ITEM] = False
    return interactions_of(pairs)


@pytest.fixture(params=list(BACKBONES))
def backbone_class(request: pytest.FixtureRequest):
    return BACKBONES[request.param]


def total(backbone, representations: Representations, train: Interactions) -> torch.Tensor:
    users, items = (
        torch.from_numpy(train.users.astype("int64")),
        torch.from_numpy(train.items.astype("int64")),
    )
    ranking = (
        (representations.users[users] * representations.items[items]).sum(dim=1).sigmoid().mean()
    )
    auxiliary = backbone.auxiliary_loss(representations, users, items)
    return ranking if auxiliary is None else ranking + auxiliary


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_registry_holds_the_backbones_of_the_paper():
    assert {"mf", "lightgcn", "xsimgcl"} <= set(BACKBONES)


def test_tables_are_the_parameters_and_have_the_dimension_asked_for(backbone_class, train):
    for dimension in (3, 64):
        backbone = backbone_class(train, dimension=dimension)
        shapes = {name: tuple(parameter.shape) for name, parameter in backbone.named_parameters()}
        # Where histories make users, the table that they are sums of has a row per item.
        n_rows = N_ITEMS if backbone_class.sums_histories else N_USERS
        assert shapes == {"user_table": (n_rows, dimension), "item_table": (N_ITEMS, dimension)}
        assert all(parameter.dtype == torch.float32 for parameter in backbone.parameters())
    assert backbone_class(train).dimension == 64


def test_representations_cover_every_user_and_item_and_are_finite(backbone_class, train):
    backbone = backbone_class(train)
    for representations in (backbone(), backbone(noise=generator())):
        assert representations.users.shape == (N_USERS, 64)
        assert representations.items.shape == (N_ITEMS, 64)
        assert all(view is None or view.isfinite().all() for view in representations)


def test_gradients_reach_both_tables_and_are_finite(backbone_class, train):
    backbone = backbone_class(train, dimension=6)
    total(backbone, backbone(noise=generator()), train).backward()
    for table in backbone.parameters():
        assert table.grad.isfinite().all()
        assert table.grad.abs().sum() > 0


def test_gradients_pass_the_numerical_check(backbone_class, train):
    backbone = backbone_class(train, dimension=3, initialization="normal", seed=4).double()

    def value(users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        def step(module) -> torch.Tensor:
            return total(module, module(), train)

        class Whole(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = backbone

            def forward(self) -> torch.Tensor:
                return step(self.inner)

        return torch.func.functional_call(
            Whole(), {"inner.user_table": users, "inner.item_table": items}, ()
        )

    tables = tuple(
        table.detach().clone().requires_grad_()
        for table in (backbone.user_table, backbone.item_table)
    )
    assert torch.autograd.gradcheck(value, tables)


def test_evaluation_mode_has_no_noise(backbone_class, train):
    backbone = backbone_class(train).eval()
    noisy, plain = backbone(noise=generator()), backbone()
    assert torch.equal(noisy.users, plain.users)
    assert torch.equal(noisy.items, plain.items)


def test_same_noise_generator_gives_the_same_representations(backbone_class, train):
    backbone = backbone_class(train)
    first, second = backbone(noise=generator(3)), backbone(noise=generator(3))
    assert torch.equal(first.users, second.users)
    assert torch.equal(first.items, second.items)


@pytest.mark.parametrize("initialization", [None, "normal:0.1", "spectral"])
def test_tables_follow_from_the_seed_and_not_from_global_state(
    backbone_class, train, initialization
):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = backbone_class(train, seed=7, initialization=initialization)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    second = backbone_class(train, seed=7, initialization=initialization)
    other = backbone_class(train, seed=8, initialization=initialization)
    assert torch.equal(first.user_table, second.user_table)
    assert torch.equal(first.item_table, second.item_table)
    assert not torch.equal(first.user_table, other.user_table)


def test_state_dict_round_trip_holds_the_tables_alone(backbone_class, train):
    backbone = backbone_class(train, seed=1)
    state = copy.deepcopy(backbone.state_dict())
    assert set(state) == {"user_table", "item_table"}
    other = backbone_class(train, seed=2)
    other.load_state_dict(state)
    assert torch.equal(other.eval()().users, backbone.eval()().users)
    assert torch.equal(other().items, backbone().items)


def test_lookup_backbones_return_their_tables_and_others_do_not(backbone_class, train):
    backbone = backbone_class(train)
    representations = backbone()
    assert (representations.users is backbone.user_table) == backbone_class.is_lookup
    has_item_rows = backbone_class.is_lookup or backbone_class.sums_histories
    assert (representations.items is backbone.item_table) == has_item_rows


def test_a_step_has_the_same_users_as_the_representations_if_nothing_is_hidden(
    backbone_class, train
):
    backbone = backbone_class(train, dimension=6).eval()
    users = torch.tensor([3, 0, ISOLATED_USER, 3])
    tables = backbone.step_tables()
    assert torch.equal(backbone.users_of(tables, users), backbone().users[users])
    assert torch.equal(tables.items, backbone().items)


def test_only_backbones_of_histories_encode_them_and_then_as_the_representations(
    backbone_class, train
):
    backbone = backbone_class(train, dimension=6).eval()
    encoded = backbone.encode(train.rows)
    assert (encoded is not None) == backbone_class.sums_histories
    if encoded is not None:
        assert torch.equal(encoded, backbone().users)
        assert not encoded[ISOLATED_USER].any()


def test_repeated_pairs_weights_and_order_change_nothing(backbone_class, train):
    repeated = np.concatenate([np.arange(len(train))[::-1], np.arange(10)])
    again = train.select(repeated)
    first, second = backbone_class(train).eval()(), backbone_class(again).eval()()
    assert torch.equal(first.users, second.users)
    assert torch.equal(first.items, second.items)


def test_options_construct_the_same_backbone_again(backbone_class, train):
    backbone = backbone_class(train, dimension=5, initialization="normal:0.3", seed=3)
    again = backbone_class(train, seed=3, **backbone.options())
    assert again.options() == backbone.options()
    assert torch.equal(again.user_table, backbone.user_table)
    assert "dimension=5" in repr(backbone)


def test_search_space_names_options_with_allowed_values(backbone_class, train):
    for setting, values in backbone_class.search_space.items():
        section, option = setting.split(".")
        assert section == "backbone"
        for value in values:
            assert backbone_class(train, **{option: value}).options()[option] == value


def test_backbone_says_what_it_is(backbone_class):
    assert BACKBONES[backbone_class.name] is backbone_class
    assert backbone_class.__doc__
    assert backbone_class.reference


@pytest.mark.parametrize("dimension", [0, -1, 2.5, True])
def test_impossible_dimension_is_refused(backbone_class, train, dimension):
    with pytest.raises(ConfigError, match="`dimension` must be a whole number of at least 1"):
        backbone_class(train, dimension=dimension)


def test_unknown_initialization_lists_those_there_are(backbone_class, train):
    with pytest.raises(
        UnknownNameError, match=r"unknown initialization `zeros`.*normal:STD.*spectral"
    ):
        backbone_class(train, initialization="zeros")
