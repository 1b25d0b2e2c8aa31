"""Measurements of pslrec: one module per benchmark, each with a `DESCRIPTION` and a `run(...) -> dict`.

`python -m benchmarks` runs all of them, `python -m benchmarks NAME...` some. A module that has both names is found by
being here. A result is a dictionary that JSON can hold; its `rows`, a list of flat dictionaries, are printed as a table.
A module may also have `markdown(record)`, the text of its table in the documentation, and `plots(record)`, its pictures.
One that compares with settings of other libraries has `search(...)`, which chooses them and gives the file that keeps them.
"""

import importlib
import pkgutil
from types import ModuleType


def benchmarks() -> dict[str, ModuleType]:
    """The benchmarks of this package by name."""
    names = sorted(
        module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")
    )
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    return {
        name: module
        for name, module in modules.items()
        if hasattr(module, "run") and hasattr(module, "DESCRIPTION")
    }
