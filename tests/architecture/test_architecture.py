"""What holds for the code as a whole: who imports whom, that public names and examples are right."""

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pslrec
from pslrec.errors import MissingExtraError

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = REPOSITORY / "src" / "pslrec"
FILES = sorted(SOURCE.rglob("*.py"))
MODULES = [
    "pslrec",
    *sorted(module.name for module in pkgutil.walk_packages(pslrec.__path__, "pslrec.")),
]
MODULES = [name for name in MODULES if not name.endswith(("._native", ".__main__"))]


def imported(name):
    try:
        return importlib.import_module(name)
    except MissingExtraError as error:
        pytest.skip(str(error))


def relative(path):
    return path.relative_to(REPOSITORY).as_posix()


def test_imports_point_down_the_way_of_the_data():
    pytest.importorskip("importlinter", reason="import-linter comes with pslrec[dev]")
    # In a process of its own: it configures logging, which would silence the loggers of all tests after it.
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_there_and_explained(name):
    module = imported(name)
    public = getattr(module, "__all__", [])
    assert len(public) == len(set(public))
    for public_name in public:
        part = getattr(module, public_name)
        if inspect.isclass(part) or inspect.isroutine(part):
            # What object or a parent class says about itself does not count.
            assert part.__doc__, f"{name}.{public_name} has no docstring"
            assert part.__doc__ != getattr(
                part.__mro__[1] if inspect.isclass(part) else None, "__doc__", None
            )


@pytest.mark.parametrize("name", MODULES)
def test_methods_of_public_classes_are_explained(name):
    module = imported(name)
    for class_name, part in inspect.getmembers(module, inspect.isclass):
        if part.__module__ != name or class_name.startswith("_"):
            continue
        for method_name, method in vars(part).items():
            # A function that is the default of a field is defined elsewhere.
            is_function = inspect.isfunction(method) and method.__qualname__.startswith(class_name)
            is_method = is_function or isinstance(method, property | classmethod | staticmethod)
            if is_method and not method_name.startswith("_"):
                assert inspect.getdoc(getattr(part, method_name)), (
                    f"{name}.{class_name}.{method_name} has no docstring"
                )


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.read_text(encoding="utf-8").strip()], ids=relative
)
def test_file_says_what_it_is_for(path):
    assert re.match(r'r?"""\S', path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name, tmp_path, monkeypatch):
    module = imported(name)
    monkeypatch.chdir(tmp_path)
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner(verbose=False)
    report = []
    for example in finder.find(module, name):
        if example.examples:
            runner.run(example, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
    assert list(tmp_path.iterdir()) == []


HEAVY = ("torch", "polars", "scipy", "numpy", "pandas", "pyarrow", "pydantic")


def test_command_line_starts_without_the_heavy_libraries():
    program = (
        f"import sys, pslrec.cli._main; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_losses_are_importable_with_torch_alone():
    program = "import sys, pslrec.losses; print(*[n for n in ('polars', 'scipy', 'pydantic', 'typer') if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


@pytest.fixture(scope="module")
def tracked():
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git repository")
    paths = [REPOSITORY / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file()]


# Written in pieces, so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/" + r"(?:work|home|root|Users|mnt)" + r"/[\w-]+/")


def test_tracked_files_name_no_path_of_a_particular_machine(tracked):
    found = []
    for path in tracked:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{relative(path)}: {match.group()}" for match in MACHINE_PATH.finditer(text)]
    assert found == []


def test_tracked_files_are_small_and_hold_nothing_that_is_built(tracked):
    too_large = [relative(path) for path in tracked if path.stat().st_size > 1_000_000]
    built = [
        relative(path) for path in tracked if path.suffix in {".so", ".pyc", ".whl", ".egg", ".o"}
    ]
    assert (too_large, built) == ([], [])


def test_only_the_command_line_prints():
    printing = [
        relative(path)
        for path in FILES
        if "cli" not in path.parts and re.search(r"^\s*print\(", path.read_text(), re.M)
    ]
    assert printing == []


def test_no_test_files_share_a_name():
    # They are collected without packages, by name alone.
    names = [path.name for path in (REPOSITORY / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_the_version_of_the_citation_is_that_of_the_package():
    # The package's own version is read from its `__init__` by the build.
    citation = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.M)[1] == pslrec.__version__
