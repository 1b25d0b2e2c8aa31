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
    """The page of a document; all text in it is escaped, and its only script is named by its hash.

    >>> from pslrec.reporting._document import Section, Text
    >>> page = render(Document("A & B", "", [Section("Summary", [Text("1 < 2")])]))
    >>> "<title>A &amp; B</title>" in page, "1 &lt; 2" in page
    (True, True)
    """
    script = _own_text("page.js")
    # Lone halves of surrogate pairs, as odd names of files have, can not be written as UTF-8.
    page = _template().render(
        document=document,
        sections=[section for section in document.sections if section.blocks],
        style=Markup(_own_text("page.css")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        version=version("pslrec"),
    )
    return page.encode("utf-8", errors="replace").decode("utf-8")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_own_text("page.html.jinja"))


def _own_text(name: str) -> str:
    return files("pslrec.reporting").joinpath(name).read_text(encoding="utf-8")
