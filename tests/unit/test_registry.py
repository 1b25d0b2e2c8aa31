import importlib
import sys
from pathlib import Path

import pytest

from pslrec.errors import ConfigError, MissingExtraError, PslrecError, UnknownNameError
from pslrec.registry import (
    NameSuffix,
    Registry,
    constructor_parameters,
    derived_name,
    import_modules,
)


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


@pytest.fixture
def extended(losses):
    losses.extend(NameSuffix("@", str.isdecimal, lambda *half: half, "`@K` may follow a name"))
    return losses


def test_name_with_a_suffix_is_made_of_the_part_before_it(extended):
    assert extended["bpr@20"] == ("BPR", "bpr@20", "20")
    assert extended["bpr@20"] is extended["bpr@20"]
    assert extended["bpr@20@3"] == (extended["bpr@20"], "bpr@20@3", "3")
    assert extended.name_of(extended["bpr@20"]) == "bpr@20"
    assert "bpr@20" in extended
    assert "bpr@x" not in extended
    assert "bpr@" not in extended


def test_name_with_a_suffix_is_not_listed(extended):
    extended["bpr@20"]
    assert extended.names() == ["bpr", "psl", "psl-relu"]
    assert len(extended) == 3


def test_name_that_is_registered_comes_before_one_with_a_suffix(extended):
    extended.register("bpr@5")("another")
    assert extended["bpr@5"] == "another"


def test_unknown_name_with_a_suffix_suggests_one_with_it(extended):
    with pytest.raises(UnknownNameError) as caught:
        extended["bprr@20"]
    assert (
        str(caught.value) == "unknown loss `bprr@20`; did you mean `bpr@20`? "
        "Available: bpr, psl, psl-relu; `@K` may follow a name"
    )


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


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """The current directory, with modules that may be imported; what Python remembers is undone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize("given", ["parts_by_hand", "parts_by_hand.py", "./parts_by_hand.py"])
def test_a_module_of_the_current_directory_is_imported_by_name_or_path(directory, given):
    (directory / "parts_by_hand.py").write_text("import its_neighbour\n")
    (directory / "its_neighbour.py").touch()
    import_modules([given])
    import_modules([given])
    assert Path(sys.modules["parts_by_hand"].__file__).samefile(directory / "parts_by_hand.py")
    # Last, so that nothing in it takes the place of a library.
    assert Path(sys.path[-1]).samefile(directory)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("no_such_module", "`--import` must name a module that is installed or in the current"),
        ("json.no_such_module", "`--import` must name a module that is installed"),
        ("not a name", "`--import` must name a module"),
        ("", "`--import` must name a module"),
        ("no_such_file.py", "`--import` got no_such_file.py, and there is no such file"),
        ("json.py", "`json` is the name of another module here; rename the file"),
        ("broken_part.py", "/broken_part.py, line 2: ZeroDivisionError: division by zero"),
        ("torn_part.py", r"failed: SyntaxError: invalid syntax \(torn_part.py, line 1\)"),
        ("my-part.py", "whose name cannot be that of a module"),
        (
            "needs_more",
            "/needs_more.py, line 1: ModuleNotFoundError: No module named 'missing_one'",
        ),
    ],
)
def test_what_cannot_be_imported_is_explained(directory, given, message):
    for name in ("json.py", "my-part.py"):
        (directory / name).touch()
    (directory / "broken_part.py").write_text("\n1 / 0\n")
    (directory / "torn_part.py").write_text("1 +\n")
    (directory / "needs_more.py").write_text("import missing_one\n")
    with pytest.raises(ConfigError, match=message):
        import_modules([given])


class Shape:
    """What the parts of these tests derive from."""

    name = ""


def shape(name, module="a_module"):
    return type(name, (Shape,), {"__module__": module})


@pytest.fixture
def shapes():
    return Registry("shape", base=Shape)


@pytest.mark.parametrize(
    ("name", "derived"),
    [
        ("MyLoss", "my-loss"),
        ("Blended", "blended"),
        ("BPRWithMargin", "bpr-with-margin"),
        ("SoftmaxLoss2", "softmax-loss2"),
        ("snake_case", "snake-case"),
    ],
)
def test_a_class_gives_its_name_in_lower_case_with_hyphens(name, derived):
    assert derived_name(type(name, (), {})) == derived


def test_a_class_that_was_never_registered_is_registered_by_name_of(shapes):
    star = shape("BrightStar")
    assert shapes.name_of(star) == "bright-star"
    assert shapes["bright-star"] is star
    assert star.name == "bright-star"


def test_name_of_gives_the_name_under_which_a_class_was_registered(shapes):
    star = shapes.register("sun")(shape("NearStar"))
    assert shapes.name_of(star) == "sun"
    assert "near-star" not in shapes


def test_a_class_of_a_taken_name_has_to_be_registered_under_another(shapes):
    shapes.register("dark-star")("something else")
    with pytest.raises(ConfigError, match="there is another shape of that name; register it"):
        shapes.name_of(shape("DarkStar"))


@pytest.mark.parametrize("part", [3, int, "a name"])
def test_what_is_no_part_of_the_kind_is_refused(shapes, part):
    with pytest.raises(ConfigError, match="a shape must be a name, a class or an instance of one"):
        shapes.name_of(part)


def test_a_class_that_was_only_defined_is_found_by_its_name_and_not_listed(shapes):
    far = shape("FarStar")
    assert len(shapes) == 0
    assert shapes["far-star"] is far
    assert shapes.names() == ["far-star"]


def test_a_class_defined_again_takes_the_place_of_the_first(shapes):
    shapes.register("moon")(shape("Moon"))
    again = shapes.register("moon")(shape("Moon"))
    assert shapes["moon"] is again
    with pytest.raises(ValueError, match="shape `moon` is registered twice"):
        shapes.register("moon")(shape("Moon", module="another"))


def test_parts_of_pslrec_have_no_origin_and_others_name_their_module(shapes):
    shapes.register("ours")(shape("Ours", module="pslrec.shapes"))
    shapes.register("theirs")(shape("Theirs", module="their_package.shapes"))
    shapes.register("of-pytest")(shape("OfPytest", module="pytest"))
    assert shapes.origin("ours") is None
    assert shapes.origin("theirs") == ("their_package.shapes", "theirs", None)
    assert shapes.origin("of-pytest").distribution == f"pytest=={pytest.__version__}"


def test_arguments_that_collect_others_are_no_settings():
    class Collecting:
        def __init__(self, first, *others, last=1, **rest): ...

    assert [each.name for each in constructor_parameters(Collecting)] == ["first", "last"]
