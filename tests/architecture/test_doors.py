"""A package is entered by its front door: its `__init__`, never a module behind it."""

import ast
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = REPOSITORY / "src"
PLACES = ("src", "benchmarks", "reproductions", "scripts", "examples")

# Benchmarks that exchange or time a part of the engine have to reach into it.
ALLOWED = {
    ("benchmarks/engine.py", "pslrec.kernels._adam"),
    ("benchmarks/engine.py", "pslrec.kernels._catalog"),
    ("benchmarks/evaluation.py", "pslrec.kernels._top_k"),
}


def is_package(name: str) -> bool:
    return (SOURCE / name.replace(".", "/") / "__init__.py").is_file()


def is_module(name: str) -> bool:
    return (SOURCE / f"{name.replace('.', '/')}.py").is_file()


def imported_modules(tree: ast.AST) -> list[str]:
    """Every module of ours that the code imports, whichever way it is spelled."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            # `from package import module` names a module as well.
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in inner if is_module(name)]
            found += modules or [node.module]
    return [name for name in found if name.startswith("pslrec.")]


def reaches_past(package: str, module: str) -> bool:
    """Whether code of `package` that imports `module` enters another package by anything but its door."""
    if is_package(module) or not is_module(module):
        return False
    door = module.rpartition(".")[0]
    if door == "pslrec":
        # Foundations are modules and have no door.
        return False
    return not (package == door or package.startswith(f"{door}."))


def files() -> list[Path]:
    return sorted(path for place in PLACES for path in (REPOSITORY / place).rglob("*.py"))


def package_of(path: Path) -> str:
    if SOURCE not in path.parents:
        return ""
    return ".".join(path.relative_to(SOURCE).parent.parts)


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("path", files(), ids=name_of)
def test_other_packages_are_entered_by_their_front_door(path: Path) -> None:
    modules = imported_modules(ast.parse(path.read_text(encoding="utf-8")))
    past = [module for module in modules if reaches_past(package_of(path), module)]
    surplus = [module for module in past if (name_of(path), module) not in ALLOWED]
    assert surplus == [], "import these names from the package, and let its `__init__` export them"


@pytest.mark.parametrize(
    "code",
    [
        "from pslrec.kernels._adam import AdamTable",
        "from pslrec.kernels import _adam",
        "import pslrec.kernels._adam",
        "from pslrec.losses.psl import PairwiseSoftmaxLoss",
        "from pslrec.data.splits._base import divide",
    ],
)
def test_the_check_sees_what_reaches_past_a_door(code: str) -> None:
    (module,) = imported_modules(ast.parse(code))
    assert reaches_past("pslrec.training", module)


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("pslrec.training", "from pslrec.kernels import AdamTable"),
        ("pslrec.training", "from pslrec.data.splits import divide"),
        ("pslrec.training", "from pslrec.errors import DataError"),
        ("pslrec.kernels", "from pslrec.kernels._adam import AdamTable"),
        ("pslrec.data.formats", "from pslrec.data._columns import Columns"),
    ],
)
def test_the_check_lets_pass_what_uses_the_door(package: str, code: str) -> None:
    (module,) = imported_modules(ast.parse(code))
    assert not reaches_past(package, module)
