"""Losses and backbones from outside of pslrec: by entry point, by `--import`, and from Python.

The pages docs/how-to/own-loss.md and own-backbone.md are executed as they stand: a block with a title is a
file of that name, and the commands run in its directory, each in a process of its own.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"
BLOCK = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[\w.]+)")?\n(?P<code>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
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


class Unnamed(HingeLoss):
    \"\"\"Has the name of its entry point.\"\"\"


@register_backbone("mf-again")
class Again(MatrixFactorization):
    \"\"\"Matrix factorisation under another name.\"\"\"
"""
ENTRY_POINTS = """
[pslrec.losses]
hinge = outside_parts
named-by-its-entry-point = outside_parts:Unnamed
broken = no_such_module

[pslrec.backbones]
mf-again = outside_parts:Again
"""


def install(directory: Path, module: str, name: str, entry_points: str) -> None:
    """Make a directory look as if a package with one module were installed in it."""
    information = directory / f"{module}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "top_level.txt").write_text(f"{module}\n")
    (information / "entry_points.txt").write_text(entry_points)


@pytest.fixture
def installed(tmp_path):
    """A directory that Python takes as one in which a package is installed."""
    directory = tmp_path / "site"
    install(directory, "outside_parts", "outside-parts", ENTRY_POINTS)
    (directory / "outside_parts.py").write_text(PARTS)
    return directory


@pytest.fixture
def log(tmp_path):
    rows = [f"u{user},i{(user * 7 + n * 3) % 20}" for user in range(30) for n in range(8)]
    path = tmp_path / "log.csv"
    path.write_text("user,item\n" + "\n".join(rows) + "\n")
    return path


SMALL = (
    "--set",
    "training.epochs=2",
    "--set",
    "sampling.negatives=5",
    "--set",
    "backbone.dimension=4",
)


def run_python(*arguments, site=None, directory=None):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    environment.pop("PYTHONPATH", None)
    if site is not None:
        environment["PYTHONPATH"] = str(site)
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=directory
    )


def pslrec(*arguments, site=None, directory=None):
    # As the installed command: the current directory is not on the path by itself.
    program = "import sys; sys.path.remove(''); from pslrec.cli import main; main()"
    return run_python("-c", program, *arguments, site=site, directory=directory)


def test_parts_of_other_packages_are_listed_and_a_broken_one_is_told(installed):
    done = pslrec("losses", site=installed)
    assert "hinge" in done.stdout
    assert "margin = 0.1" in done.stdout
    assert "psl-relu" in done.stdout
    assert "named-by-its-entry-point" in done.stdout
    assert (
        "the loss `broken` of `outside-parts` cannot be used: No module named 'no_such_module'"
        in done.stderr
    )
    assert "mf-again" in pslrec("backbones", site=installed).stdout
    assert "hinge" not in pslrec("losses").stdout


def test_a_model_of_outside_parts_is_trained_saved_and_asked(installed, log, tmp_path):
    run = tmp_path / "run"
    parts = ("--loss", "hinge", "--backbone", "mf-again", "--set", "loss.margin=0.2")
    trained = pslrec("train", log, *parts, *SMALL, "--out", run, site=installed)
    assert trained.returncode == 0, trained.stderr
    origin = {"module": "outside_parts", "distribution": "outside-parts==1.0"}
    assert json.loads((run / "origins.json").read_text()) == {
        "loss": {**origin, "name": "hinge"},
        "backbone": {**origin, "name": "mf-again"},
    }
    asked = pslrec("recommend", run, "--user", "u1", "--k", "3", site=installed)
    assert asked.returncode == 0, asked.stderr
    for command in (("recommend", run, "--user", "u1"), ("evaluate", run)):
        alone = pslrec(*command)
        assert alone.returncode == 2
        assert alone.stderr.count("\n") == 1
        assert "unknown loss `hinge`" in alone.stderr
        assert (
            "the module `outside_parts` of outside-parts==1.0, which is not installed; if you trust it, "
            "run `pip install outside-parts==1.0`"
        ) in alone.stderr


def test_a_package_that_announces_nothing_is_imported_by_hand(installed, log, tmp_path):
    run = tmp_path / "run"
    (installed / "outside_parts-1.0.dist-info" / "entry_points.txt").unlink()
    importing = ("--import", "outside_parts")
    trained = pslrec(
        "train", log, "--loss", "hinge", *importing, *SMALL, "--out", run, site=installed
    )
    assert trained.returncode == 0, trained.stderr
    alone = pslrec("recommend", run, "--user", "u1", site=installed)
    assert (
        "of outside-parts==1.0; outside-parts 1.0 is installed and does not announce it: if you trust it, "
        "add `--import outside_parts`"
    ) in alone.stderr
    assert pslrec(*importing, "recommend", run, "--user", "u1", site=installed).returncode == 0


def test_a_run_directory_imports_nothing_that_it_names(log, tmp_path):
    run = tmp_path / "run"
    assert pslrec("train", log, *SMALL, "--out", run).returncode == 0
    (tmp_path / "hostile.py").write_text(
        "from pathlib import Path\nPath('executed').touch()\n"
        "from pslrec.losses import SoftmaxLoss, register_loss\n"
        "@register_loss('hostile')\nclass Hostile(SoftmaxLoss): ...\n"
    )
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace('"psl-relu"', '"hostile"'))
    for module, told in (("hostile", "`--import hostile`"), ("x; rm -rf", "must name a module")):
        origin = {"module": module, "name": "hostile", "distribution": None}
        (run / "origins.json").write_text(json.dumps({"loss": origin}))
        for command in (("recommend", run, "--user", "u1"), ("evaluate", run)):
            done = pslrec(*command, directory=tmp_path)
            assert done.returncode == 2
            assert done.stderr.count("\n") == 1
            assert told in done.stderr
    assert not (tmp_path / "executed").exists()


def test_an_instance_without_a_name_is_found_again_by_importing_its_module(log, tmp_path):
    code = PARTS.replace('@register_loss("hinge")\n', "").replace(
        '@register_backbone("mf-again")\n', ""
    )
    (tmp_path / "my_parts.py").write_text(code)
    (tmp_path / "train.py").write_text(
        "from my_parts import Again, HingeLoss\n"
        "from pslrec import Recommender\n"
        "recommender = Recommender(HingeLoss(0.3), Again, epochs=1, negatives=5, dimension=4)\n"
        f"recommender.fit({str(log)!r}).save('run')\n"
    )
    trained = run_python("train.py", directory=tmp_path)
    assert trained.returncode == 0, trained.stderr
    config = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert config["loss"] == {"name": "hinge-loss", "margin": 0.3}
    assert config["backbone"]["name"] == "again"
    asking = ("recommend", "run", "--user", "u1", "--k", "3")
    assert pslrec(*asking, directory=tmp_path).returncode == 2
    asked = pslrec(*asking, "--import", "my_parts", directory=tmp_path)
    assert asked.returncode == 0, asked.stderr
    loading = "import my_parts; from pslrec import Recommender; Recommender.load('run')"
    loaded = run_python("-c", loading, directory=tmp_path)
    assert loaded.returncode == 0, loaded.stderr


def test_what_cannot_be_imported_is_said_in_one_sentence(tmp_path):
    (tmp_path / "broken.py").write_text("\n1 / 0\n")
    done = pslrec("losses", "--import", "broken", directory=tmp_path)
    assert done.returncode == 2
    place = tmp_path / "broken.py"
    assert done.stderr == (
        f"error: `--import broken` failed in {place}, line 2: ZeroDivisionError: division by zero\n"
    )


def commands(page: Path) -> list[tuple[str, list[str]]]:
    """The commands of a page, each with the lines that it is said to print."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.finditer(page.read_text()):
        if block["language"] != "console":
            continue
        for line in block["code"].splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


@pytest.mark.parametrize("name", ["own-loss.md", "own-backbone.md"])
def test_a_page_about_own_parts_runs_from_top_to_bottom(name, tmp_path):
    page = HOW_TO / name
    for block in BLOCK.finditer(page.read_text()):
        if block["title"] is not None:
            (tmp_path / block["title"]).write_text(block["code"])
    for command, printed in commands(page):
        program, *arguments = shlex.split(command)
        run = {"pslrec": pslrec, "python": run_python}[program]
        done = run(*arguments, directory=tmp_path)
        is_error = any(line.startswith("error: ") for line in printed)
        assert done.returncode == (2 if is_error else 0), f"{command}: {done.stderr}"
        for line in printed:
            assert line in done.stderr


@pytest.mark.parametrize("name", ["own-loss.md", "own-backbone.md"])
def test_the_package_of_a_page_is_found_without_importing(name, tmp_path):
    blocks = {
        block["title"]: block["code"] for block in BLOCK.finditer((HOW_TO / name).read_text())
    }
    project = tomllib.loads(blocks["pyproject.toml"])["project"]
    ((group, points),) = project["entry-points"].items()
    ((part, module),) = points.items()
    install(tmp_path, module, project["name"], f"[{group}]\n{part} = {module}\n")
    (tmp_path / f"{module}.py").write_text(blocks[f"{module}.py"])
    listed = pslrec(group.removeprefix("pslrec."), site=tmp_path)
    assert f"\n{part} " in listed.stdout
