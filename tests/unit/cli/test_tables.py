"""Tables of text in a terminal."""

import pytest

from pslrec.cli._tables import show_tables
from pslrec.reporting import TextTable


def test_a_table_is_wider_than_the_terminal_rather_than_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    header = ["data set", *(f"count{number}" for number in range(9))]
    show_tables([TextTable("Sizes", header, [["Amazon-Movie", *["1,026,968"] * 9]])])
    shown = capsys.readouterr().out
    assert shown.count("1,026,968") == 9
    assert "Amazon-Movie" in shown
    assert "…" not in shown
