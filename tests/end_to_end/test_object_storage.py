"""Models at addresses: trained to one, saved to one, loaded from one; `memory://` stands in for a bucket."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Command

from pslrec import Recommender
from pslrec.data import planted_tastes
from pslrec.errors import PslrecError
from pslrec.inference import TrainedModel

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def storage() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


@pytest.fixture(scope="module")
def fitted() -> Recommender:
    log = planted_tastes(60, 40, seed=1).interactions
    return Recommender("sl", backbone="mf", epochs=1, dimension=4, preset="fixed").fit(log)


def test_saved_to_and_loaded_from_an_address(storage, fitted, tmp_path):
    address = "memory://bucket/run"
    fitted.save(address)
    loaded = Recommender.load(address)
    user = "user07"
    assert loaded.recommend([user]).equals(fitted.recommend([user]))
    assert TrainedModel.load(Path(address)).n_items == 40
    with pytest.raises(PslrecError, match="memory://bucket/run already holds a run"):
        fitted.save(address)
    fitted.save(address, overwrite=True)
    # The copy that it was loaded from is gone by now, and is fetched again.
    loaded.save(tmp_path / "copy")
    assert Recommender.load(tmp_path / "copy").recommend([user]).equals(fitted.recommend([user]))
    with pytest.raises(PslrecError, match="memory://bucket/nothing: there are no files"):
        Recommender.load("memory://bucket/nothing")


def test_a_run_is_stored_where_out_says(storage, pslrec: Command, log: Path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    address = "memory://bucket/trained"
    options = ("--epochs", "1", "--dimension", "4", "--set", "sampling.negatives=catalog")
    code, _, err = pslrec("train", str(log), "--out", address, *options)
    assert code == 0, err
    names = {Path(name).name for name in storage.find("/bucket/trained")}
    assert {"format", "metrics.json", "model.safetensors"} <= names
    assert "lock" not in names
    code, _, err = pslrec("train", str(log), "--out", address, *options)
    assert code == 2
    assert "memory://bucket/trained already holds a run" in err
    code, out, err = pslrec("recommend", address, "--all")
    assert code == 0, err
    assert out.strip()
    assert list(tmp_path.glob("memory*")) == []
    code, _, err = pslrec("train", "--out", address, "--resume")
    assert code == 2
    assert "needs DATA as well" in err
    code, _, err = pslrec("train", str(log), "--out", address, *options, "--resume")
    assert code == 0, err
