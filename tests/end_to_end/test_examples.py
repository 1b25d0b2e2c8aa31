"""The scripts in `examples` run as they are, in a directory of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
# These train on all of the embedded data.
SLOW = {"from_csv.py"}


def parameters():
    found = []
    for script in SCRIPTS:
        marks = [pytest.mark.slow] if script.name in SLOW else []
        found.append(pytest.param(script, id=script.stem, marks=marks))
    return found


@pytest.mark.parametrize("script", parameters())
def test_example_runs_and_shows_something(script, tmp_path):
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert list(tmp_path.iterdir()) == []


def test_every_example_is_listed():
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert SCRIPTS
    for script in SCRIPTS:
        assert f"`{script.name}`" in page
