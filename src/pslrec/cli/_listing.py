"""`pslrec losses` and `pslrec backbones`: what there is to choose from."""

import inspect
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pslrec.registry import constructor_parameters


def losses_command() -> None:
    """List the losses, each with its parameters."""
    from pslrec.losses import LOSSES

    _show({name: LOSSES[name] for name in LOSSES}, "loss", leave_out=())


def backbones_command() -> None:
    """List the backbones, each with its parameters."""
    from pslrec.backbones import BACKBONES

    _show({name: BACKBONES[name] for name in BACKBONES}, "backbone", leave_out=("train", "seed"))


def _show(parts: dict[str, Any], section: str, leave_out: tuple[str, ...]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column(section, no_wrap=True, style="bold")
    table.add_column("what it is")
    table.add_column(f"settings ({section}.NAME = default)")
    for name, part in parts.items():
        parameters = [p for p in constructor_parameters(part) if p.name not in leave_out]
        # The first sentence may run over several lines, and may hold brackets that are no markup.
        summary = " ".join((inspect.getdoc(part) or "").partition("\n\n")[0].split())
        table.add_row(
            name,
            Text(summary),
            Text(", ".join(f"{p.name} = {_shown(p.default)}" for p in parameters)),
        )
    Console().print(table)


def _shown(default: object) -> str:
    if default is None:
        return "(not set)"
    return str(default).lower() if isinstance(default, bool) else str(default)
