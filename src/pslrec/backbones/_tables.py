"""The tables of a trained backbone as a run keeps them, checked before they are used."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from pslrec.errors import PslrecError

TABLES = ("users", "items", "user_table", "item_table")


def check_tables(tables: Mapping[str, Tensor], path: Path, *, error: type[PslrecError]) -> None:
    """Raise unless these are the representations of users and items, with or without their tables.

    Args:
        tables: by name.
        path: of the file that they are from, for messages.
        error: raised with the name of the table that is wrong.
    """
    unknown = sorted(set(tables) - set(TABLES))
    if unknown or not {"users", "items"} <= set(tables):
        raise error(
            f"{path} must hold tables named {', '.join(TABLES)}, got {', '.join(sorted(tables))}"
        )
    items = tables["items"]
    for name, table in tables.items():
        is_table = table.ndim == 2 and table.dtype == torch.float32
        is_as_wide = is_table and items.ndim == 2 and table.shape[1] == items.shape[1]
        if not is_as_wide:
            raise error(
                f"{path}: `{name}` must be a float32 table as wide as the others, "
                f"got {table.dtype} of shape {tuple(table.shape)}"
            )
        if not table.numel() or not bool(torch.isfinite(table).all()):
            raise error(f"{path}: `{name}` is empty or holds values that are no finite numbers")
    # The tables of a lookup are its representations, so that a run need not keep them twice. Where
    # users are sums over histories, their table has a row per item.
    sides = {"user_table": ("users", "items"), "item_table": ("items",)}
    for name, allowed in sides.items():
        if name not in tables:
            continue
        n_rows = {len(tables[side]) for side in allowed}
        if len(tables[name]) not in n_rows:
            counts = " and ".join(f"`{side}` has {len(tables[side])}" for side in allowed)
            raise error(f"{path}: `{name}` has {len(tables[name])} rows, {counts}")
