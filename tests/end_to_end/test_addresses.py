"""An address that cannot be reached where a path belongs: refused as it was given, and no directory `ftp:` is made."""

from pathlib import Path

import pytest
from command_line import Command
from hypothesis import given
from hypothesis import strategies as st

from pslrec import Recommender
from pslrec.data import Dataset, Interactions, load, read_interactions
from pslrec.data._writing import write_dataset, write_interactions
from pslrec.errors import PslrecError
from pslrec.files import FileError, local_path, make_directory, whole_directory, write_text
from pslrec.inference import TrainedModel

ADDRESSES = (
    "ftp://host/run",
    "https://example.org/run",
    "hdfs://host:9000/r",
    "file://host/r",
)
COMMANDS = {
    "train": ("train", "LOG", "--out", "ADDRESS"),
    "train data": ("train", "ADDRESS.csv"),
    "train config": ("train", "LOG", "--config", "ADDRESS"),
    "train warm start": ("train", "LOG", "--warm-start", "ADDRESS", "--set", "training.epochs=1"),
    "resume": ("train", "LOG", "--out", "ADDRESS", "--resume"),
    "tune": ("tune", "LOG", "--out", "ADDRESS", "--grid", "loss.temperature=0.1"),
    "compare": ("compare", "LOG", "--out", "ADDRESS"),
    "stress": ("stress", "LOG", "--out", "ADDRESS"),
    "evaluate": ("evaluate", "ADDRESS"),
    "report": ("report", "ADDRESS"),
    "recommend": ("recommend", "ADDRESS", "--all"),
    "similar": ("similar", "ADDRESS", "--item", "x"),
    "export": ("export", "ADDRESS", "--to", "npz"),
    "serve": ("serve", "ADDRESS"),
    "data describe": ("data", "describe", "ADDRESS.csv"),
    "data prepare": ("data", "prepare", "LOG", "--out", "ADDRESS.csv"),
    "data split": ("data", "split", "LOG", "--out", "ADDRESS"),
}


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("address", ADDRESSES[:2])
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_refuse_addresses(
    pslrec: Command, log: Path, tmp_path: Path, name: str, address: str
) -> None:
    arguments = [
        part.replace("ADDRESS", address).replace("LOG", str(log)) for part in COMMANDS[name]
    ]
    code, _, err = pslrec(*arguments)
    assert code == 2
    assert "Traceback" not in err
    assert f"`path` must be on this machine, got {address}" in err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("as_path", [str, Path])
def test_functions_refuse_addresses(tmp_path: Path, address: str, as_path: type) -> None:
    interactions = Interactions.from_ids(["a", "b", "c"], [1, 2, 3])
    fitted = Recommender("sl", epochs=1, dimension=2, negatives="catalog").fit(
        interactions, validation="none"
    )
    place = as_path(address)
    calls = (
        lambda: fitted.save(place),
        lambda: Recommender.load(place),
        lambda: TrainedModel.load(place),
        lambda: fitted.fit(as_path(f"{address}.csv")),
        lambda: load(as_path(f"{address}.csv")),
        lambda: read_interactions(as_path(f"{address}.csv")),
        lambda: write_interactions(interactions, as_path(f"{address}.csv")),
        lambda: write_dataset(Dataset(interactions, interactions), place),
        lambda: write_text(place, "x"),
        lambda: make_directory(place),
        lambda: whole_directory(place).__enter__(),
    )
    for call in calls:
        with pytest.raises(PslrecError, match=f"must be on this machine, got {address}"):
            call()
    assert list(tmp_path.iterdir()) == []


@given(
    scheme=st.from_regex(r"[A-Za-z][A-Za-z0-9+.-]+", fullmatch=True),
    # A path leaves out `.` and empty names.
    rest=st.text(
        st.characters(blacklist_categories=("Cs",), blacklist_characters="\0/.@?"), min_size=1
    ),
)
def test_any_scheme_is_an_address_and_is_shown_as_it_was_given(scheme: str, rest: str) -> None:
    address = f"{scheme}://{rest}"
    for given_as in (address, Path(address)):
        with pytest.raises(FileError) as raised:
            local_path(given_as)
        assert address in str(raised.value)


@pytest.mark.parametrize("text", ["C:/runs", "runs/s3:", "a:b", "/abs/s3://x", "x-1:y/z", "runs"])
def test_paths_stay_paths(text: str) -> None:
    assert local_path(text) == Path(text)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_names_that_the_system_cannot_store_are_refused(text: str) -> None:
    with pytest.raises(FileError, match="must be a name that the system can store"):
        write_text(text, "x")
