"""What holds of the exchangeability check for any log."""

import json
import math
import os

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pslrec.data import Dataset, Interactions, check_exchangeability, exchangeability_record

few = settings(
    deadline=None, max_examples=int(os.environ.get("PSLREC_EXAMPLES", "25")), derandomize=True
)


@st.composite
def divided_logs(draw: st.DrawFn) -> Dataset:
    """Small logs of any density, divided by chance, time or user, with new users and items."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_users = draw(st.integers(1, 120))
    n_items = draw(st.integers(1, 40))
    cells = random.random((n_users, n_items)) < draw(st.floats(0.02, 1.0))
    cells[0, 0] = True
    users, items = np.nonzero(cells)
    log = Interactions.from_ids(users.tolist(), items.tolist())
    share = draw(st.floats(0.0, 1.0))
    by = draw(st.sampled_from(["chance", "user", "item"]))
    if by == "chance":
        in_test = random.random(len(log)) < share
    elif by == "user":
        in_test = log.users < share * log.n_users
    else:
        in_test = log.items < share * log.n_items
    in_validation = random.random(len(log)) < 0.2
    return Dataset(
        log.select(~in_test & ~in_validation),
        log.select(in_test),
        log.select(~in_test & in_validation),
    )


@few
@given(divided_logs())
def test_any_division_has_a_sentence_and_sound_numbers(dataset: Dataset) -> None:
    checks = check_exchangeability(dataset)
    expected = {name for name, part in dataset.parts().items() if len(part)} - {"train"}
    assert set(checks) == expected
    for name, check in checks.items():
        assert check.of_pairs == len(dataset.parts()[name])
        assert check.n_pairs <= check.of_pairs
        assert name in check.sentence()
        for measure in check.measures:
            assert 0 < measure.p <= measure.adjusted_p <= 1 or measure.p == 0
            values = (measure.held_out, measure.random, measure.effect, *measure.interval)
            assert all(math.isfinite(value) for value in values)
            if measure.is_share or measure.name == "affinity":
                assert 0 <= measure.held_out <= 1 + 1e-6
    # Numbers of numpy would not become JSON.
    json.dumps(exchangeability_record(checks), allow_nan=False)
