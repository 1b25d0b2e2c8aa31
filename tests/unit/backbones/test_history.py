"""Users as sums over their histories, and a start that ranks as the one of MF."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from matrices import interactions_of
from pslrec.backbones import History, MatrixFactorization
from pslrec.data import Interactions
from pslrec.data._synthetic import planted_tastes
from pslrec.errors import ConfigError
from pslrec.rows import Rows


@pytest.fixture(scope="module")
def train() -> Interactions:
    return planted_tastes(90, 60, seed=3).interactions


def summed(table: torch.Tensor, items: list[int]) -> torch.Tensor:
    """The ten-line twin: row by row, then divided by the length."""
    total = torch.zeros(table.shape[1])
    for item in items:
        total = total + table[item]
    return total / total.norm()


def test_a_user_is_the_sum_over_the_history_of_length_one(train: Interactions) -> None:
    backbone = History(train, dimension=8, initialization="normal")
    representations = backbone()
    for user in (0, 17, 89):
        expected = summed(backbone.user_table, train.rows.list_of(user).tolist())
        torch.testing.assert_close(representations.users[user], expected)
    assert representations.items is backbone.item_table


def test_users_of_a_step_are_sums_over_what_is_visible(train: Interactions) -> None:
    backbone = History(train, dimension=8, initialization="normal")
    visible = Rows.from_lists([[user % 60, (user + 7) % 60] for user in range(90)])
    # With sampled negatives users come in any order and several times.
    users = torch.tensor([4, 2, 4, 89])
    found = backbone.users_of(backbone.step_tables(), users, visible)
    for row, user in enumerate(users.tolist()):
        expected = summed(backbone.user_table, visible.list_of(user).tolist())
        torch.testing.assert_close(found[row], expected)


def test_gradients_of_users_go_to_the_rows_of_their_visible_items_alone() -> None:
    train = interactions_of(np.array([[1, 1, 0, 1], [0, 1, 1, 0]]) > 0)
    backbone = History(train, dimension=3, initialization="normal")
    visible = Rows.from_lists([[0, 3], [2]])
    weights = torch.randn(1, 3)
    users = backbone.users_of(backbone.step_tables(), torch.tensor([0]), visible)
    (users * weights).sum().backward()
    found = backbone.user_table.grad
    again = backbone.user_table.detach().clone().requires_grad_()
    (summed(again, [0, 3]) * weights[0]).sum().backward()
    torch.testing.assert_close(found, again.grad)
    assert not found[[1, 2]].any()


def test_somebody_new_is_encoded_as_everybody_else_to_the_bit(train: Interactions) -> None:
    backbone = History(train, dimension=33)
    users = backbone().users
    for user in range(90):
        alone = backbone.encode(Rows.from_lists([train.rows.list_of(user)]))
        assert torch.equal(alone[0], users[user])


@pytest.mark.parametrize("popularity", [0.0, 0.3])
def test_an_empty_history_is_encoded_as_zeros(train: Interactions, popularity: float) -> None:
    backbone = History(train, dimension=4, popularity=popularity)
    assert not backbone.encode(Rows.from_lists([[], []])).any()


def test_users_share_a_part_of_their_vectors(train: Interactions) -> None:
    plain = History(train, dimension=8, initialization="normal")
    shared = History(train, dimension=8, initialization="normal", popularity=0.6)
    users = shared().users
    assert torch.equal(users[:, -1], torch.full((90,), -0.6))
    torch.testing.assert_close(users.norm(dim=1), torch.ones(90))
    for user in (0, 17, 89):
        tastes = summed(plain.user_table[:, :-1], train.rows.list_of(user).tolist())
        torch.testing.assert_close(users[user, :-1], 0.8 * tastes)


def test_the_shared_part_of_a_spectral_start_ranks_by_popularity(train: Interactions) -> None:
    backbone = History(train, dimension=16, initialization="spectral:2", popularity=0.3)
    shared = -functional.normalize(backbone.item_table.detach(), dim=1)[:, -1]
    counts = torch.from_numpy(np.bincount(train.items, minlength=60)).float()
    assert torch.corrcoef(torch.stack([shared, counts]))[0, 1] > 0.5


def test_the_shared_part_takes_no_gradient_and_the_rest_takes_its_own() -> None:
    train = interactions_of(np.array([[1, 1, 0, 1], [0, 1, 1, 0]]) > 0)
    backbone = History(train, dimension=4, initialization="normal", popularity=0.3)
    weights = torch.randn(1, 4)
    (backbone().users[:1] * weights).sum().backward()
    found = backbone.user_table.grad
    assert found is not None
    assert not found[:, -1].any()
    again = backbone.user_table.detach()[:, :-1].clone().requires_grad_()
    (summed(again, [0, 1, 3]) * weights[0, :-1] * (1 - 0.3**2) ** 0.5).sum().backward()
    torch.testing.assert_close(found[:, :-1], again.grad)


def test_a_single_column_has_no_room_for_a_shared_part(train: Interactions) -> None:
    assert History(train, dimension=1, popularity=0.3).popularity == 0.0


@pytest.mark.parametrize("popularity", [-0.1, 1.0, float("nan")])
def test_a_shared_part_leaves_room_for_taste(train: Interactions, popularity: float) -> None:
    with pytest.raises(ConfigError, match="`popularity` must be at least 0 and below 1, got"):
        History(train, popularity=popularity)


@pytest.mark.parametrize("dimension", [1, 2, 16, 48])
@pytest.mark.parametrize("method", ["spectral", "spectral:1", "spectral:2", "spectral:2.5"])
def test_a_spectral_start_scores_as_the_one_of_mf(
    train: Interactions, method: str, dimension: int
) -> None:
    cosines = []
    for kind in (MatrixFactorization, History):
        tables = kind(train, dimension=dimension, initialization=method, seed=5)()
        users = functional.normalize(tables.users, dim=1)
        items = functional.normalize(tables.items, dim=1)
        cosines.append(users @ items.T)
    torch.testing.assert_close(cosines[1], cosines[0], rtol=0, atol=5e-6)


def test_a_spectral_start_of_items_that_nobody_has_is_small_noise() -> None:
    pairs = np.random.default_rng(0).random((30, 20)) < 0.3
    pairs[:, 6] = False
    backbone = History(interactions_of(pairs), dimension=8)
    lengths = backbone.user_table.detach().norm(dim=1)
    assert 0 < lengths[6] < 0.1
    # The mean square length of the others is 1, as that of the ranked rows.
    others = lengths[torch.arange(20) != 6]
    assert float(others.square().mean()) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("predicts", ["all", "hidden"])
@pytest.mark.parametrize("visible", [0.0, -0.5, 2.0, float("nan")])
def test_a_share_that_shows_nothing_or_more_than_everything_is_refused(
    train: Interactions, visible: float, predicts: str
) -> None:
    with pytest.raises(ConfigError, match="`visible` must be above 0 and at most 1, got"):
        History(train, visible=visible, predicts=predicts)


def test_a_share_that_hides_nothing_is_refused_where_the_hidden_part_is_predicted(
    train: Interactions,
) -> None:
    message = "`visible` must be below 1 where `predicts` is hidden, as nothing is hidden"
    with pytest.raises(ConfigError, match=message):
        History(train, visible=1.0, predicts="hidden")
    assert History(train, visible=1.0, predicts="all").visible == 1.0


def test_what_is_predicted_is_all_or_the_hidden_part(train: Interactions) -> None:
    assert History(train).predicts == "all"
    with pytest.raises(ConfigError, match=r"`predicts` must be .*all.*hidden"):
        History(train, predicts="visible")


def test_the_tables_do_not_grow_with_the_users() -> None:
    few, many = (
        History(planted_tastes(n_users, 40, seed=1).interactions, dimension=8)
        for n_users in (50, 500)
    )
    assert [table.shape for table in few.parameters()] == [
        table.shape for table in many.parameters()
    ]
