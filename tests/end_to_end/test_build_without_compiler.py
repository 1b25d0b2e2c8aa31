"""A machine without a C++ compiler still gets the whole package; only the compiled kernels are left out."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[2]
# What a build needs beside Python; compilers are not among them.
TOOLS = ("cmake", "ninja", "make", "sh", "uname", "git")

LOOK_AROUND = """
import sys
wheel = sys.argv[1]
# An editable installation puts its own finder first.
sys.meta_path[:] = [finder for finder in sys.meta_path if "Redirect" not in type(finder).__name__]
sys.path.insert(0, wheel)
import pslrec
assert pslrec.__file__.startswith(wheel), pslrec.__file__
from pslrec import kernels
print(kernels.IS_COMPILED, kernels.instruction_set(), kernels.openmp_threads() >= 1, bool(kernels.WHY_NOT_COMPILED))
from pslrec.cli._main import app
app(["doctor"])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The unpacked wheel of a build during which no compiler can be found."""
    temporary = tmp_path_factory.mktemp("build")
    source, tools = temporary / "source", temporary / "tools"
    shutil.copytree(
        REPOSITORY / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.so")
    )
    shutil.copytree(REPOSITORY / "native", source / "native")
    for name in ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source / name)
    tools.mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    environment = {
        **os.environ,
        "PATH": str(tools),
        "CC": str(tools / "no-cc"),
        "CXX": str(tools / "no-cxx"),
    }
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--disable-pip-version-check",
        "-w",
        temporary,
        source,
    ]
    done = subprocess.run(
        command, env=environment, cwd=temporary, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = temporary.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(temporary / "wheel")
    return temporary / "wheel"


def test_wheel_has_everything_but_the_compiled_module(wheel):
    packed = {path.relative_to(wheel).as_posix() for path in wheel.rglob("*") if path.is_file()}
    # `kernels/_native.py` is the one that looks for it.
    assert not any(name.startswith("pslrec/_native") for name in packed)
    assert not any(name.endswith((".so", ".pyd", ".dylib")) for name in packed)
    sources = {
        path.relative_to(REPOSITORY / "src").as_posix()
        for path in (REPOSITORY / "src" / "pslrec").rglob("*.py")
    }
    assert sources <= packed
    assert "pslrec/py.typed" in packed
    assert "pslrec/data/embedded/debian-bookworm-main.txt.xz" in packed


def test_package_works_and_says_what_it_does_without(wheel):
    command = [sys.executable, "-c", LOOK_AROUND, str(wheel)]
    done = subprocess.run(
        command,
        cwd=wheel,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "500"},
    )
    assert done.returncode == 0, done.stderr
    first, *report = done.stdout.splitlines()
    assert first == "False none True True"
    (kernels,) = [line for line in report if line.startswith("kernels")]
    assert "not compiled, the plain torch versions run instead (slower): " in kernels
    assert "install a C++ compiler and reinstall pslrec to get them" in kernels
