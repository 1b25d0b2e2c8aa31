"""Walks: probabilities counted by hand, and added to the right scores."""

from pathlib import Path

import numpy as np
import pytest
import torch

from pslrec.artifacts import ArtifactError, Model, WalkingScorer, Walks, _walks
from pslrec.artifacts._walks import WALKS_FILE
from pslrec.baselines import SLIM, CommonUsers
from pslrec.data import Interactions
from pslrec.data._synthetic import planted_tastes
from pslrec.data.splits import iid_split
from pslrec.evaluation import (
    AddingScorer,
    EmbeddingScorer,
    VectorScorer,
    _full_ranking,
    evaluate,
)
from pslrec.files import write_tensors
from pslrec.rows import Rows

N_USERS, N_ITEMS = 30, 20


@pytest.fixture(scope="module")
def log() -> Interactions:
    return planted_tastes(N_USERS, N_ITEMS).interactions


@pytest.fixture(scope="module")
def walks(log: Interactions) -> Walks:
    return Walks.fit(
        log, weight=8.0, neighbours=6, transition_exponent=0.7, popularity_exponent=0.3
    )


def probabilities_by_hand(log: Interactions, history: list[int]) -> np.ndarray:
    """One item, one common user and one neighbour after the other."""
    people = [set(log.items[log.users == user].tolist()) for user in range(log.n_users)]
    owners = [sum(item in own for own in people) for item in range(log.n_items)]
    total = np.zeros(log.n_items)
    for start in history:
        weights = np.zeros(log.n_items)
        for own in people:
            if start not in own:
                continue
            for end in own - {start}:
                step = owners[start] ** -0.7 * len(own) ** -0.7
                weights[end] += step / owners[end] ** 0.3
        # Of equal ones the lower row is kept, so small differences are rounded away.
        order = sorted(range(log.n_items), key=lambda item: (-round(weights[item], 6), item))
        kept = np.zeros(log.n_items)
        kept[order[:6]] = weights[order[:6]]
        if kept.sum() > 0:
            total += kept / kept.sum()
    return total / total.sum()


@pytest.mark.parametrize("user", [0, 7, 29])
def test_probabilities_are_those_counted_by_hand(
    log: Interactions, walks: Walks, user: int
) -> None:
    history = log.rows.list_of(user).tolist()
    scores = torch.zeros(1, N_ITEMS)
    walks.add_to(scores, Rows.from_lists([history]))
    expected = 8.0 * probabilities_by_hand(log, history)
    np.testing.assert_allclose(scores[0].numpy(), expected, rtol=1e-4, atol=1e-5)


def test_what_is_added_sums_up_to_the_weight(log: Interactions, walks: Walks) -> None:
    scores = torch.zeros(N_USERS, N_ITEMS)
    walks.add_to(scores, log.rows)
    torch.testing.assert_close(scores.sum(dim=1), torch.full((N_USERS,), 8.0))


def test_a_user_gets_the_same_alone_and_among_others(log: Interactions, walks: Walks) -> None:
    together = torch.zeros(N_USERS, N_ITEMS)
    walks.add_to(together, log.rows)
    for user in (3, 0):
        alone = torch.zeros(1, N_ITEMS)
        walks.add_to(alone, log.rows.select(np.array([user])))
        assert torch.equal(alone[0], together[user])


def test_an_empty_history_and_unknown_neighbours_add_nothing() -> None:
    log = Interactions.from_ids(["ann", "bob"], ["tea", "milk"])
    walks = Walks.fit(
        log, weight=8.0, neighbours=5, transition_exponent=1.0, popularity_exponent=0.0
    )
    scores = torch.ones(2, 2)
    walks.add_to(scores, Rows.from_lists([[], [0]]))
    assert torch.equal(scores, torch.ones(2, 2))


def test_chosen_columns_get_what_they_get_among_all(log: Interactions, walks: Walks) -> None:
    everything = torch.zeros(N_USERS, N_ITEMS)
    walks.add_to(everything, log.rows)
    chosen = np.array([17, 2, 5])
    part = torch.zeros(N_USERS, 3)
    walks.add_to(part, log.rows, chosen=chosen)
    assert torch.equal(part, everything[:, chosen])


def test_a_new_item_gets_what_its_parent_gets_and_takes_it_from_nobody(
    log: Interactions, walks: Walks
) -> None:
    everything = torch.zeros(N_USERS, N_ITEMS)
    walks.add_to(everything, log.rows)
    extended = walks.of_items(np.array([*range(N_ITEMS), 4]))
    scores = torch.zeros(N_USERS, N_ITEMS + 1)
    extended.add_to(scores, log.rows)
    assert torch.equal(scores[:, :-1], everything)
    assert torch.equal(scores[:, -1], everything[:, 4])
    some = torch.zeros(N_USERS, 2)
    extended.add_to(some, log.rows, chosen=np.array([N_ITEMS, 3]))
    assert torch.equal(some, everything[:, [4, 3]])
    pairs = extended.of_pairs(log.rows, np.arange(N_USERS), np.full(N_USERS, N_ITEMS))
    assert torch.equal(pairs, everything[:, 4])


def test_pairs_in_pieces_get_what_lists_get(
    log: Interactions, walks: Walks, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = torch.zeros(N_USERS, N_ITEMS)
    walks.add_to(at_once, log.rows)
    monkeypatch.setattr(_walks, "BYTES_AT_ONCE", 500)
    owners = np.repeat(np.arange(N_USERS), N_ITEMS)[::-1].copy()
    items = np.tile(np.arange(N_ITEMS), N_USERS)[::-1].copy()
    pairs = walks.of_pairs(log.rows, owners, items)
    assert torch.equal(pairs.flip(0).view(N_USERS, N_ITEMS), at_once)


def test_a_run_with_walks_is_not_read_without_them(walks: Walks, tmp_path: Path) -> None:
    (tmp_path / "format").write_text("2\n")
    with pytest.raises(ArtifactError, match=r"has walks, and walks.safetensors is missing"):
        Walks.read(tmp_path, n_items=N_ITEMS)
    walks.write(tmp_path)
    assert Walks.read(tmp_path, n_items=N_ITEMS) is not None


def test_walks_come_back_from_their_file(log: Interactions, walks: Walks, tmp_path: Path) -> None:
    (tmp_path / "format").write_text("1\n")
    assert Walks.read(tmp_path, n_items=N_ITEMS) is None
    walks.write(tmp_path)
    again = Walks.read(tmp_path, n_items=N_ITEMS)
    assert again is not None
    before, after = torch.zeros(N_USERS, N_ITEMS), torch.zeros(N_USERS, N_ITEMS)
    walks.add_to(before, log.rows)
    again.add_to(after, log.rows)
    assert torch.equal(before, after)


@pytest.fixture(scope="module")
def with_regression(log: Interactions, walks: Walks) -> Walks:
    return walks.beside(CommonUsers(log).weights(l1=0.5, l2=5.0), 3.0)


def test_a_regression_adds_the_mean_of_what_the_history_says(
    log: Interactions, walks: Walks, with_regression: Walks
) -> None:
    expected = torch.zeros(N_USERS, N_ITEMS)
    walks.add_to(expected, log.rows)
    slim = SLIM(l1=0.5, l2=5.0, neighbours=N_ITEMS).fit(log)
    lengths = torch.from_numpy(log.user_counts()).to(torch.float32)
    expected += 3.0 * slim.score(np.arange(N_USERS)) / lengths[:, None]
    scores = torch.zeros(N_USERS, N_ITEMS)
    with_regression.add_to(scores, log.rows)
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-5)


def test_a_regression_alone_needs_no_walks(log: Interactions, walks: Walks) -> None:
    matrix = CommonUsers(log).weights(l1=0.5, l2=5.0)
    alone = Walks(walks.matrix, 0.0).beside(matrix, 2.0)
    assert (alone.matrix != 2.0 * matrix).nnz == 0


def test_a_regression_comes_back_from_its_file(
    log: Interactions, with_regression: Walks, tmp_path: Path
) -> None:
    with_regression.write(tmp_path)
    again = Walks.read(tmp_path, n_items=N_ITEMS)
    assert again is not None
    assert again.has_regression
    before, after = torch.zeros(N_USERS, N_ITEMS), torch.zeros(N_USERS, N_ITEMS)
    with_regression.add_to(before, log.rows)
    again.add_to(after, log.rows)
    assert torch.equal(before, after)


def test_a_file_from_before_there_were_regressions_is_read(walks: Walks, tmp_path: Path) -> None:
    tensors = {
        "offsets": torch.from_numpy(walks.matrix.indptr.astype(np.int64)),
        "items": torch.from_numpy(walks.matrix.indices.astype(np.int32)),
        "probabilities": torch.from_numpy(walks.matrix.data),
    }
    write_tensors(tmp_path / WALKS_FILE, tensors, {"weight": "8.0"})
    again = Walks.read(tmp_path, n_items=N_ITEMS)
    assert again is not None
    assert not again.has_regression


DAMAGES = {
    "a regression that is no number": (
        {"probabilities": torch.tensor([-0.5, torch.inf])},
        {"kind": "walks and a regression"},
    ),
    "items beyond the catalogue": ({"items": torch.tensor([0, 99], dtype=torch.int32)}, {}),
    "probabilities that are no numbers": ({"probabilities": torch.tensor([0.5, torch.nan])}, {}),
    "negative probabilities": ({"probabilities": torch.tensor([0.5, -0.5])}, {}),
    "too few offsets": ({"offsets": torch.tensor([0, 2])}, {}),
    "shares that are more than the whole": ({"probabilities": torch.tensor([1.0, 2.0])}, {}),
    "a weight of 0": ({}, {"weight": "0"}),
    "a weight that is a word": ({}, {"weight": "much"}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_explained(damage: str, tmp_path: Path) -> None:
    tensors = {
        "offsets": torch.tensor([0, 1, 2]),
        "items": torch.tensor([1, 0], dtype=torch.int32),
        "probabilities": torch.tensor([1.0, 1.0]),
    }
    changed, metadata = DAMAGES[damage]
    write_tensors(tmp_path / WALKS_FILE, {**tensors, **changed}, {"weight": "8.0", **metadata})
    with pytest.raises(ArtifactError, match=rf"{WALKS_FILE} must hold"):
        Walks.read(tmp_path, n_items=2)


def test_the_scorer_adds_walks_and_is_not_taken_for_vectors(
    log: Interactions, walks: Walks
) -> None:
    generator = torch.Generator().manual_seed(0)
    tables = {
        "users": torch.randn(N_USERS, 4, generator=generator),
        "items": torch.randn(N_ITEMS, 4, generator=generator),
    }
    model = Model(tables, "half-cosine", walks, log.rows)
    scorer = model.scorer()
    assert isinstance(scorer, WalkingScorer)
    assert not isinstance(scorer, VectorScorer)
    users = np.array([9, 2])
    expected = model.vector_scorer().score(users)
    walks.add_to(expected, log.rows.select(users))
    assert torch.equal(scorer.score(users), expected)
    with pytest.raises(ValueError, match="`histories` must be given"):
        Model(tables, "half-cosine", walks).scorer()


def test_evaluation_in_blocks_finds_what_whole_scores_say(
    walks: Walks, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = iid_split(planted_tastes(N_USERS, N_ITEMS).interactions)
    generator = torch.Generator().manual_seed(0)
    vectors = EmbeddingScorer(
        torch.randn(N_USERS, 4, generator=generator), torch.randn(N_ITEMS, 4, generator=generator)
    )
    scorer = WalkingScorer(vectors, walks, dataset.train.rows)

    class Whole:
        n_users, n_items = N_USERS, N_ITEMS
        score = scorer.score

    assert isinstance(scorer, AddingScorer)
    assert not isinstance(Whole(), AddingScorer)
    # Blocks in a buffer that is used again, the last one smaller.
    monkeypatch.setattr(_full_ranking, "users_at_once", lambda *_, **__: 7)
    found = evaluate(scorer, dataset, k=[3])
    expected = evaluate(Whole(), dataset, k=[3])
    assert found.metrics == expected.metrics
