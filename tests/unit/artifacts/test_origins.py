"""Where the parts of a run came from: written for parts from outside, checked before they are used."""

import json
import logging

import pytest

from pslrec.artifacts import (
    ArtifactError,
    check_parts,
    origins_of,
    read_origins,
    write_origins,
)
from pslrec.errors import UnknownNameError
from pslrec.losses import LOSSES, SoftmaxLoss


@pytest.fixture
def outside(monkeypatch):
    """A loss that another module has registered."""
    monkeypatch.setattr(LOSSES, "_parts", dict(LOSSES._parts))
    part = type("Outside", (SoftmaxLoss,), {"__module__": "their_module.losses"})
    LOSSES.register("outside")(part)
    return "outside"


def put(directory, **record):
    (directory / "origins.json").write_text(json.dumps({"loss": record}))


def test_parts_of_pslrec_leave_no_file(tmp_path):
    write_origins(tmp_path, origins_of({"loss": "sl", "backbone": "mf"}))
    assert list(tmp_path.iterdir()) == []
    assert read_origins(tmp_path) == {}


def test_parts_from_outside_are_written_and_read_again(tmp_path, outside):
    write_origins(tmp_path, origins_of({"loss": outside, "backbone": "mf"}))
    assert read_origins(tmp_path) == {"loss": ("their_module.losses", "outside", None)}
    check_parts(tmp_path, {"loss": {"name": outside}})


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (["a list"], "`loss` must be an object, got list"),
        ({"name": "x"}, "must name a module, got 'None'"),
        ({"module": "a b", "name": "x"}, "must name a module, got 'a b'"),
        ({"module": "a;b", "name": "x"}, "must name a module"),
        ({"module": "a", "name": 3}, "must name the part, got '3'"),
        ({"module": "a", "name": "x", "distribution": "b"}, "as NAME==VERSION, got 'b'"),
        ({"module": "a", "name": "x", "distribution": "b==1 --evil"}, "as NAME==VERSION"),
        ({"module": "a", "name": "x", "distribution": "-r==1"}, "as NAME==VERSION"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path, record, message):
    (tmp_path / "origins.json").write_text(json.dumps({"loss": record}))
    with pytest.raises(ArtifactError, match=message):
        read_origins(tmp_path)


@pytest.mark.parametrize(
    ("module", "distribution", "advice"),
    [
        ("__main__", None, "a script or a notebook; define the class before loading the run"),
        ("package.part", None, "`--import package.part` .* or `--import PATH/part.py`"),
        (
            "gone",
            "gone-away==2.1",
            "not installed; if you trust it, run `pip install gone-away==2.1`",
        ),
        (
            "pytest.part",
            "pytest==1.0",
            "is installed and does not announce it: .* `--import pytest.part`",
        ),
    ],
)
def test_what_is_missing_comes_with_what_to_do(tmp_path, module, distribution, advice):
    put(tmp_path, module=module, name="missing", distribution=distribution)
    with pytest.raises(UnknownNameError, match=f"unknown loss `missing`: .*`{module}`.*{advice}"):
        check_parts(tmp_path, {"loss": {"name": "missing"}})


def test_an_origin_of_another_part_than_the_settings_name_is_not_looked_at(tmp_path):
    put(tmp_path, module="gone", name="missing", distribution=None)
    check_parts(tmp_path, {"loss": {"name": "sl"}})
    check_parts(tmp_path, {})


def test_a_part_of_the_same_name_from_elsewhere_is_told(tmp_path, outside, caplog):
    put(tmp_path, module="old_module", name=outside, distribution=None)
    with caplog.at_level(logging.WARNING):
        check_parts(tmp_path, {"loss": {"name": outside}})
    assert "`outside` of `old_module`, and now takes that of `their_module.losses`" in caplog.text
