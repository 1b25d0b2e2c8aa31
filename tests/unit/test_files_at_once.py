"""Several processes at one file: whoever reads it sees all of what one of them wrote; kills leave nothing that stays."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pslrec.files import whole_directory, write_bytes, write_text
from pslrec.files._places import is_temporary, temporary_name

# Writes a file of one letter, as long as the letter says, again and again.
WRITER = """
import sys
from pathlib import Path
from pslrec.files import whole_file
path, letter, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for _ in range(count):
    with whole_file(path) as file:
        for _ in range(ord(letter)):
            file.write(letter.encode() * 500)
"""
LETTERS = "abcd"


def start(path: Path, letter: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), letter, str(count)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def assert_whole(content: bytes) -> None:
    letter = content[:1]
    assert letter in LETTERS.encode()
    assert content == letter * 500 * ord(letter)


def read_while_written(path: Path, count: int) -> int:
    """Let all write the same file and read it all the time; gives how often it was read."""
    writers = [start(path, letter, count) for letter in LETTERS]
    n_reads = 0
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            assert_whole(path.read_bytes())
            n_reads += 1
    errors = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * len(writers), errors
    assert_whole(path.read_bytes())
    return n_reads


def test_a_file_that_several_write_is_never_torn(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert read_while_written(path, count=30) > 10
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_a_file_that_several_write_is_never_torn_in_thousands_of_writes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert read_while_written(path, count=1000) > 100
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_is_removed_by_the_next_that_writes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for _ in range(3):
        writer = start(path, "a", 10**6)
        while not any(is_temporary(each.name) for each in tmp_path.iterdir()):
            time.sleep(0.001)
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
    write_text(path, "after")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "after"


def test_only_leftovers_are_removed(tmp_path: Path) -> None:
    leftover, directory = tmp_path / temporary_name("x"), tmp_path / temporary_name("y")
    leftover.write_text("half")
    directory.mkdir()
    (directory / "half").write_text("half")
    for mine in (".pslrec", ".pslrec-0123456789abcdef", ".x.new", "pslrec-0123456789abcdef-x"):
        (tmp_path / mine).write_text("mine")
    before = {path.name for path in tmp_path.iterdir()}
    write_bytes(tmp_path / "file", b"x")
    assert {path.name for path in tmp_path.iterdir()} == before - {
        leftover.name,
        directory.name,
    } | {"file"}


def test_what_another_is_writing_is_left_alone(tmp_path: Path) -> None:
    with whole_directory(tmp_path / "directory") as place:
        write_text(place / "one", "1")
        write_text(tmp_path / "file", "x")
        write_text(place / "two", "2")
    assert sorted(path.name for path in (tmp_path / "directory").iterdir()) == ["one", "two"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["directory", "file"]
