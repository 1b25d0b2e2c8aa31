"""Conditions on an item table: their meaning, their errors, and that nothing in them is executed."""

import string
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pslrec.data import Vocabulary
from pslrec.data.items import Condition, ItemTable
from pslrec.data.items._conditions import DEEPEST, LONGEST
from pslrec.errors import ConfigError

FRAME = pl.DataFrame(
    {
        "item": list(range(6)),
        "title": ["Up", "Alien", "Big", 'The "X"', "Heat", None],
        "genre": ["Comedy", "Horror", "Comedy", None, "Drama", "Comedy"],
        "year": [2009, 1979, 1988, 1999, None, 1990],
        "price": [1.5, 2.0, None, -1.0, 0.0, 10.0],
        "is_new": [True, False, None, True, False, True],
        "two words": ["a", "b", "a", "b", "a", "b"],
    }
)
TABLE = ItemTable.read(FRAME, Vocabulary(list(range(6)), kind="item"))


def rows(condition: str) -> list[int]:
    return np.flatnonzero(TABLE.where(condition)).tolist()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('genre == "Comedy"', [0, 2, 5]),
        ("genre = 'Comedy'", [0, 2, 5]),
        ('genre == "Comedy" and year >= 1990', [0, 5]),
        ('genre == "Comedy" AND year >= 1990', [0, 5]),
        ('genre == "Horror" or genre == "Drama"', [1, 4]),
        ('genre == "Horror" or genre == "Comedy" and year < 1990', [1, 2]),
        ('(genre == "Horror" or genre == "Comedy") and year < 1990', [1, 2]),
        ("year != 1979", [0, 2, 3, 5]),
        ("year <> 1979", [0, 2, 3, 5]),
        ("not year == 1979", [0, 2, 3, 4, 5]),
        ("not not year == 1979", [1]),
        ("year in [1979, 1988]", [1, 2]),
        ("year not in (1979, 1988)", [0, 3, 5]),
        ("year is missing", [4]),
        ("genre is not missing", [0, 1, 2, 4, 5]),
        ('title contains "i"', [1, 2]),
        ('title not contains "i"', [0, 3, 4]),
        ('title == "The \\"X\\""', [3]),
        ("price < 0", [3]),
        ("price >= 1.5e0", [0, 1, 5]),
        ("price = -1", [3]),
        ("year > .5", [0, 1, 2, 3, 5]),
        ("year < 99999999999999999999999999", [0, 1, 2, 3, 5]),
        ("is_new == true", [0, 3, 5]),
        ("is_new != true", [1, 4]),
        ('genre >= "D"', [1, 4]),
        ('`two words` == "b"', [1, 3, 5]),
        ('genre == "no such"', []),
        ('  genre=="Comedy"  ', [0, 2, 5]),
    ],
)
def test_conditions_choose_items(condition: str, expected: list[int]) -> None:
    assert rows(condition) == expected


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("", "needs the name of a column at character 1, got the end"),
        ("genre", "needs a comparison such as .* at character 6, got the end"),
        ("genre ==", "needs a number, text in quotes, true or false at character 9"),
        ("genre == Comedy", "needs a number, text in quotes, true or false at character 10"),
        ("genre == 3", 'holds text, with 3; write text in quotes, such as "Comedy"'),
        ('year == "1990"', "holds numbers, with '1990'; write a number"),
        ("year == true", "holds numbers, with True; write a number"),
        ("is_new == 1", "holds true and false, with 1; write true or false"),
        ('year contains "19"', "asks whether `year` contains a text, but it holds numbers"),
        ("genre contains 3", "needs text in quotes"),
        ("gnre == 'x'", r"names the column `gnre`.*`genre`.*did you mean `genre`\?"),
        ("year > 1990 year < 2000", "needs `and`, `or` or the end at character 13"),
        ("(year > 1990", r"needs `\)` at character 13, got the end"),
        ("year in []", "needs a number, text in quotes"),
        ("year in 3", "needs a list such as"),
        ("year in [1, 2", r"needs `,` or `\]`"),
        ("genre == 'x", "a quotation mark is not closed"),
        ("year > 1e999", "a number that a float can hold"),
        ("year > 19x", "cannot be read at character 8"),
        ("year > 1; drop", "cannot be read at character 9"),
        ("1990 < year", "needs the name of a column"),
        ("and == 3", "needs the name of a column"),
        ("not " * (DEEPEST + 1) + "year > 1", "nested at most 40 deep"),
        ("(" * 500, "nested at most 40 deep"),
        ("x" * (LONGEST + 1), "at most 2,000 characters, got 2,001"),
        (3, "must be text such as"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(condition: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        TABLE.where(condition)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


PIECES = [
    *("and", "or", "not", "in", "contains", "is", "missing", "true", "false", "(", ")", "[", "]"),
    *(",", "==", "!=", "<", "<=", ">", ">=", "=", "<>", "genre", "year", "price", "is_new"),
    *("title", "`two words`", '"Comedy"', "'x'", "1990", "-1.5", "1e5", ".5", "import", "os"),
    *("__import__", "lambda", ":", "exec", "{", "}", "\\", '"', "'", "`", "\x00", "\ud800", "٣"),
]
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    st.text(max_size=200),
    st.text(alphabet=string.printable, max_size=200),
    st.binary(max_size=100).map(lambda raw: raw.decode("latin-1")),
)


class Watch:
    """Notes when Python compiles, executes, imports or opens anything while it is on."""

    EVENTS = ("compile", "exec", "import", "open", "os.system", "subprocess.Popen", "ctypes.dlopen")

    def __init__(self) -> None:
        self.is_on = False
        self.noted: list[str] = []
        # A hook cannot be taken away again.
        sys.addaudithook(self._note)

    def _note(self, event: str, _: object) -> None:
        if self.is_on and event in self.EVENTS:
            self.noted.append(event)


WATCH = Watch()


def test_the_watch_notes_what_is_executed() -> None:
    WATCH.is_on = True
    eval("1 + 1")
    WATCH.is_on = False
    noted, WATCH.noted = WATCH.noted, []
    assert {"compile", "exec"} <= set(noted)


@settings(max_examples=1000, deadline=None)
@given(TEXTS)
@example("__import__('os').system('false')")
@example("(" * 1900)
@example("year == " + "9" * 1900)
@example("year in [" + "1," * 900 + "1]")
@example("not " * 400 + "year == 1")
def test_any_text_is_a_mask_or_our_error_and_executes_nothing(text: str) -> None:
    mask = None
    message = ""
    WATCH.is_on = True
    try:
        mask = Condition.parse(text).mask(TABLE.columns)
    except ConfigError as error:
        message = str(error)
    finally:
        WATCH.is_on = False
    assert WATCH.noted == []
    if mask is None:
        assert message.startswith("`where`")
        assert "\n" not in message
    else:
        assert (mask.dtype, mask.shape) == (bool, (6,))


COLUMNS = FRAME.drop("item", "title", "two words").to_dicts()
LITERALS = {
    "genre": st.sampled_from(
        ["Comedy", "Horror", "Drama", "Zzz", "", 'a "quoted" one', "back\\slash"]
    ),
    "year": st.one_of(st.integers(1970, 2010), st.integers(-(10**17), 10**17)),
    "price": st.floats(-5, 12, allow_nan=False),
}
COMPARISONS = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def written(value: object) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3):
    """A text, and a function that says of a record whether it meets it, written independently."""
    kind = draw(st.sampled_from(["leaf", "and", "or", "not"] if depth else ["leaf"]))
    if kind == "leaf":
        name = draw(st.sampled_from(sorted(LITERALS)))
        sign = draw(st.sampled_from(sorted(COMPARISONS)))
        value = draw(LITERALS[name])
        text = f"{name} {sign} {written(value)}"
        return (
            text,
            lambda record: record[name] is not None and COMPARISONS[sign](record[name], value),
        )
    first, meets_first = draw(conditions(depth - 1))
    if kind == "not":
        return f"not ({first})", lambda record: not meets_first(record)
    second, meets_second = draw(conditions(depth - 1))
    if kind == "and":
        return (
            f"({first}) and ({second})",
            lambda record: meets_first(record) and meets_second(record),
        )
    return f"({first}) or ({second})", lambda record: meets_first(record) or meets_second(record)


@settings(max_examples=300, deadline=None)
@given(conditions())
def test_conditions_mean_what_a_loop_over_items_finds(made) -> None:
    text, meets = made
    if len(text) <= LONGEST:
        expected = [bool(meets(record)) for record in COLUMNS]
        assert Condition.parse(text).mask(TABLE.columns).tolist() == expected


def test_a_repeated_condition_is_not_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = TABLE.where("year > 1991")
    monkeypatch.setattr(Condition, "parse", None)
    assert TABLE.where("year > 1991") is first
    assert not first.flags.writeable


def test_only_so_many_conditions_are_kept() -> None:
    table = ItemTable.read(FRAME, Vocabulary(list(range(6)), kind="item"))
    for year in range(500):
        table.where(f"year > {year}")
    assert len(table._masks) == 64
