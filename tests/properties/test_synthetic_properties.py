import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pslrec.data._synthetic import TasteModel, checkerboard, planted_tastes

models = st.builds(
    TasteModel,
    n_topics=st.integers(1, 40),
    focus=st.floats(0.01, 1000),
    popularity_exponent=st.floats(0, 10),
    median_history=st.floats(1, 100),
    history_spread=st.floats(0, 5),
    minimum_history=st.integers(1, 5),
    noise=st.floats(0, 1),
    drift=st.floats(0, 1),
)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(10, 40), models, st.integers(0, 2**32))
def test_planted_tastes_keep_their_promises_for_any_model(n_users, n_items, model, seed):
    planted = planted_tastes(
        n_users, n_items, model=model, with_ratings=True, with_timestamps=True, seed=seed
    )
    log = planted.interactions
    assert (log.n_users, log.n_items) == (n_users, n_items)
    assert (np.diff(log.pair_keys()) > 0).all()
    assert log.user_counts().min() >= model.minimum_history
    assert log.user_counts().max() <= n_items // 2
    assert set(np.unique(log.ratings)) <= {1, 2, 3, 4, 5}
    assert np.allclose(planted.preferences().sum(axis=1), 1)
    again = planted_tastes(
        n_users, n_items, model=model, with_ratings=True, with_timestamps=True, seed=seed
    )
    assert np.array_equal(log.pair_keys(), again.interactions.pair_keys())
    assert np.array_equal(log.ratings, again.interactions.ratings)
    assert np.array_equal(log.timestamps, again.interactions.timestamps)


@given(st.integers(4, 30), st.integers(4, 30))
def test_checkerboard_leaves_each_user_one_answer_that_was_trained_on(n_users, n_items):
    board = checkerboard(n_users, n_items)
    train, test = board.train.matrix().toarray(), board.test.matrix().toarray()
    parity = (np.arange(n_users)[:, None] + np.arange(n_items) + 1) % 2
    assert np.array_equal(train + test, parity)
    assert (test.sum(axis=1) == 1).all()
    assert (train.sum(axis=0) >= 1).all()
    assert (train.sum(axis=1) >= 1).all()
