"""`pslrec losses` and `pslrec backbones`: what there is to choose from."""

import inspect
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pslrec.registry import constructor_parameters

if TYPE_CHECKING:
    from pslrec.registry import Registry


def losses_command() -> None:
    """List the losses with their settings."""
    from pslrec.losses import LOSSES, TopK, log_sum_losses

    _show(LOSSES, "loss", leave_out=())
    # Said once, as there is such a loss for every K.
    settings = _settings(TopK, leave_out=("loss", "k"))
    note = (
        f"\nNAME@K, such as sl@20, weighs each positive by how near it is to its user's top K. "
        f"NAME may be {', '.join(log_sum_losses())}. Settings beside those of NAME: {settings}"
    )
    Console().print(Text(note))


def backbones_command() -> None:
    """List the backbones with their settings."""
    from pslrec.backbones import BACKBONES

    # These two are filled in by the run; nobody sets them.
    _show(BACKBONES, "backbone", leave_out=("train", "seed"))


def _show(parts: "Registry[Any]", section: str, leave_out: tuple[str, ...]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column(section, no_wrap=True, style="bold")
    table.add_column("description")
    table.add_column(f"settings ({section}.NAME = default)")
    for name in parts:
        part = parts[name]
        settings = _settings(part, leave_out)
        # The first sentence may run over several lines of source code.
        summary = (inspect.getdoc(part) or "").partition("\n\n")[0]
        # As Text: formulas hold brackets, which rich would take for markup.
        table.add_row(name, Text(" ".join(summary.split())), Text(settings))
    Console().print(table)


def _settings(part: Any, leave_out: tuple[str, ...]) -> str:
    settings = []
    for parameter in constructor_parameters(part):
        if parameter.name not in leave_out:
            settings.append(f"{parameter.name} = {_shown(parameter.default)}")
    return ", ".join(settings)


def _shown(default: object) -> str:
    if default is None:
        return "(not set)"
    if isinstance(default, bool):
        # As it is written in TOML and after --set.
        return str(default).lower()
    return str(default)
