"""`seen.safetensors`: the pairs of user and item rows that a run was given, by part."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from pslrec.artifacts._format import ArtifactError
from pslrec.data import Dataset
from pslrec.files import read_tensors

SEEN_FILE = "seen.safetensors"

# Rows of the users and, at the same places, of the items.
Pairs = tuple[Tensor, Tensor]
NO_PAIRS: Pairs = (torch.empty(0, dtype=torch.int32), torch.empty(0, dtype=torch.int32))


def seen_tensors(dataset: Dataset) -> dict[str, Tensor]:
    """The pairs of a data set that lists hide, by the names that the file has for them."""
    # Copied, as the columns of interactions are read-only and tensors cannot be.
    tensors = {
        "users": torch.from_numpy(dataset.train.users.copy()),
        "items": torch.from_numpy(dataset.train.items.copy()),
    }
    if dataset.validation is not None:
        tensors["validation_users"] = torch.from_numpy(dataset.validation.users.copy())
        tensors["validation_items"] = torch.from_numpy(dataset.validation.items.copy())
    if dataset.disliked is not None and len(dataset.disliked):
        tensors["disliked_users"] = torch.from_numpy(dataset.disliked.users.copy())
        tensors["disliked_items"] = torch.from_numpy(dataset.disliked.items.copy())
    return tensors


class Seen(NamedTuple):
    """The pairs of a run.

    Args:
        train: that it was trained on.
        validation: that its epoch was chosen by; empty where there are none.
        disliked: that were rated too low to be learnt from; empty where there are none.
    """

    train: Pairs
    validation: Pairs
    disliked: Pairs


def read_seen(path: Path, *, n_users: int, n_items: int) -> Seen:
    """Read the pairs of a run.

    Args:
        path: directory of the run.
        n_users: every user row must be below it.
        n_items: every item row must be below it.
    """
    file = path / SEEN_FILE
    tensors, _ = read_tensors(file, error=ArtifactError)
    sizes = (n_users, n_items)
    train = _pairs(tensors, "users", "items", sizes, file)
    others = []
    for part in ("validation", "disliked"):
        names = (f"{part}_users", f"{part}_items")
        # Early runs did not keep these, and others have none.
        for name, nothing in zip(names, NO_PAIRS, strict=True):
            tensors.setdefault(name, nothing)
        others.append(_pairs(tensors, *names, sizes, file))
    return Seen(train, *others)


def _pairs(
    tensors: Mapping[str, Tensor],
    user_name: str,
    item_name: str,
    sizes: tuple[int, int],
    file: Path,
) -> Pairs:
    users = _rows(tensors, user_name, sizes[0], file)
    items = _rows(tensors, item_name, sizes[1], file)
    if len(users) != len(items):
        raise ArtifactError(f"{file}: `{user_name}` and `{item_name}` must have the same length")
    return users, items


def _rows(tensors: Mapping[str, Tensor], name: str, n_rows: int, file: Path) -> Tensor:
    rows = tensors.get(name)
    if rows is None or rows.ndim != 1 or rows.dtype not in (torch.int32, torch.int64):
        raise ArtifactError(f"{file} must hold a list of row numbers `{name}`")
    # Everything that works with these pairs later trusts their row numbers.
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < n_rows:
        raise ArtifactError(f"{file}: `{name}` must be row numbers below {n_rows}")
    return rows
