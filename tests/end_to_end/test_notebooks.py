"""The notebooks in `examples` were executed as a whole, and can be again."""

import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")

REPOSITORY = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((REPOSITORY / "examples").glob("*.ipynb"))


def code_cells(path: Path) -> list[Any]:
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_of_one_run_from_top_to_bottom(path: Path) -> None:
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    kinds = [output.output_type for cell in cells for output in cell.outputs]
    assert kinds
    assert "error" not in kinds
    # Nothing of the machine that it ran on.
    assert not re.search(r"/(home|root|tmp|work|Users)/", path.read_text(encoding="utf-8"))


def test_every_notebook_is_listed_and_shown_in_the_documentation() -> None:
    listed = (REPOSITORY / "examples" / "README.md").read_text(encoding="utf-8")
    navigation = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 4
    for path in NOTEBOOKS:
        assert f"`{path.name}`" in listed
        assert f"examples/{path.stem}.md" in navigation
        assert (REPOSITORY / "docs" / "examples" / f"{path.stem}.md").exists()


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# A kernel talks to this process through sockets that it may close later than the test.
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=1200, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    stored = [len(cell.outputs) > 0 for cell in code_cells(path)]
    now = [len(cell.outputs) > 0 for cell in notebook.cells if cell.cell_type == "code"]
    assert now == stored
