"""A split chosen by name, as configuration and the command line do."""

import inspect
from typing import Literal, get_args

from pslrec.data.dataset import Dataset
from pslrec.data.interactions import Interactions
from pslrec.data.splits.base import SPLITS
from pslrec.data.splits.validation import fraction_validation, paper_validation
from pslrec.errors import DataError

ValidationRule = Literal["none", "paper", "fraction"]


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
    return carve_validation(split(interactions, seed=seed, **options), validation)


def carve_validation(dataset: Dataset, rule: ValidationRule, *, seed: int = 2024) -> Dataset:
    """The data set with a validation part by the rule of this name; one that is there already stays."""
    if rule not in get_args(ValidationRule):
        raise DataError(f"`validation` must be one of {', '.join(get_args(ValidationRule))}, got `{rule}`")
    if rule == "none" or dataset.validation is not None:
        return dataset
    return (paper_validation if rule == "paper" else fraction_validation)(dataset, seed=seed)
