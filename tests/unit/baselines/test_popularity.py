import numpy as np

from pslrec.baselines import Popularity
from pslrec.data import Interactions


def test_popularity_counts_users_not_interactions() -> None:
    log = Interactions.from_ids(["a", "a", "a", "b", "c"], ["tea", "tea", "tea", "milk", "milk"])
    assert Popularity().fit(log).score(np.array([1])).tolist() == [[2.0, 1.0]]
