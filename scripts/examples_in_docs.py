"""Shows the doctests of docstrings as code on the API pages, when mkdocs builds them.

Our docstrings end with bare `>>>` lines, as doctest reads them. Markdown takes such lines for quotations in quotations, so
they are put under the heading `Examples:`, which the Google style knows.
"""

import textwrap
from typing import Any

import griffe


class ExamplesInDocs(griffe.Extension):
    """Puts every paragraph of a docstring that starts with `>>>` under `Examples:`."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object before it is rendered."""
        if obj.docstring is not None:
            obj.docstring.value = with_headings(obj.docstring.value)


def with_headings(text: str) -> str:
    """The text with runs of doctest paragraphs indented under `Examples:`."""
    paragraphs: list[str] = []
    is_in_examples = False
    for paragraph in text.split("\n\n"):
        is_doctest = paragraph.startswith(">>>")
        if is_doctest and not is_in_examples:
            paragraphs.append("Examples:\n" + textwrap.indent(paragraph, "    "))
        elif is_doctest:
            paragraphs.append(textwrap.indent(paragraph, "    "))
        else:
            paragraphs.append(paragraph)
        is_in_examples = is_doctest
    return "\n\n".join(paragraphs)
