import numpy as np
import torch

from pslrec.backbones._graph import Graph, normalized_matrix
from pslrec.data import Interactions, Vocabulary

PAIRS = [(0, 0), (0, 1), (1, 1), (1, 2), (3, 1)]  # user 2 and item 3 have none


def interactions(pairs: list[tuple[int, int]], n_users: int = 4, n_items: int = 4) -> Interactions:
    users, items = np.array(pairs).reshape(-1, 2).T
    return Interactions(
        users, items, Vocabulary(np.arange(n_users), "user"), Vocabulary(np.arange(n_items), "item")
    )


def naive_layer(pairs, users, items):
    """Each side becomes the sum of its neighbours over the square roots of both degrees."""
    edges = set(pairs)
    user_degree = {user: sum(edge[0] == user for edge in edges) for user in range(len(users))}
    item_degree = {item: sum(edge[1] == item for edge in edges) for item in range(len(items))}
    new_users, new_items = torch.zeros_like(users), torch.zeros_like(items)
    for user, item in edges:
        weight = 1 / (user_degree[user] ** 0.5 * item_degree[item] ** 0.5)
        new_users[user] += weight * items[item]
        new_items[item] += weight * users[user]
    return new_users, new_items


def test_propagation_equals_a_loop_over_edges():
    graph = Graph(interactions([*PAIRS, PAIRS[0], PAIRS[3]]))
    users, items = torch.randn(4, 5), torch.randn(4, 5)
    expected_users, expected_items = naive_layer(PAIRS, users, items)
    new_users, new_items = graph.propagate(users, items)
    torch.testing.assert_close(new_users, expected_users)
    torch.testing.assert_close(new_items, expected_items)
    plus_users, plus_items = graph.propagate(users, items, plus=(users, items))
    torch.testing.assert_close(plus_users, expected_users + users)
    torch.testing.assert_close(plus_items, expected_items + items)


def test_matrix_has_the_training_pairs_and_no_others():
    matrix = normalized_matrix(interactions([*PAIRS, PAIRS[2]]))
    users = torch.repeat_interleave(torch.arange(4), matrix.offsets.diff())
    assert sorted(zip(users.tolist(), matrix.columns.tolist(), strict=True)) == sorted(PAIRS)
    assert (matrix.n_rows, matrix.n_columns) == (4, 4)


def test_largest_singular_value_is_one():
    matrix = normalized_matrix(interactions(PAIRS))
    dense = torch.zeros(4, 4)
    dense[torch.repeat_interleave(torch.arange(4), matrix.offsets.diff()), matrix.columns] = (
        matrix.values
    )
    torch.testing.assert_close(torch.linalg.svdvals(dense)[0], torch.tensor(1.0))


def test_users_and_items_without_pairs_become_zero_and_pass_nothing_on():
    graph = Graph(interactions(PAIRS))
    users, items = torch.randn(4, 5, requires_grad=True), torch.randn(4, 5, requires_grad=True)
    new_users, new_items = graph.propagate(users, items)
    assert new_users[2].abs().sum() == 0
    assert new_items[3].abs().sum() == 0
    (new_users.sum() + new_items.sum()).backward()
    assert users.grad[2].abs().sum() == 0
    assert items.grad[3].abs().sum() == 0
    assert new_users.isfinite().all()


def test_graph_without_edges_is_zero_everywhere():
    new_users, new_items = Graph(interactions([])).propagate(torch.randn(4, 5), torch.randn(4, 5))
    assert new_users.abs().sum() == 0
    assert new_items.abs().sum() == 0


def test_graph_follows_its_module_to_another_precision_and_is_in_no_state_dict():
    graph = Graph(interactions(PAIRS)).double()
    users, items = torch.randn(4, 5, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)
    assert graph.propagate(users, items)[0].dtype == torch.float64
    assert not graph.state_dict()


def test_degrees_beyond_a_short_number_do_not_overflow():
    n_users = 50_000
    pairs = [(user, 0) for user in range(n_users)] + [(0, item) for item in range(1, n_users)]
    matrix = normalized_matrix(interactions(pairs, n_users=n_users, n_items=n_users))
    torch.testing.assert_close(matrix.values[0], torch.tensor(1 / n_users))
