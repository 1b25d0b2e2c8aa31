import importlib.util
import lzma
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pslrec.data import Interactions
from pslrec.data.embedded import debian_packages
from pslrec.data.embedded.debian import FILE, debian_origin, pack, unpack
from pslrec.errors import DataError

ROOT = Path(__file__).parents[3]

INDEX = """\
Package: editor
Section: editors
Depends: libc6 (>= 2.34), libgui [amd64] <!nocheck>, python3:any (<< 3.12) | python2, editor
Pre-Depends: dpkg
Recommends: spell-dictionary | aspell,
 browser-api
Description: the word Depends: trap is not a field here
 Depends: trap
Tag: made::up

Package: libgui
Section: libs
Depends: libc6
Provides: browser-api (= 2), spell-dictionary

Package: aspell-en
Section: text
Provides: spell-dictionary

Package: libc6
Section: libs

Package: python3
Section: python

Package: firmware
Section: non-free-firmware/kernel
Depends: libc6

Package: driver
Section: contrib/x11
Depends: libc6
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = ROOT / "scripts" / "make_debian_dataset.py"
    if not path.exists():
        pytest.skip("the scripts come with the repository, not with the package")
    specification = importlib.util.spec_from_file_location("make_debian_dataset", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def small_index(n_packages: int = 7, n_libraries: int = 6) -> str:
    libraries = [f"Package: library{number}\nSection: libs\n" for number in range(n_libraries)]
    wanted = ", ".join(f"library{number}" for number in range(n_libraries))
    programs = [
        f"Package: program{number}\nSection: utils\nDepends: {wanted}\n"
        for number in range(n_packages)
    ]
    return "\n".join([*libraries, *programs])


def test_paragraph_joins_continuation_lines(script):
    (fields, *_) = script.paragraphs(INDEX.splitlines(keepends=True))
    assert fields["Recommends"] == "spell-dictionary | aspell, browser-api"
    assert "trap is not a field" in fields["Description"]


def test_paragraphs_do_not_need_a_last_empty_line(script):
    assert list(script.paragraphs(["Package: a\n", "\n", " \n", "Package: b"])) == [
        {"Package": "a"},
        {"Package": "b"},
    ]


@pytest.mark.parametrize(
    ("relation", "names"),
    [
        ("", []),
        ("libc6", ["libc6"]),
        ("libc6 (>= 2.34), zlib1g(= 1)", ["libc6", "zlib1g"]),
        ("mta | mailer (>= 1), cron", ["mta", "cron"]),
        ("python3:any, perl:native (>= 5)", ["python3", "perl"]),
        ("kernel [linux-any], check <!nocheck>, ", ["kernel", "check"]),
        ("libstdc++6, lib-a+b.c", ["libstdc++6", "lib-a+b.c"]),
    ],
)
def test_relation_gives_bare_first_names(script, relation, names):
    assert script.related_names(relation) == names


def test_index_resolves_virtual_names_and_counts_what_it_leaves_out(script):
    related, providers, counts = script.read_index(INDEX.splitlines())
    pairs = script.resolve(related, providers, counts)
    # `browser-api` is libgui's alone, `spell-dictionary` has two providers, `dpkg` is unknown here.
    assert pairs == [
        ("editor", "libc6"),
        ("editor", "libgui"),
        ("editor", "python3"),
        ("editor", "spell-dictionary"),
        ("libgui", "libc6"),
    ]
    assert counts["paragraphs"] == 7
    assert counts["packages"] == 5
    assert counts["paragraphs outside main, left out"] == 2
    assert counts["relations to nothing in the index, left out"] == 1
    assert counts["relations of a package to itself, left out"] == 1
    assert counts["relations to a virtual name, replaced by its only provider"] == 1
    assert counts["relations to a virtual name of several providers, kept by that name"] == 1


def test_versions_of_a_package_are_one_user_in_any_order(script):
    versions = [
        "Package: a\nDepends: b\n",
        "Package: a\nRecommends: c, b\n",
        "Package: b\n",
        "Package: c\n",
    ]
    results = []
    for order in (versions, versions[::-1]):
        related, providers, counts = script.read_index("\n".join(order).splitlines())
        results.append(script.resolve(related, providers, counts))
    assert results[0] == results[1] == [("a", "b"), ("a", "c")]


def test_core_is_taken_again_until_nothing_falls_out(script):
    square = [(user, item) for user in "abc" for item in "xyz"]
    # Without `tail`, who has only 2 items, `w` has 2 users; without `w` nobody else falls out.
    tail = [("tail", "w"), ("tail", "x"), ("a", "w"), ("b", "w")]
    assert script.k_core(sorted(square + tail), 3) == square


def test_script_writes_the_same_file_again(script, tmp_path, capsys):
    source = tmp_path / "Packages"
    source.write_text(small_index())
    for name in ("first.xz", "second.xz"):
        script.main([str(source), "--origin", "made up", "--output", str(tmp_path / name)])
    assert (tmp_path / "first.xz").read_bytes() == (tmp_path / "second.xz").read_bytes()
    interactions, origin = unpack((tmp_path / "first.xz").read_bytes())
    assert origin == "made up"
    assert (interactions.n_users, interactions.n_items, len(interactions)) == (7, 6, 42)
    assert "42  pairs in the 5-core" in capsys.readouterr().out


def test_script_stops_on_text_that_is_no_index(script, tmp_path):
    source = tmp_path / "Packages"
    source.write_text("Package: lonely\n")
    with pytest.raises(SystemExit, match="nothing is left of 1 packages"):
        script.main([str(source), "--origin", "made up", "--output", str(tmp_path / "out.xz")])
    assert not (tmp_path / "out.xz").exists()


def test_packed_interactions_come_back_equal():
    log = Interactions.from_ids(["b", "a", "a", "c"], ["y", "x", "z", "x"])
    # A user without interactions must keep its line.
    log = log.select(log.users != log.user_vocabulary.rows(["b"])[0])
    again, origin = unpack(pack(log, " two\nlines "))
    assert origin == "two lines"
    assert again.user_vocabulary == log.user_vocabulary
    assert again.item_vocabulary == log.item_vocabulary
    assert np.array_equal(again.pair_keys(), log.sorted().pair_keys())


@pytest.mark.parametrize("names", [["a b"], ["\t", "a"], [1, 2]])
def test_pack_refuses_names_that_would_not_come_back(names):
    with pytest.raises(DataError, match="sorted user names without white space"):
        pack(Interactions.from_ids(names, ["x"] * len(names)), "made up")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"no xz at all", "damaged"),
        (pack(Interactions.from_ids(["a"], ["x"]), "made up")[:-9], "damaged"),
        (lzma.compress(b"something else\n\n\n"), "must begin with"),
        (lzma.compress(b""), "must begin with"),
    ],
)
def test_unpack_names_what_is_wrong(data, message):
    with pytest.raises(DataError, match=message):
        unpack(data)


def test_embedded_data_is_a_five_core_without_repeats_or_loops():
    packages = debian_packages()
    assert (packages.n_users, packages.n_items, len(packages)) == (15_877, 5_077, 150_559)
    assert packages.user_counts().min() == 5
    assert packages.item_counts().min() == 5
    assert len(np.unique(packages.pair_keys())) == len(packages)
    frame = packages.to_frame()
    assert (frame["user"] != frame["item"]).all()


def test_embedded_data_is_what_debian_says():
    packages = debian_packages()
    chosen = packages.users == packages.user_vocabulary.rows(["0ad"])[0]
    items = packages.item_vocabulary.ids(packages.items[chosen])
    assert {"libc6", "libcurl3-gnutls", "libicu72", "libopenal1", "libstdc++6", "zlib1g"} <= set(
        items
    )
    most_popular = packages.item_vocabulary.ids(np.argsort(-packages.item_counts())[:3])
    assert most_popular == ["libc6", "libstdc++6", "libgcc-s1"]


def test_embedded_data_is_read_once_and_tells_its_origin():
    assert debian_packages() is debian_packages()
    assert "bookworm" in debian_origin()
    assert "main" in debian_origin()


def test_embedded_file_is_small_and_packs_to_the_same_content():
    file = ROOT / "src" / "pslrec" / "data" / "embedded" / FILE
    if not file.exists():
        pytest.skip("needs the repository")
    data = file.read_bytes()
    assert len(data) < 500_000
    # Compressors may differ between versions of liblzma; the text inside must not.
    assert lzma.decompress(pack(*unpack(data))) == lzma.decompress(data)
