"""What mkdocs does to pages before it renders them."""

from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
# Pages that are files at the root of the repository, where their links are relative to.
FROM_THE_ROOT = {
    "explanation/architecture.md": "ARCHITECTURE.md",
    "reference/changelog.md": "CHANGELOG.md",
}
# Pages that are notebooks, shown with the outputs that are stored in them.
NOTEBOOKS = {
    f"examples/{name}.md": f"examples/{name}.ipynb"
    for name in ("csv_to_page", "comparing_losses", "new_users_and_items", "own_loss")
}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The text of a page; links into `docs/` become relative to the page."""
    name = FROM_THE_ROOT.get(page.file.src_uri)
    if name is not None:
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        return text.replace("](docs/", "](../")
    if page.file.src_uri in NOTEBOOKS:
        return _notebook(REPOSITORY / NOTEBOOKS[page.file.src_uri])
    return markdown


def _notebook(path: Path) -> str:
    """A notebook as Markdown: cells as blocks of code, their stored outputs below them."""
    from nbconvert import MarkdownExporter

    text, resources = MarkdownExporter().from_filename(str(path))
    # Pictures would have to be files; our cards carry theirs along.
    assert not resources["outputs"], f"{path.name} has an output that is a file of its own"
    return text
