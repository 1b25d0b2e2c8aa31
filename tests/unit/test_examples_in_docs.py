from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def test_doctests_stand_under_a_heading_and_other_text_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
):
    pytest.importorskip("griffe")
    monkeypatch.syspath_prepend(str(REPOSITORY / "scripts"))
    from examples_in_docs import with_headings

    text = "Add.\n\nArgs:\n    x: first.\n\n>>> 1 + 1\n2\n\n>>> 2 + 2\n4\n\nThat is all."
    assert with_headings(text) == (
        "Add.\n\nArgs:\n    x: first.\n\nExamples:\n    >>> 1 + 1\n    2\n\n    >>> 2 + 2\n    4\n\nThat is all."
    )
    assert with_headings("No examples.") == "No examples."
