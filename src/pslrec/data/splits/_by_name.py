"""A split chosen by name, as configuration and the command line do."""

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
    """Divide interactions by the split of this name, then carve out validation by the rule of this name."""
    split = SPLITS[method]
    options = {} if train_fraction is None else {"train_fraction": train_fraction}
    unknown = options.keys() - inspect.signature(split).parameters.keys()
    if unknown:
        raise DataError(f"the split `{method}` has no `train_fraction`; leave it out")
    return carve_validation(split(interactions, seed=seed, **options), validation, split=method)
