"""A split chosen by its name, as in the configuration and on the command line."""

import inspect

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.data.splits._base import SPLITS
from pslrec.data.splits._validation import ValidationRule, carve_validation
from pslrec.errors import DataError


def split_by_name(
    interactions: Interactions,
    method: str = "iid",
    *,
    train_fraction: float | None = None,
    validation: ValidationRule = "none",
    seed: int = 0,
) -> Dataset:
    """Divide interactions by the split of this name, then carve out a validation part.

    Args:
        interactions: what to divide; repeated pairs are merged.
        method: name of the split.
        train_fraction: share that is kept for training; the default of the split if `None`.
        validation: name of the rule for the validation part.
        seed: same data and seed, same split.
    """
    split = SPLITS[method]
    if train_fraction is None:
        dataset = split(interactions, seed=seed)
    elif "train_fraction" in inspect.signature(split).parameters:
        options = {"train_fraction": train_fraction}
        dataset = split(interactions, seed=seed, **options)
    else:
        raise DataError(f"the split `{method}` has no `train_fraction`; leave it out")
    # Not with `seed`: the validation parts of the published splits have a seed of their own.
    return carve_validation(dataset, validation, split=method)
