"""No split: everything is for training, for a model that is to be used and not to be evaluated."""

import numpy as np

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.data.splits._base import SPLITS, each_pair_once


@SPLITS.register("none")
def no_split(interactions: Interactions, *, seed: int = 0) -> Dataset:  # noqa: ARG001
    """Hold nothing out; the test part is empty.

    >>> log = Interactions.from_ids([1, 1, 2], [10, 11, 10])
    >>> dataset = no_split(log)
    >>> len(dataset.train), len(dataset.test)
    (3, 0)
    """
    everything = each_pair_once(interactions)
    nothing = everything.select(np.zeros(0, dtype=np.int64))
    return Dataset(everything, nothing)
