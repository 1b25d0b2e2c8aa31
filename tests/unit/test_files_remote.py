"""Addresses of object storage: what they are, what is shown of them, and copying from and to them."""

import builtins
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pslrec.files import (
    FileError,
    address_of,
    at_hand,
    is_address,
    local_path,
    read_text,
    shown_address,
    store_directory,
    stored_files,
    working_directory,
    write_text,
)

fsspec = pytest.importorskip("fsspec")
SECRETS = ("hunter2", "abc123")
WITH_SECRETS = "s3://me:hunter2@bucket/run?token=abc123"


@pytest.fixture
def storage() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


@pytest.mark.parametrize("scheme", ["s3", "gs", "az", "hf", "memory", "abfss"])
def test_schemes_of_object_storage_are_addresses_also_as_paths(scheme):
    address = f"{scheme}://bucket/a/b"
    assert is_address(address)
    assert is_address(Path(address))
    assert address_of(Path(address)) == address


@pytest.mark.parametrize("text", ["a/b", "C:/runs", "https://host/x", "runs/s3:", "./s3://b"])
def test_other_places_are_not(text):
    assert not is_address(text)


@pytest.mark.parametrize("call", [address_of, stored_files, local_path])
def test_no_message_shows_a_password_or_a_query(call):
    with pytest.raises(FileError) as raised:
        call(WITH_SECRETS)
    assert "bucket/run" in str(raised.value)
    assert not any(secret in str(raised.value) for secret in SECRETS)
    assert not any(secret in shown_address(WITH_SECRETS) for secret in SECRETS)


def test_legal_signs_of_providers_are_not_taken_for_passwords():
    for address in ("abfs://container@account.dfs/x", "hf://datasets/a/b@main/x", "s3://b/p-?.csv"):
        assert address_of(address) == address


def test_an_error_of_the_storage_is_one_sentence_without_secrets(monkeypatch):
    def broken(address: str) -> None:
        raise RuntimeError(f"GET https://me:hunter2@host/x?sig=abc123 failed for {address}")

    monkeypatch.setattr("fsspec.core.url_to_fs", broken)
    with pytest.raises(FileError, match=r"^s3://bucket/run cannot be read \(RuntimeError: GET"):
        stored_files("s3://bucket/run")
    with pytest.raises(FileError) as raised:
        stored_files("s3://bucket/run")
    assert not any(secret in str(raised.value) for secret in SECRETS)
    # A traceback would print the cause with its message.
    assert raised.value.__suppress_context__
    assert raised.value.__cause__ is None


def test_a_missing_library_is_named(monkeypatch):
    real = builtins.__import__

    def without_fsspec(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("fsspec"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "fsspec.core")
    monkeypatch.setattr(builtins, "__import__", without_fsspec)
    with pytest.raises(FileError, match=r"needs fsspec; install it with `pip install 'pslrec\[rem"):
        stored_files("memory://bucket/run")


def test_files_directories_and_patterns_are_listed_and_fetched(storage):
    storage.pipe("/bucket/log/day=1/a.csv", b"one")
    storage.pipe("/bucket/log/day=2/a.csv", b"two!")
    storage.pipe("/bucket/log/b.txt", b"x")
    found = stored_files("memory://bucket/log")
    assert [(file.name, file.size) for file in found] == [
        ("b.txt", 1),
        ("day=1/a.csv", 3),
        ("day=2/a.csv", 4),
    ]
    with at_hand("memory://bucket/log/b.txt") as copy:
        assert (copy.name, read_text(copy)) == ("b.txt", "x")
    with at_hand("memory://bucket/log/*/a.csv") as copy:
        names = [file.relative_to(copy).as_posix() for file in sorted(copy.rglob("*.csv"))]
        assert names == ["day=1/a.csv", "day=2/a.csv"]
        assert read_text(copy / "day=2" / "a.csv") == "two!"
    assert not copy.exists()
    with pytest.raises(FileError, match="there are no files at this address"):
        stored_files("memory://bucket/nothing")


def test_messages_about_a_copy_name_the_address(storage):
    storage.pipe("/bucket/a.csv", b"x")

    def complain() -> None:
        with at_hand("memory://bucket/a.csv") as copy:
            raise FileError(f"{copy} is odd")

    with pytest.raises(FileError, match=r"^memory://bucket/a\.csv is odd$"):
        complain()


def test_the_mark_of_a_complete_directory_is_stored_last(storage, tmp_path, monkeypatch):
    order = []
    put = type(storage).put_file

    def noted(self: Any, local: str, remote: str, **more: Any) -> Any:
        order.append(Path(remote).name)
        return put(self, local, remote, **more)

    monkeypatch.setattr(type(storage), "put_file", noted)
    for name in ("a", "format", "z", "lock"):
        write_text(tmp_path / name, name)
    store_directory(tmp_path, "memory://bucket/run", last="format")
    assert order == ["a", "z", "format"]


def test_what_was_written_before_an_error_is_stored_and_resumed(storage):
    options = {"mark": "format", "last": "metrics"}
    address = Path("memory://bucket/run")

    def begin() -> None:
        with working_directory(address, resume=False, **options) as directory:
            write_text(directory / "format", "1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin()
    with pytest.raises(FileError, match="memory://bucket/run already holds a run"):
        begin()
    with working_directory(address, resume=True, **options) as directory:
        assert read_text(directory / "format") == "1"
        write_text(directory / "metrics", "{}")
    assert storage.cat("/bucket/run/metrics") == b"{}"
