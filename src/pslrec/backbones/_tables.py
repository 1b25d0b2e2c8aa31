"""The tables of a trained backbone as a run keeps them, checked before they are used."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from pslrec.errors import PslrecError

TABLES = ("users", "items", "user_table", "item_table")


def check_tables(tables: Mapping[str, Tensor], path: Path, *, error: type[PslrecError]) -> None:
    """Raise unless these are representations of users and items, and perhaps the tables behind them.

    Args:
        tables: by name.
        path: of the file that they are from, for messages.
        error: what is raised.
    """
    unknown = sorted(set(tables) - set(TABLES))
    if unknown or not {"users", "items"} <= set(tables):
        raise error(
            f"{path} must hold tables named {', '.join(TABLES)}, got {', '.join(sorted(tables))}"
        )
    for name, table in tables.items():
        is_table = table.ndim == 2 and table.dtype == torch.float32
        if not is_table or tables["items"].ndim != 2 or table.shape[1] != tables["items"].shape[1]:
            raise error(
                f"{path}: `{name}` must be a float32 table as wide as the others, got {table.dtype} of shape "
                f"{tuple(table.shape)}"
            )
        if not table.numel() or not bool(torch.isfinite(table).all()):
            raise error(f"{path}: `{name}` is empty or holds values that are no finite numbers")
    for name, side in (("user_table", "users"), ("item_table", "items")):
        if name in tables and len(tables[name]) != len(tables[side]):
            raise error(
                f"{path}: `{name}` has {len(tables[name])} rows, `{side}` has {len(tables[side])}"
            )
