"""Item lists by user, in the form that kernels take."""

import numpy as np
import torch

from pslrec.data import Interactions, concatenate
from pslrec.kernels import Rows


def item_rows(*parts: Interactions) -> Rows:
    """The distinct items of each user in all the parts together, ascending."""
    whole = concatenate(parts)
    keys = np.unique(whole.pair_keys())
    users, items = np.divmod(keys, whole.n_items)
    offsets = np.zeros(whole.n_users + 1, dtype=np.int64)
    np.cumsum(np.bincount(users, minlength=whole.n_users), out=offsets[1:])
    return Rows(torch.from_numpy(offsets), torch.from_numpy(items.astype(np.int32)))
