"""Every Python block and command of the documentation runs, top to bottom, each page in one namespace.

A block that starts with `>>>` is a doctest, and its output is compared; any other is run as it stands. A block that
cannot run in a test, because it needs the network, is marked by a comment in the line before:
`<!-- not run: reason -->`. A block with a title, such as ```` ```python title="my_loss.py" ````, is a file that the
reader saves under that name: it is written before anything of its page runs.
"""

import doctest
import gc
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Command

from pslrec import backbones, baselines, data, evaluation, losses  # noqa: F401  (their registries are to be kept)
from pslrec.data._columns import SPELLINGS
from pslrec.registry import Registry

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
BLOCK = re.compile(
    r"^(?P<mark><!-- not run: .+ -->\n)?"
    r"```(?P<language>\w+)(?: title=\"(?P<title>[^\"\n]+)\")?\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
INSTALLS = ("make ", "apt", "python ", "pip ", "source ")


@pytest.fixture(autouse=True)
def _registries_stay_as_they_are(tmp_path: Path) -> Iterator[None]:
    """An example may register a part of its own, which other tests must not see."""
    before = [(found, dict(found._parts)) for found in gc.get_objects() if type(found) is Registry]
    yield
    for registry, parts in before:
        registry._parts = parts
    # A module of an example registers its part when it is imported, so the next test must import it again.
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def blocks(page: Path, language: str) -> list[str]:
    """The code of a page's blocks in a language, without those marked and those that are files."""
    text = page.read_text()
    found = []
    for match in BLOCK.finditer(text):
        is_left_out = match["mark"] is not None or match["title"] is not None
        if match["language"] == language and not is_left_out:
            # Blank lines in front, so that a traceback names the line of the page.
            lines_before = text[: match.start("code")].count("\n")
            found.append("\n" * lines_before + match["code"])
    return found


def write_files(page: Path, directory: Path) -> None:
    """Write the blocks of a page that have a title."""
    for match in BLOCK.finditer(page.read_text()):
        if match["title"] is not None and match["mark"] is None:
            path = directory / match["title"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(match["code"])


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def run_block(code: str, page: Path, namespace: dict[str, object]) -> None:
    if not code.lstrip().startswith(">>>"):
        exec(compile(code, str(page), "exec"), namespace)
        return
    example = doctest.DocTestParser().get_doctest(code, namespace, page.name, str(page), 0)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    runner.run(example, out=report.append, clear_globs=False)
    namespace.update(example.globs)
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_python_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    write_files(page, tmp_path)
    namespace: dict[str, object] = {"__name__": "example"}
    for code in blocks(page, "python"):
        run_block(code, page, namespace)


def commands(page: Path) -> list[str]:
    joined = "\n".join(blocks(page, "console")).replace("|\n", "| ")
    return [line[2:] for line in joined.splitlines() if line.startswith("$ ")]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name_of)
def test_commands_of_a_page_run(
    pslrec: Command, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.syspath_prepend(str(tmp_path))
    write_files(page, tmp_path)
    makefile = (REPOSITORY / "Makefile").read_text()
    for command in commands(page):
        program, *arguments = shlex.split(command)
        if program == "make":
            assert re.search(rf"^{arguments[0]}:", makefile, re.MULTILINE), (
                f"the Makefile has no target for `{command}`"
            )
        elif program == "pslrec":
            done = pslrec(*arguments)
            assert done.code == 0, f"`{command}` failed: {done.out}{done.err}"
        else:
            assert command.startswith(INSTALLS), (
                f"`{command}` is neither make, pslrec nor a way to install"
            )


def test_the_page_about_data_names_the_spellings_of_columns_that_are_known():
    text = (REPOSITORY / "docs" / "reference" / "data.md").read_text()
    named: dict[str, set[str]] = {}
    for role, spellings in re.findall(r"^\| (\w+) \| ((?:`\w+` ?)+)\|$", text, re.MULTILINE):
        named[role] = {canonical(name) for name in re.findall(r"`(\w+)`", spellings)}
    known = {
        role: {canonical(name) for name in spellings.split()}
        for role, spellings in SPELLINGS.items()
    }
    assert named == known


def canonical(name: str) -> str:
    return name.lower().replace("_", "")


OUTSIDE_OF_THE_SITE = [
    *REPOSITORY.glob("*.md"),
    *(REPOSITORY / ".github").rglob("*.md"),
    *(REPOSITORY / "reproductions").rglob("*.md"),
]


@pytest.mark.parametrize("page", OUTSIDE_OF_THE_SITE, ids=name_of)
def test_links_of_a_page_lead_somewhere(page: Path):
    """Of the pages that mkdocs does not check."""
    targets = re.findall(
        r"\]\(([^)#\s]+)", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    )
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_the_readme_is_short():
    without_code = re.sub(r"```.*?```", "", (REPOSITORY / "README.md").read_text(), flags=re.DOTALL)
    assert len(without_code.split()) < 900


def test_the_site_fetches_nothing_from_elsewhere():
    """Formulas are typeset by files of the repository, and those are small."""
    configuration = (REPOSITORY / "mkdocs.yml").read_text()
    assert "font: false" in configuration
    assert "://" not in configuration
    assets = REPOSITORY / "docs" / "assets"
    files = [path for path in assets.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1_000_000
    style = (assets / "katex" / "katex.min.css").read_text()
    fonts = re.findall(r"url\(([^)]+)\)", style)
    assert fonts
    assert all((assets / "katex" / font).exists() for font in fonts)


def test_marked_blocks_are_left_out_and_others_are_not(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: needs the network -->\n```python\nfetch()\n```\n\n```python\nx = 1\n```\n"
    )
    assert [code.strip() for code in blocks(page, "python")] == ["x = 1"]


def test_a_block_with_a_title_is_a_file_and_not_run(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text('```python title="part.py"\nx = 1\n```\n\n```python\nimport part\n```\n')
    write_files(page, tmp_path)
    assert (tmp_path / "part.py").read_text() == "x = 1\n"
    assert [code.strip() for code in blocks(page, "python")] == ["import part"]


def test_a_wrong_output_in_a_page_is_noticed(tmp_path: Path):
    with pytest.raises(AssertionError, match="Expected"):
        run_block(">>> 1 + 1\n3\n", tmp_path / "page.md", {})
