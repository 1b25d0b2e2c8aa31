"""Files that are whole or absent."""

import os
import stat
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from pslrec.files import FileError, append_line, read_text, write_text
from pslrec.files._places import is_temporary
from pslrec.files._tensors import read_tensors, write_tensors


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(3, dtype=torch.int64)}
    write_tensors(tmp_path / "x.safetensors", tensors, {"epoch": "3"})
    found, metadata = read_tensors(tmp_path / "x.safetensors")
    assert metadata == {"epoch": "3"}
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    write_text(tmp_path / "x.txt", "τ\n")
    assert read_text(tmp_path / "x.txt") == "τ\n"
    append_line(tmp_path / "x.txt", "next")
    assert read_text(tmp_path / "x.txt") == "τ\nnext\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.safetensors", "x.txt"]


def test_tensors_of_every_kind_and_shape_come_back_by_the_library_itself(tmp_path: Path) -> None:
    tensors = {
        "number": torch.tensor(1.5),
        "flags": torch.tensor([True, False, True]),
        "rows": torch.arange(5, dtype=torch.int32),
        "offsets": torch.tensor(7),
        "double": torch.linspace(0, 1, 3, dtype=torch.float64),
        "transposed": torch.arange(6.0).reshape(2, 3).T,
        "empty": torch.zeros(0, 4),
        "trained": torch.nn.Parameter(torch.tensor([1.0, -0.0, float("nan")])),
        'a "quoted" näme': torch.ones(1),
    }
    write_tensors(tmp_path / "x.safetensors", tensors, {"progress": '{"epoch": 1}'})
    found = load_file(tmp_path / "x.safetensors")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert found[name].numpy().tobytes() == tensor.detach().contiguous().numpy().tobytes()
    assert read_tensors(tmp_path / "x.safetensors")[1] == {"progress": '{"epoch": 1}'}


def test_writing_tensors_makes_no_other_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[str]] = []
    sync = os.fsync
    monkeypatch.setattr(
        os,
        "fsync",
        lambda handle: seen.append({path.name for path in tmp_path.iterdir()}) or sync(handle),
    )
    write_tensors(tmp_path / "x", {"a": torch.zeros(3)}, {})
    (temporary,), after = seen
    assert is_temporary(temporary)
    assert temporary.endswith("-x")
    assert after == {"x"}


@pytest.mark.parametrize("kind", ["text", "tensors"])
@pytest.mark.parametrize("stage", ["fsync", "rename"])
def test_a_failure_on_the_way_leaves_the_old_file_whole_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, stage: str
) -> None:
    path = tmp_path / "file"

    def write(number: int) -> None:
        if kind == "text":
            write_text(path, f"{number}" * 1000)
        else:
            write_tensors(path, {"x": torch.full((1000,), number)}, {})

    write(1)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if stage == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(FileError, match="cannot be written: no space left on device"):
        write(2)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_name_is_never_seen_with_half_the_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    seen = []
    sync = os.fsync

    def spy(handle: int) -> None:
        seen.append(path.exists())
        sync(handle)

    monkeypatch.setattr(os, "fsync", spy)
    write_text(path, "whole")
    # The content is synced before the name is there, the directory after.
    assert seen == [False, True]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_files_are_as_open_as_the_person_wants_them(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_text(tmp_path / "text", "x")
        write_tensors(tmp_path / "tensors", {"x": torch.zeros(1)}, {})
    finally:
        os.umask(before)
    for name in ("text", "tensors"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize(
    "content", [b"", b"not a tensor file", b"\x08\x00\x00\x00\x00\x00\x00\x00{}"]
)
def test_files_that_are_no_tensors_are_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(
        FileError, match=r"x\.safetensors is not a file of tensors that can be read"
    ):
        read_tensors(path)


def test_a_pickle_is_refused_and_not_executed(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    torch.save({"x": torch.zeros(1)}, path)
    with pytest.raises(FileError, match="is not a file of tensors that can be read"):
        read_tensors(path)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="gone cannot be read: no such file"):
        read_text(tmp_path / "gone")
    with pytest.raises(FileError, match="gone cannot be written: no such file"):
        write_text(tmp_path / "directory" / "gone", "")
