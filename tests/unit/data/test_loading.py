import zipfile

import pytest

from pslrec.data import Columns, Dataset, Interactions, load, load_interactions
from pslrec.errors import DataError, PslrecError


@pytest.fixture
def split(tmp_path):
    directory = tmp_path / "split"
    directory.mkdir()
    (directory / "train.tsv").write_text("user\titem\n1\t1\n1\t2\n2\t1\n")
    (directory / "test.tsv").write_text("user\titem\n2\t2\n")
    return directory


@pytest.mark.parametrize("name", ["debian", "synthetic"])
def test_embedded_data_comes_by_name(name):
    log = load(name)
    assert isinstance(log, Interactions)
    assert log.n_users > 1000


def test_file_comes_by_path(tmp_path):
    (tmp_path / "a.csv").write_text("u,item,rating\n1,2,x\n2,3,y\n")
    assert len(load(tmp_path / "a.csv", columns=Columns(user="u", rating=""))) == 2
    assert len(load(str(tmp_path / "a.csv"), columns=Columns(user="u", rating=""))) == 2


def test_options_reach_a_file(tmp_path):
    (tmp_path / "a.txt").write_text("ann^tea\nbob^milk\n")
    assert len(load(tmp_path / "a.txt", separator="^", header=False)) == 2
    (tmp_path / "b.txt").write_text("1 2 3\n2 3 4\n")
    assert len(load(tmp_path / "b.txt", format="lightgcn")) == 4


def test_split_comes_as_a_data_set(split):
    dataset = load(split)
    assert isinstance(dataset, Dataset)
    assert (len(dataset.train), len(dataset.test)) == (3, 1)


def test_options_reach_the_parts_of_a_split(split):
    for part in split.iterdir():
        part.write_text(part.read_text().replace("user", "who"))
    with pytest.raises(DataError, match="no user column found"):
        load(split)
    assert len(load(split, columns=Columns(user="who")).train) == 3


def test_load_interactions_puts_a_split_together(split):
    log = load_interactions(split)
    assert sorted(log.to_frame().rows()) == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_load_interactions_takes_overlapping_parts_once(split):
    (split / "test.tsv").write_text("user\titem\n2\t2\n1\t1\n")
    with pytest.raises(DataError, match="in training or validation as well"):
        load(split)
    assert len(load(split, repair=True).test) == 1
    assert len(load_interactions(split)) == 4


def test_published_split_of_a_source_is_found_by_name(tmp_path, monkeypatch, split):
    monkeypatch.setenv("PSLREC_DATA_DIR", str(tmp_path))
    with zipfile.ZipFile(tmp_path / "gowalla.zip", "w") as archive:
        for part in split.iterdir():
            archive.write(part, part.name)
    assert len(load("gowalla").train) == 3


def test_source_that_is_not_here_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PSLREC_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(PslrecError, match="pslrec data fetch gowalla"):
        load("gowalla")


def test_file_with_the_name_of_a_source_wins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gowalla").write_text("user,item\n1,2\n2,3\n")
    assert len(load("gowalla")) == 2


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(
        DataError,
        match="no such file, and no data set of that name; the names are debian, synthetic, amazon",
    ):
        load("nothing-of-the-kind")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.csv: no such file"):
        load(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match=r"nothing\.zip: no such file"):
        load(tmp_path / "nothing.zip")


def test_directory_without_a_split_is_explained(tmp_path):
    with pytest.raises(
        DataError,
        match=r"there is no `train\.tsv` in this directory; give a file, or a directory with",
    ):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "user,item\nann,1\nann,2\n",
            "all interactions are of one user, `ann`, and nothing can be learnt from that",
        ),
        (
            "user,item\nann,1\nbob,1\n",
            "all interactions are of one item, `1`, and nothing can be learnt from that",
        ),
    ],
)
def test_one_user_or_item_only_is_refused(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        load(tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["x" * 5000, "x" * 5000 + ".csv", "a\0b", ""])
def test_names_that_the_system_refuses_are_explained(name):
    with pytest.raises(DataError):
        load(name)
