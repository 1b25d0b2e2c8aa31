"""A document as one HTML file that needs nothing but a browser."""

import base64
import hashlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files

import jinja2
from markupsafe import Markup

from pslrec.reporting._document import Document


def render(document: Document) -> str:
    """Make the page of a document.

    All text in it is escaped. The page allows no script but its own, which it names by its hash.

    Args:
        document: what the page shows; sections without blocks are left out.

    >>> from pslrec.reporting._document import Section, Text
    >>> page = render(Document("A & B", "", [Section("Summary", [Text("1 < 2")])]))
    >>> "<title>A &amp; B</title>" in page, "1 &lt; 2" in page
    (True, True)
    """
    script = _own_text("page.js")
    digest = hashlib.sha256(script.encode()).digest()
    page = _template().render(
        document=document,
        sections=[section for section in document.sections if section.blocks],
        style=Markup(_own_text("page.css")),
        script=Markup(script),
        script_hash=base64.b64encode(digest).decode(),
        version=version("pslrec"),
    )
    # File names may hold lone halves of surrogate pairs, which cannot be written as UTF-8.
    return page.encode("utf-8", errors="replace").decode("utf-8")


@cache
def _template() -> jinja2.Template:
    # StrictUndefined: a misspelt name in the template is an error, not an empty place in the page.
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_own_text("page.html.jinja"))


def _own_text(name: str) -> str:
    return files("pslrec.reporting").joinpath(name).read_text(encoding="utf-8")
