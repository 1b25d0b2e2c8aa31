"""The directory of a run: locked, versioned, complete."""

import json
import os
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import torch

from pslrec.artifacts import FORMAT, ArtifactError, RunDirectory, check_format, trained_tables
from pslrec.backbones import BACKBONES
from pslrec.data import Dataset
from pslrec.data._synthetic import checkerboard
from pslrec.training import Checkpoint, Progress
from pslrec.training._events import EpochFinished, TrainingStarted


@pytest.fixture
def board() -> Dataset:
    return checkerboard(8, 8)


@pytest.fixture
def begun(tmp_path: Path, board: Dataset) -> Path:
    with RunDirectory(tmp_path / "run") as directory:
        directory.begin('[loss]\nname = "sl"\n', board, "half-cosine")
    return tmp_path / "run"


def test_a_second_run_in_the_same_directory_says_so_and_stops(tmp_path: Path) -> None:
    with (
        RunDirectory(tmp_path / "run"),
        pytest.raises(
            ArtifactError,
            match=r"another run is working in .*run; wait for it, or choose another directory",
        ),
        RunDirectory(tmp_path / "run", resume=True),
    ):
        pass


def test_the_lock_goes_with_the_run_whatever_ends_it(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="in the middle"), RunDirectory(tmp_path / "run"):
        raise RuntimeError("in the middle")
    with RunDirectory(tmp_path / "run"):
        pass


def test_a_refused_directory_is_not_left_locked(begun: Path) -> None:
    for _ in range(2):
        with (
            pytest.raises(ArtifactError, match="already holds a run; resume it with --resume"),
            RunDirectory(begun),
        ):
            pass
    with RunDirectory(begun, resume=True) as directory:
        assert directory.is_started


def test_a_directory_in_which_beginning_was_cut_short_can_be_begun_again(
    begun: Path, board: Dataset
) -> None:
    (begun / "format").unlink()  # it is written last
    with RunDirectory(begun) as directory:
        assert not directory.is_started
        directory.begin('[loss]\nname = "bpr"\n', board, "inner-product")
    assert RunDirectory(begun).read_config() == {"loss": {"name": "bpr"}}


@pytest.mark.parametrize("content", ["3\n", "", "\x00\x01"])
def test_another_format_is_explained(begun: Path, content: str) -> None:
    (begun / "format").write_text(content)
    with pytest.raises(
        ArtifactError,
        match=r"was written in format .*, this version reads formats 1 and 2; train it again",
    ):
        check_format(begun)
    with (
        pytest.raises(ArtifactError, match="this version reads formats 1 and 2"),
        RunDirectory(begun, resume=True),
    ):
        pass
    with pytest.raises(ArtifactError, match="is not a run directory: it has no file `format`"):
        check_format(begun.parent)


def test_a_path_that_can_not_be_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ArtifactError, match="file cannot be written to: file exists"),
        RunDirectory(tmp_path / "file"),
    ):
        pass


def test_a_run_begins_with_what_is_needed_to_recommend_by_external_id(
    begun: Path, board: Dataset
) -> None:
    assert (begun / "format").read_text() == FORMAT + "\n"
    assert (
        pl.read_parquet(begun / "users.parquet")["id"].to_list()
        == board.user_vocabulary.series.to_list()
    )
    assert (
        pl.read_parquet(begun / "items.parquet")["id"].to_list()
        == board.item_vocabulary.series.to_list()
    )
    environment = json.loads((begun / "environment.json").read_text())
    assert {
        "pslrec",
        "python",
        "torch",
        "numpy",
        "processor",
        "threads",
        "kernels",
    } <= environment.keys()
    names = [os.uname().nodename, os.environ.get("USER", "")]
    text = json.dumps(environment)
    assert not any(name and len(name) > 4 and name in text for name in names)


def test_nothing_in_a_run_is_a_pickle(begun: Path, board: Dataset) -> None:
    directory = RunDirectory(begun)
    backbone = BACKBONES["mf"](board.train, dimension=4)
    directory.save_best(backbone, 3)
    directory.save_checkpoint(Checkpoint({"x": torch.zeros(2)}, Progress()))
    directory.write_metrics({"test": {}})
    for path in begun.iterdir():
        assert path.suffix in {".toml", ".json", ".parquet", ".safetensors", ""}
        assert not path.read_bytes().startswith((b"\x80", b"PK"))


def test_data_that_changed_are_refused(begun: Path, board: Dataset) -> None:
    directory = RunDirectory(begun)
    directory.check_data(board)
    fewer = replace(board, train=board.train.select(board.train.users != 3))
    other = checkerboard(8, 10)
    for dataset in (fewer, other):
        with pytest.raises(ArtifactError, match="was started with other training data"):
            directory.check_data(dataset)


def test_a_checkpoint_comes_back_as_it_was(begun: Path) -> None:
    directory = RunDirectory(begun)
    assert directory.load_checkpoint() is None
    progress = Progress(epoch=2, batch=3, loss_sum=0.1 + 0.2, seconds=1 / 3)
    directory.save_checkpoint(Checkpoint({"x": torch.tensor([1.0, -0.0])}, progress))
    found = directory.load_checkpoint()
    assert found is not None
    assert found.progress == progress
    assert torch.equal(found.tensors["x"], torch.tensor([1.0, -0.0]))


def test_a_file_that_is_no_checkpoint_is_named(begun: Path) -> None:
    directory = RunDirectory(begun)
    directory.save_best(BACKBONES["mf"](checkerboard(8, 8).train, dimension=4), 1)
    (begun / "model.safetensors").rename(begun / "checkpoint.safetensors")
    with pytest.raises(ArtifactError, match=r"checkpoint\.safetensors is not a checkpoint"):
        directory.load_checkpoint()


def log_lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (path / "log.jsonl").read_text().splitlines()]


def test_the_log_has_a_line_per_epoch(begun: Path) -> None:
    directory = RunDirectory(begun)
    directory.listen(TrainingStarted(3, 5, 0, 0))
    directory.listen(EpochFinished(1, 0.5, 0.25, None, False))
    directory.listen(EpochFinished(2, 0.4, 0.25, 0.125, True))
    assert log_lines(begun) == [
        {"epoch": 1, "loss": 0.5, "seconds": 0.25, "validation": None, "is_best": False},
        {"epoch": 2, "loss": 0.4, "seconds": 0.25, "validation": 0.125, "is_best": True},
    ]


@pytest.mark.parametrize("torn", ["", '{"epoch": 3, "lo', '{"epoch": ', "\n", "\udcff"])
def test_a_resumed_run_drops_what_it_will_write_again_and_what_was_cut_short(
    begun: Path, torn: str
) -> None:
    directory = RunDirectory(begun)
    directory.listen(TrainingStarted(9, 5, 0, 0))
    for epoch in (1, 2, 3):
        directory.listen(EpochFinished(epoch, 0.5, 0.25, None, False))
    with (begun / "log.jsonl").open("ab") as file:
        file.write(torn.encode(errors="surrogateescape"))
    directory.listen(TrainingStarted(9, 5, 2, 4))
    assert [line["epoch"] for line in log_lines(begun)] == [1, 2]
    directory.listen(EpochFinished(3, 0.5, 0.25, None, False))
    assert [line["epoch"] for line in log_lines(begun)] == [1, 2, 3]


@pytest.mark.parametrize("name", BACKBONES.names())
def test_the_model_is_what_evaluation_mode_gives(begun: Path, board: Dataset, name: str) -> None:
    backbone = BACKBONES[name](board.train, dimension=4)
    backbone.train()
    RunDirectory(begun).save_best(backbone, 3)
    assert backbone.training
    found = RunDirectory(begun).read_tables()
    expected = backbone.eval()()
    assert torch.equal(found["users"], expected.users)
    assert torch.equal(found["items"], expected.items)
    assert ("user_table" in found) == (name != "mf")
    assert found.keys() == trained_tables(backbone).keys()
