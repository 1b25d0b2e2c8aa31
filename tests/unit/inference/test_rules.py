"""Rules about what may be recommended: compared with a loop that somebody would write by hand."""

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pslrec.data import Vocabulary
from pslrec.data.items import ItemTable
from pslrec.errors import ConfigError, UnknownNameError
from pslrec.inference import RowRules, Rules, TrainedModel, top_items
from pslrec.inference._limits import CategoryLimit
from pslrec.rows import Rows

ITEMS = Vocabulary([10, 20, 30, 40], kind="item")
USERS = Vocabulary(["ann", "bob"], kind="user")
TABLE = ItemTable.read(
    pl.DataFrame({"item": [10, 20, 30, 40], "name": list("abcd"), "genre": ["x", "x", "y", None]}),
    ITEMS,
)


def forbidden(rules: Rules) -> list[int]:
    mask = rules.in_rows(ITEMS, TABLE).forbidden
    if mask is None:
        return []
    return [ITEMS.ids([row])[0] for row in mask.nonzero().flatten().tolist()]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Rules(), []),
        (Rules(items=[10, "30"]), [20, 40]),
        (Rules(items=[]), [10, 20, 30, 40]),
        (Rules(exclude=["20"]), [20]),
        (Rules(items=[10, 20], exclude=[20]), [20, 30, 40]),
        (Rules(where='genre == "x"'), [30, 40]),
        (Rules(where='genre == "x"', exclude=[10]), [10, 30, 40]),
        (Rules(exclude=[10, 99], skip_unknown=True), [10]),
    ],
)
def test_lists_and_conditions_forbid_items(rules: Rules, expected: list[int]) -> None:
    assert forbidden(rules) == expected


@pytest.mark.parametrize(
    "rules", [Rules(items=[99]), Rules(exclude=["99"]), Rules(exclude=[10, "abc"])]
)
def test_unknown_items_are_refused(rules: Rules) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown item `\w+`; .* skip unknown ids"):
        rules.in_rows(ITEMS)


def test_exclusions_by_user_find_users_given_as_text() -> None:
    users = Vocabulary([1, 2], kind="user")
    rules = Rules(exclude_by_user={"2": [30, "10"]}).by_row(users)
    hidden = rules.hidden_from([0, 1], ITEMS)
    assert hidden is not None
    assert [hidden.list_of(row).tolist() for row in (0, 1)] == [[], [0, 2]]
    assert Rules().hidden_from([0], ITEMS) is None
    with pytest.raises(UnknownNameError, match="unknown user `3`"):
        Rules(exclude_by_user={"3": [10]}).by_row(users)
    assert Rules(exclude_by_user={"3": [10]}, skip_unknown=True).by_row(users).exclude_by_user == {}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (Rules(where="genre == 'x'"), "`where` needs a table of items"),
        (Rules(at_most={"genre": 1}), "`at_most` needs a table of items"),
    ],
)
def test_a_table_is_asked_for_where_there_is_none(rules: Rules, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rules.in_rows(ITEMS)


@pytest.mark.parametrize("most", [0, -1, 1.5, "2", True])
def test_limits_must_be_whole_numbers(most: object) -> None:
    with pytest.raises(ConfigError, match="`at_most` must be a whole number"):
        Rules(at_most={"genre": most}).in_rows(ITEMS, TABLE)  # type: ignore[dict-item]


def by_hand(
    scores: np.ndarray, k: int, is_forbidden: np.ndarray, limits: list[CategoryLimit]
) -> list[int]:
    """Goes down the ranking and takes what no rule forbids."""
    taken: list[int] = []
    for item in np.argsort(-scores, kind="stable"):
        if len(taken) == k or is_forbidden[item]:
            continue
        is_allowed = True
        for limit in limits:
            same = [other for other in taken if limit.categories[other] == limit.categories[item]]
            if limit.categories[item] >= 0 and len(same) >= limit.most:
                is_allowed = False
        if is_allowed:
            taken.append(int(item))
    return taken


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_users=st.sampled_from([1, 7, 400]),
    n_items=st.integers(1, 60),
    k=st.integers(1, 70),
    share=st.sampled_from([0.0, 0.3, 0.9, 1.0]),
    most=st.lists(st.integers(1, 4), max_size=2),
    budget=st.sampled_from([1, 4000, 10**9]),
)
def test_lists_are_those_of_a_loop_over_the_ranking(
    seed: int, n_users: int, n_items: int, k: int, share: float, most: list[int], budget: int
) -> None:
    random = np.random.default_rng(seed)
    # Coarse values, so that there are many ties.
    users = torch.from_numpy(random.integers(-2, 3, (n_users, 3)).astype(np.float32))
    items = torch.from_numpy(random.integers(-2, 3, (n_items, 3)).astype(np.float32))
    is_forbidden = random.random(n_items) < share
    limits = [CategoryLimit(random.integers(-1, 4, n_items), each) for each in most]
    own = [np.flatnonzero(random.random(n_items) < 0.2) for _ in range(n_users)]
    rules = RowRules(torch.from_numpy(is_forbidden), Rows.from_lists(own), tuple(limits))
    top = top_items(users, items, k, rules=rules, memory_budget=budget)
    scores = (users @ items.T).numpy()
    for row in range(n_users):
        mask = is_forbidden.copy()
        mask[own[row]] = True
        expected = by_hand(scores[row], k, mask, limits)
        found = [item for item in top.items[row].tolist() if item >= 0]
        assert found == expected
        assert top.scores[row, : len(found)].tolist() == scores[row, found].tolist()


def test_a_few_allowed_items_are_scored_alone_and_many_are_masked() -> None:
    mask = torch.ones(1000, dtype=torch.bool)
    mask[[3, 7]] = False
    assert RowRules(mask).few_allowed(100).tolist() == [3, 7]
    assert RowRules(mask).few_allowed(1) is None
    assert RowRules(~mask).few_allowed(1) is None
    assert RowRules(~mask).few_allowed(10**6) is not None
    assert RowRules().few_allowed(1) is None


@pytest.mark.parametrize("backbone", ["mf", "lightgcn", "history"])
def test_rules_hold_for_known_and_new_users_and_similar_items(make_run, backbone: str) -> None:
    model = TrainedModel(make_run(backbone=backbone))
    frame = pl.DataFrame(
        {"item": range(100, 108), "name": list("abcdefgh"), "parity": list("eo") * 4}
    )
    table = ItemTable.read(frame, model.items)
    rules = Rules(where='parity == "o"', exclude=[101]).in_rows(model.items, table)
    allowed = {3, 5, 7}
    for top in (
        model.recommend(torch.arange(6), 8, exclude_seen=False, rules=rules),
        model.recommend_for([torch.tensor([0, 1])], 8, exclude_seen=False, rules=rules),
        model.similar_items(torch.tensor([0]), 8, rules=rules),
    ):
        for row in top.items.tolist():
            assert {item for item in row if item >= 0} == allowed
    limit = Rules(at_most={"parity": 1}).in_rows(model.items, table)
    top = model.recommend(torch.arange(6), 8, exclude_seen=False, rules=limit)
    plain = model.recommend(torch.arange(6), 8, exclude_seen=False)
    for row, ranking in zip(top.items.tolist(), plain.items.tolist(), strict=True):
        kept = [item for item in row if item >= 0]
        assert kept[0] == ranking[0]
        assert sorted(item % 2 for item in kept) == [0, 1]


@pytest.mark.parametrize("backbone", ["mf", "lightgcn", "history"])
def test_reasons_are_the_nearest_items_of_the_history(make_run, backbone: str) -> None:
    model = TrainedModel(make_run(backbone=backbone))
    vectors = torch.nn.functional.normalize(model.item_vectors, dim=1)
    (found, own) = model.reasons([0, 4], [4, 2, 1], 2)
    cosines = {item: float(vectors[0] @ vectors[item]) for item in (4, 2, 1)}
    best = sorted(cosines, key=lambda item: -cosines[item])[:2]
    assert [reason.item for reason in found] == best
    assert [reason.similarity for reason in found] == pytest.approx([cosines[i] for i in best])
    assert {reason.item for reason in own} == {2, 1}
    assert model.reasons([0], [], 3) == [[]]
    assert model.reasons([], [1], 3) == []
    assert model.reasons([4], [4], 3) == [[]]
