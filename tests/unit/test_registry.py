import importlib
import sys
from pathlib import Path

import pytest

from pslrec.errors import MissingExtraError, PslrecError, UnknownNameError
from pslrec.registry import Registry


@pytest.fixture
def losses():
    registry = Registry("loss")
    registry.register("psl-relu", "psl")("PSL")
    registry.register("bpr")("BPR")
    return registry


def test_part_is_found_under_each_of_its_names(losses):
    assert losses["psl"] == losses["psl-relu"] == "PSL"


def test_names_are_sorted_and_iterated_in_that_order(losses):
    assert losses.names() == list(losses) == ["bpr", "psl", "psl-relu"]
    assert len(losses) == 3


def test_contains_looks_at_names_only(losses):
    assert "bpr" in losses
    assert "BPR" not in losses
    assert 3 not in losses


def test_register_gives_the_part_back_so_that_it_can_decorate():
    registry = Registry("kind")

    @registry.register("one")
    class One:
        pass

    assert registry["one"] is One


def test_second_registration_of_a_name_raises(losses):
    with pytest.raises(ValueError, match="loss `bpr` is registered twice"):
        losses.register("bpr")("another")


def test_unknown_name_suggests_the_nearest_and_lists_all(losses):
    with pytest.raises(UnknownNameError) as caught:
        losses["BPRR"]
    assert (
        str(caught.value)
        == "unknown loss `BPRR`; did you mean `bpr`? Available: bpr, psl, psl-relu"
    )


def test_unknown_name_without_a_near_one_lists_all(losses):
    with pytest.raises(
        UnknownNameError, match=r"unknown loss `xyz`\. Available: bpr, psl, psl-relu"
    ):
        losses["xyz"]


def test_unknown_name_is_a_key_error_and_one_of_ours(losses):
    with pytest.raises(KeyError):
        losses["xyz"]
    with pytest.raises(PslrecError):
        losses["xyz"]


def test_missing_extra_says_what_to_install():
    error = MissingExtraError("faiss", "ann")
    assert (
        str(error) == "this needs `faiss`, which is not installed: run `pip install 'pslrec[ann]'`"
    )
    assert isinstance(error, ImportError)


def test_every_module_of_a_package_is_imported(tmp_path, monkeypatch):
    package = tmp_path / "package_of_parts"
    package.mkdir()
    init = "from pslrec.registry import Registry, import_parts\nPARTS = Registry('part')\nimport_parts(__name__, __path__)\n"
    (package / "__init__.py").write_text(init)
    (package / "first.py").write_text(
        "from package_of_parts import PARTS\nPARTS.register('first')(1)\n"
    )
    (package / "second.py").write_text(
        "from package_of_parts import PARTS\nPARTS.register('second')(2)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    parts = importlib.import_module("package_of_parts").PARTS
    assert parts.names() == ["first", "second"]


@pytest.mark.parametrize("package", ["losses", "backbones", "baselines", "data.sources"])
def test_a_file_in_a_package_of_parts_needs_no_other_file(package):
    module = importlib.import_module(f"pslrec.{package}")
    files = {path.stem for path in Path(module.__file__).parent.glob("*.py")} - {"__init__"}
    assert {f"{module.__name__}.{name}" for name in files} <= set(sys.modules)
    source = Path(module.__file__).read_text()
    assert "import_parts(__name__, __path__)" in source
