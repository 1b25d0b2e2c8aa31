import pytest

from pslrec.data import Columns
from pslrec.data._columns import role_of
from pslrec.errors import DataError

# As the issue of the data layer lists them.
USUAL = {
    "user": "user user_id userid uid customer customer_id reviewerID visitorid",
    "item": "item item_id itemid iid product product_id asin movieId business_id location location_id",
    "rating": "rating stars overall score",
    "timestamp": "timestamp time ts date when unixReviewTime",
    "weight": "weight",
}
SPELLINGS = [(role, name) for role, names in USUAL.items() for name in names.split()]


@pytest.mark.parametrize(("role", "name"), SPELLINGS)
@pytest.mark.parametrize("change", [str, str.upper, str.lower, str.title, lambda name: f" {name} "])
def test_usual_spellings_are_known_in_any_case(role, name, change):
    assert role_of(change(name)) == role


@pytest.mark.parametrize("name", ["", "comment", "username", "items", "user name", "title", "_"])
def test_other_names_are_not_guessed(name):
    assert role_of(name) is None


@pytest.mark.parametrize("name", ["user id", "User-ID", "USER__ID"])
def test_spaces_dashes_and_underscores_do_not_matter(name):
    assert role_of(name) == "user"


def test_resolve_keeps_the_spelling_of_the_file():
    found = Columns().resolve(["When", "reviewerID", "text", "ASIN", "Stars"], "f")
    assert found == Columns("reviewerID", "ASIN", "Stars", "When", None)
    assert found.roles() == {
        "user": "reviewerID",
        "item": "ASIN",
        "rating": "Stars",
        "timestamp": "When",
    }


def test_given_name_wins_over_the_guess_and_frees_the_others():
    found = Columns(item="uid").resolve(["user", "uid", "item"], "f")
    assert (found.user, found.item) == ("user", "uid")


def test_given_names_settle_an_ambiguity():
    assert Columns(user="uid").resolve(["user", "uid", "item"], "f").user == "uid"


def test_empty_name_does_without():
    found = Columns(rating="", timestamp="").resolve(["user", "item", "rating", "date"], "f")
    assert (found.rating, found.timestamp) == (None, None)


@pytest.mark.parametrize(
    ("columns", "available", "message"),
    [
        (
            Columns(),
            ["user", "uid", "item"],
            r"f: `user`, `uid` could all be the user column; the header is `user`, `uid`, `item`; "
            r'name the columns, perhaps `columns={"user": "user"}`$',
        ),
        (
            Columns(),
            ["a", "item"],
            r'f: no user column found among `a`, `item`; name the columns, perhaps `columns={"user": "a"}`$',
        ),
        (
            Columns(),
            ["user", "b"],
            r'f: no item column found among `user`, `b`; name the columns, perhaps `columns={"item": "b"}`$',
        ),
        (
            Columns(user="x"),
            ["user", "item"],
            r"f: there is no column `x` for the user; the columns are `user`, `item`",
        ),
        (Columns(user=""), ["user", "item"], r"f: there is no column `` for the user"),
        (
            Columns(user="user", item="user"),
            ["user", "item"],
            r"f: column `user` cannot be two things at once",
        ),
        (
            Columns(),
            ["user", "item", "user"],
            r"f: column `user` appears 2 times; rename or remove the others",
        ),
        (
            Columns(item="x"),
            ["user", "x", "x"],
            r"f: column `x` appears 2 times; rename or remove the others",
        ),
        (
            Columns(),
            ["user", "item", "time", "date"],
            r"f: `time`, `date` could all be the timestamp column",
        ),
    ],
)
def test_missing_or_doubtful_columns_are_explained(columns, available, message):
    with pytest.raises(DataError, match=message):
        columns.resolve(available, "f")


def test_repeated_column_that_is_not_needed_does_no_harm():
    assert Columns().resolve(["user", "item", "x", "x"], "f").user == "user"


def test_long_headers_are_shortened_in_messages():
    with pytest.raises(DataError) as caught:
        Columns().resolve(["x" * 1000, *(f"c{n}" for n in range(20))], "f")
    assert len(str(caught.value)) < 400
    assert "and 9 more" in str(caught.value)
