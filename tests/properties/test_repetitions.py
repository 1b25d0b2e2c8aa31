"""A log that repeats pairs gives what the same log gives with each pair once, wherever it is divided."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pslrec import Recommender
from pslrec.config import RunConfig
from pslrec.data import Dataset, Interactions
from pslrec.data._preparation import distinct_pairs
from pslrec.data.splits import SPLITS, split_by_name
from pslrec.errors import DataError
from pslrec.experiment import run

few = settings(
    deadline=None, max_examples=int(os.environ.get("PSLREC_EXAMPLES", "15")), derandomize=True
)


@st.composite
def clicks(draw):
    """A log with times in which each pair comes once to five times."""
    pairs = draw(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=30, max_size=80))
    seed = draw(st.integers(0, 100))
    chance = np.random.default_rng(seed)
    users, items = np.array(sorted(pairs)).T
    times = chance.permutation(len(users)) * 10
    copies = chance.integers(1, 6, len(users))
    rows = np.repeat(np.arange(len(users)), copies)
    later = times[rows] + np.concatenate([np.arange(count) for count in copies])
    order = chance.permutation(len(rows))
    repeated = Interactions.from_ids(
        users[rows][order], items[rows][order], timestamps=later[order]
    )
    once = Interactions.from_ids(users, items, timestamps=times)
    return repeated, once


def rows_of(dataset):
    return {name: sorted(part.to_frame().rows()) for name, part in dataset.parts().items()}


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("validation", ["none", "paper", "fraction"])
@few
@given(logs=clicks())
def test_repetitions_change_no_split(name, validation, logs):
    repeated, once = logs
    try:
        expected = split_by_name(once, name, validation=validation)
    except DataError:
        with pytest.raises(DataError):
            split_by_name(repeated, name, validation=validation)
        return
    assert rows_of(split_by_name(repeated, name, validation=validation)) == rows_of(expected)


def click_log(seed=0, n_users=60, n_items=40):
    chance = np.random.default_rng(seed)
    pairs = np.array(
        [(u, i) for u in range(n_users) for i in chance.choice(n_items, 10, replace=False)]
    )
    copies = chance.integers(1, 8, len(pairs))
    rows = chance.permutation(np.repeat(np.arange(len(pairs)), copies))
    return Interactions.from_ids(*pairs[rows].T), Interactions.from_ids(*pairs.T)


QUICK = {
    "training.epochs": 2,
    "training.validate_every": 1,
    "backbone.dimension": 8,
    "loss.name": "psl-relu",
}


def metrics_of(path, **settings):
    found = run(RunConfig.from_settings({**QUICK, "data.source": str(path), **settings})).metrics
    return {name: found[name] for name in ("test", "validation", "evaluated")}


@pytest.mark.parametrize("split", ["iid", "popularity", "leave-one-out"])
def test_repetitions_change_no_number_of_a_run(tmp_path, split):
    for name, log in zip(("repeated", "once"), click_log(), strict=True):
        log.to_frame().write_csv(tmp_path / f"{name}.csv")
    settings = {"data.split": split}
    assert metrics_of(tmp_path / "repeated.csv", **settings) == metrics_of(
        tmp_path / "once.csv", **settings
    )


def test_repetitions_change_nothing_that_a_recommender_learns():
    repeated, once = click_log()
    options = {"epochs": 2, "dimension": 8}
    tables = [Recommender(**options).fit(log).recommend(k=5) for log in (repeated, once)]
    assert tables[0].equals(tables[1])


def test_repetitions_within_the_parts_of_a_data_set_are_merged(caplog):
    repeated, once = click_log()
    expected = split_by_name(once, "iid")
    parts = {}
    for name, part in expected.parts().items():
        rows = np.isin(repeated.pair_keys(), part.pair_keys())
        parts[name] = repeated.select(rows)
    options = {"epochs": 2, "dimension": 8}
    with caplog.at_level("INFO", logger="pslrec"):
        found = Recommender(**options).fit(Dataset(**parts)).recommend(k=5)
    assert found.equals(Recommender(**options).fit(expected).recommend(k=5))
    assert "different ones; repetitions are merged" in caplog.text


def test_weights_of_repeated_pairs_add_up_on_request():
    log = Interactions.from_ids([1, 1, 2], [5, 5, 5])
    assert distinct_pairs(log, "count").weights.tolist() == [2, 1]


def test_repetitions_are_told(caplog):
    repeated, once = click_log()
    with caplog.at_level("INFO", logger="pslrec"):
        split_by_name(repeated, "iid")
    assert f"{len(repeated):,} interactions are {len(once):,} different pairs" in caplog.text
