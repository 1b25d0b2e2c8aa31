"""A loss, a backbone and a source of another installed package are known by their names, and to nobody without it."""

import os
import subprocess
import sys

import pytest

PARTS = """
import torch
from pslrec.backbones import MatrixFactorization, register_backbone
from pslrec.losses import Loss, register_loss


@register_loss("hinge")
class HingeLoss(Loss):
    \"\"\"Hinge: mean_j max(d_j + margin, 0).\"\"\"

    reference = "an example"

    def __init__(self, margin: float = 0.1) -> None:
        super().__init__()
        self.margin = margin

    def _pairwise_values(self, positives, negatives, _extras, /):
        return (negatives - positives.unsqueeze(1) + self.margin).clamp(min=0).mean(dim=1)


@register_backbone("mf-again")
class Again(MatrixFactorization):
    \"\"\"Matrix factorisation under another name.\"\"\"
"""
ENTRY_POINTS = """
[pslrec.losses]
hinge = outside_parts
broken = no_such_module

[pslrec.backbones]
mf-again = outside_parts:Again
"""


@pytest.fixture
def installed(tmp_path):
    """A directory that Python takes as one in which a package is installed."""
    directory = tmp_path / "site"
    information = directory / "outside_parts-1.0.dist-info"
    information.mkdir(parents=True)
    (directory / "outside_parts.py").write_text(PARTS)
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: outside-parts\nVersion: 1.0\n"
    )
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    return directory


def pslrec(*arguments, site=None):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    if site is not None:
        environment["PYTHONPATH"] = str(site)
    command = [sys.executable, "-c", "from pslrec.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_parts_of_other_packages_are_listed_and_a_broken_one_is_told(installed):
    done = pslrec("losses", site=installed)
    assert "hinge" in done.stdout
    assert "margin = 0.1" in done.stdout
    assert "psl-relu" in done.stdout
    assert (
        "the loss `broken` of `outside-parts` cannot be used: No module named 'no_such_module'"
        in done.stderr
    )
    assert "mf-again" in pslrec("backbones", site=installed).stdout
    assert "hinge" not in pslrec("losses").stdout


def test_a_model_of_outside_parts_is_trained_saved_and_asked(installed, tmp_path):
    log = tmp_path / "log.csv"
    rows = [f"u{user},i{(user * 7 + n * 3) % 20}" for user in range(30) for n in range(8)]
    log.write_text("user,item\n" + "\n".join(rows) + "\n")
    run = tmp_path / "run"
    parts = ("--loss", "hinge", "--backbone", "mf-again", "--set", "loss.margin=0.2")
    small = (
        "--set",
        "training.epochs=2",
        "--set",
        "sampling.negatives=5",
        "--set",
        "backbone.dimension=4",
    )
    trained = pslrec("train", log, *parts, *small, "--out", run, site=installed)
    assert trained.returncode == 0, trained.stderr
    asked = pslrec("recommend", run, "--user", "u1", "--k", "3", site=installed)
    assert asked.returncode == 0, asked.stderr
    alone = pslrec("recommend", run, "--user", "u1", "--k", "3")
    assert alone.returncode == 2
    assert alone.stderr.count("\n") == 1
    assert "unknown loss `hinge`" in alone.stderr
