"""What mkdocs does to pages before it renders them."""

from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
# Pages that are files at the root of the repository, where their links are relative to.
FROM_THE_ROOT = {
    "explanation/architecture.md": "ARCHITECTURE.md",
    "reference/changelog.md": "CHANGELOG.md",
}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The text of a page; links into `docs/` become relative to the page."""
    name = FROM_THE_ROOT.get(page.file.src_uri)
    if name is None:
        return markdown
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    return text.replace("](docs/", "](../")
