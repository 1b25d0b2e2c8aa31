import numpy as np
import polars as pl
import pytest

from pslrec.data import Vocabulary
from pslrec.errors import DataError, UnknownNameError


@pytest.fixture
def items():
    return Vocabulary(["apt", "bash", "coreutils"], kind="item")


def test_rows_and_ids_are_inverse(items):
    assert items.ids(items.rows(["coreutils", "apt", "apt"])) == ["coreutils", "apt", "apt"]


def test_rows_are_32_bit_numbers(items):
    assert items.rows(["bash"]).dtype == np.int32
    assert items.rows([]).shape == (0,)


def test_order_of_ids_is_kept():
    assert Vocabulary(["b", "a"], kind="user").ids([0, 1]) == ["b", "a"]


@pytest.mark.parametrize("container", [list, tuple, np.array, pl.Series, iter])
@pytest.mark.parametrize("ids", [[3, 1, 2], ["x", "ä", "7"]])
def test_ids_may_come_in_any_container(container, ids):
    assert Vocabulary(container(ids), kind="user").ids([0, 1, 2]) == ids


def test_unknown_id_is_named(items):
    with pytest.raises(UnknownNameError, match="unknown item `zsh`"):
        items.rows(["apt", "zsh"])


def test_id_of_another_type_is_unknown():
    with pytest.raises(UnknownNameError, match="unknown user `1`"):
        Vocabulary([1, 2], kind="user").rows(["1"])


@pytest.mark.parametrize("rows", [[-1], [3], [0, 7]])
def test_rows_outside_raise_instead_of_wrapping_around(items, rows):
    with pytest.raises(DataError, match="item `rows` must lie between 0 and 2"):
        items.ids(rows)


def test_repeated_ids_are_counted():
    with pytest.raises(DataError, match="user ids of a vocabulary must be unique: 2 repeat"):
        Vocabulary(["a", "a", "a"], kind="user")


def test_missing_ids_are_counted():
    with pytest.raises(DataError, match="user ids must not be missing: 1 are"):
        Vocabulary(["a", None], kind="user")


def test_ids_of_several_types_are_refused():
    with pytest.raises(DataError, match="user ids must all be whole numbers or all be text"):
        Vocabulary([1, "a"], kind="user")


def test_ids_that_are_no_values_are_refused():
    with pytest.raises(DataError, match="user ids must be whole numbers or text, got Thing"):
        Vocabulary([type("Thing", (), {})()], kind="user")


def test_contains_and_length(items):
    assert "bash" in items
    assert "zsh" not in items
    assert len(items) == 3


def test_equal_vocabularies_have_equal_hashes(items):
    same = Vocabulary(["apt", "bash", "coreutils"], kind="thing")
    assert items == same
    assert hash(items) == hash(same)


@pytest.mark.parametrize("other", [["apt", "coreutils", "bash"], ["apt", "bash"], [1, 2, 3]])
def test_other_ids_or_another_order_are_not_equal(items, other):
    assert items != Vocabulary(other, kind="item")


def test_number_ids_differ_from_text_ids():
    assert Vocabulary([1, 2]) != Vocabulary(["1", "2"])


def test_select_renumbers_in_the_order_given(items):
    assert items.select(np.array([2, 0])).ids([0, 1]) == ["coreutils", "apt"]


def test_vocabulary_can_not_be_changed_from_outside(items):
    given = pl.Series(["a", "b"])
    vocabulary = Vocabulary(given, kind="user")
    given[0] = "changed"
    vocabulary.series[1] = "changed"
    assert vocabulary.ids([0, 1]) == ["a", "b"]
    with pytest.raises(AttributeError):
        items.series = given
    with pytest.raises(AttributeError):
        items.kind = "user"


def test_repr_counts():
    assert repr(Vocabulary([1, 2], kind="user")) == "Vocabulary(2 users)"
