"""One interaction of each user for testing: the latest where times are known, else any."""

import numpy as np

from pslrec.data.dataset import Dataset
from pslrec.data.interactions import Interactions
from pslrec.data.splits.base import SPLITS, divide, user_slices
from pslrec.seeding import generator


@SPLITS.register("leave-one-out")
def leave_one_out_split(interactions: Interactions, *, seed: int = 0) -> Dataset:
    """Test on the latest interaction of each user that has at least two; without times on a random one.

    >>> log = Interactions.from_ids([1, 1, 2, 2], ["a", "b", "a", "b"], timestamps=[10, 20, 40, 30])
    >>> leave_one_out_split(log).test.to_frame().rows()
    [(1, 'b', 20), (2, 'a', 40)]
    """
    ordered = interactions.sorted()
    order = generator(seed, "leave one out").permutation(len(ordered))
    times = np.zeros(len(ordered)) if ordered.timestamps is None else ordered.timestamps
    ordered = ordered.select(np.lexsort((order, times, ordered.users)))
    in_test = np.zeros(len(ordered), dtype=bool)
    in_test[[end - 1 for start, end in user_slices(ordered) if end - start > 1]] = True
    return divide(ordered, in_test)
