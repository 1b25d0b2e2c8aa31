import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pslrec.data import _download as download_module
from pslrec.data._download import cache_directory, download, matches
from pslrec.errors import DownloadError

CONTENT = bytes(range(256)) * 40
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


@dataclass
class FileServer:
    """A file behind HTTP that can misbehave on request."""

    url: str = ""
    content: bytes = CONTENT
    etag: str | None = '"one"'
    status: int = 200
    knows_ranges: bool = True
    checks_if_range: bool = True
    cut_after: int | None = None
    says_length: bool = True
    ranges: list[str | None] = field(default_factory=list)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        asked = request.headers.get("Range")
        self.ranges.append(asked)
        if self.status != 200:
            return request.send_error(self.status)
        start = self._start(asked, request.headers.get("If-Range"))
        if start and start >= len(self.content):
            request.send_response(416)
            request.send_header("Content-Range", f"bytes */{len(self.content)}")
            request.send_header("Content-Length", "0")
            return request.end_headers()
        request.send_response(206 if start else 200)
        self._send(request, start)
        return None

    def _start(self, asked: str | None, if_range: str | None) -> int:
        is_same = if_range is None or if_range == self.etag or not self.checks_if_range
        if not asked or not self.knows_ranges or not is_same:
            return 0
        return int(asked.removeprefix("bytes=").removesuffix("-"))

    def _send(self, request: BaseHTTPRequestHandler, start: int) -> None:
        body = self.content[start:]
        if start:
            last = len(self.content) - 1
            request.send_header("Content-Range", f"bytes {start}-{last}/{len(self.content)}")
        if self.etag:
            request.send_header("ETag", self.etag)
        if self.says_length:
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body if self.cut_after is None else body[: self.cut_after])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download_module, "CHUNK_BYTES", 1000)
    state = FileServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.answer(self)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        state.url = f"http://127.0.0.1:{http.server_port}/data.csv"
        yield state
        http.shutdown()
        thread.join()


def files_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def break_off(
    server: FileServer, destination: Path, *, after: int = 3500, checksum: str | None = None
) -> None:
    server.cut_after = after
    with pytest.raises(DownloadError, match="run again to resume"):
        download(server.url, destination, checksum=checksum)
    server.cut_after = None


def test_fresh_download_is_whole_verified_and_alone(server: FileServer, tmp_path: Path) -> None:
    destination = tmp_path / "new" / "data.csv"

    assert download(server.url, destination, checksum=SHA256) == destination
    assert destination.read_bytes() == CONTENT
    assert files_in(destination.parent) == {"data.csv"}
    assert server.ranges == [None]


def test_progress_rises_to_the_total(server: FileServer, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    download(server.url, tmp_path / "data.csv", on_progress=lambda *now: seen.append(now))

    received = [now for now, _ in seen]
    assert received == sorted(received)
    assert len(seen) > 5
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert {total for _, total in seen} == {len(CONTENT)}


def test_unknown_length_is_reported_as_none(server: FileServer, tmp_path: Path) -> None:
    server.says_length = False
    totals: set[int | None] = set()
    download(server.url, tmp_path / "data.csv", on_progress=lambda _, total: totals.add(total))

    assert totals == {None}
    assert (tmp_path / "data.csv").read_bytes() == CONTENT


def test_truncated_body_leaves_a_part_but_no_file(server: FileServer, tmp_path: Path) -> None:
    server.cut_after = 3500
    with pytest.raises(DownloadError, match=r"stopped after 3,500 of 10,240 bytes; run again"):
        download(server.url, tmp_path / "data.csv")

    assert not (tmp_path / "data.csv").exists()
    assert (tmp_path / "data.csv.part").read_bytes() == CONTENT[:3500]


def test_second_attempt_asks_for_the_missing_bytes_only(server: FileServer, tmp_path: Path) -> None:
    destination = tmp_path / "data.csv"
    break_off(server, destination)
    seen: list[tuple[int, int | None]] = []
    download(server.url, destination, on_progress=lambda *now: seen.append(now))

    assert server.ranges == [None, "bytes=3500-"]
    assert seen[0] == (4500, len(CONTENT))
    assert destination.read_bytes() == CONTENT
    assert files_in(tmp_path) == {"data.csv"}


def test_a_part_can_be_continued_more_than_once(server: FileServer, tmp_path: Path) -> None:
    destination = tmp_path / "data.csv"
    break_off(server, destination, after=3000)
    break_off(server, destination, after=2000)
    download(server.url, destination, checksum=SHA256)

    assert server.ranges == [None, "bytes=3000-", "bytes=5000-"]
    assert destination.read_bytes() == CONTENT


def test_server_without_ranges_sends_everything_again(server: FileServer, tmp_path: Path) -> None:
    destination = tmp_path / "data.csv"
    server.knows_ranges = False
    break_off(server, destination)
    download(server.url, destination)

    assert server.ranges == [None, "bytes=3500-"]
    assert destination.read_bytes() == CONTENT


@pytest.mark.parametrize("checks_if_range", [True, False])
def test_changed_file_is_not_glued_to_the_old_part(
    server: FileServer, tmp_path: Path, checks_if_range: bool
) -> None:
    destination = tmp_path / "data.csv"
    break_off(server, destination)
    server.content, server.etag, server.checks_if_range = CONTENT[::-1], '"two"', checks_if_range
    download(server.url, destination)

    assert destination.read_bytes() == CONTENT[::-1]


def test_file_that_became_shorter_than_the_part_is_fetched_anew(
    server: FileServer, tmp_path: Path
) -> None:
    destination = tmp_path / "data.csv"
    break_off(server, destination)
    server.content, server.checks_if_range = b"short", False
    download(server.url, destination)

    assert destination.read_bytes() == b"short"
    assert server.ranges == [None, "bytes=3500-", None]


def test_part_that_is_already_whole_is_only_renamed(server: FileServer, tmp_path: Path) -> None:
    destination = tmp_path / "data.csv"
    break_off(server, destination)
    (tmp_path / "data.csv.part").write_bytes(CONTENT)
    download(server.url, destination, checksum=SHA256)

    assert server.ranges == [None, f"bytes={len(CONTENT)}-"]
    assert destination.read_bytes() == CONTENT


def test_part_without_validator_is_continued_only_if_a_checksum_will_tell(
    server: FileServer, tmp_path: Path
) -> None:
    server.etag = None
    break_off(server, tmp_path / "unverified")
    download(server.url, tmp_path / "unverified")
    break_off(server, tmp_path / "verified", checksum=SHA256)
    download(server.url, tmp_path / "verified", checksum=SHA256)

    assert server.ranges == [None, None, None, "bytes=3500-"]
    assert (tmp_path / "verified").read_bytes() == (tmp_path / "unverified").read_bytes() == CONTENT


def test_part_of_another_address_is_not_continued(server: FileServer, tmp_path: Path) -> None:
    destination = tmp_path / "data.csv"
    break_off(server, destination)
    download(server.url + "?mirror", destination)

    assert server.ranges == [None, None]


def test_part_with_a_damaged_note_is_not_continued(server: FileServer, tmp_path: Path) -> None:
    destination = tmp_path / "data.csv"
    break_off(server, destination)
    (tmp_path / "data.csv.part.json").write_text("{")
    download(server.url, destination)

    assert server.ranges == [None, None]
    assert destination.read_bytes() == CONTENT


def test_wrong_checksum_deletes_what_came(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="does not have the checksum sha256:00"):
        download(server.url, tmp_path / "data.csv", checksum="sha256:" + "00" * 32)

    assert files_in(tmp_path) == set()


def test_wrong_checksum_leaves_an_older_file_alone(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("older")
    with pytest.raises(DownloadError):
        download(server.url, tmp_path / "data.csv", checksum="md5:" + "00" * 16)

    assert (tmp_path / "data.csv").read_text() == "older"


@pytest.mark.parametrize(
    ("status", "text"), [(404, "404 Not Found"), (503, "503 Service Unavailable")]
)
def test_refusal_says_what_the_server_said(
    server: FileServer, tmp_path: Path, status: int, text: str
) -> None:
    server.status = status
    with pytest.raises(DownloadError, match=f"data.csv answered {text}"):
        download(server.url, tmp_path / "data.csv")

    assert files_in(tmp_path) == set()


def test_refusal_keeps_the_part_for_a_better_day(server: FileServer, tmp_path: Path) -> None:
    break_off(server, tmp_path / "data.csv")
    server.status = 503
    with pytest.raises(DownloadError, match="503"):
        download(server.url, tmp_path / "data.csv")

    assert (tmp_path / "data.csv.part").read_bytes() == CONTENT[:3500]


def test_no_network_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as http:
        port = http.server_port

    with pytest.raises(DownloadError, match=r"could not be reached: .*; check the network"):
        download(f"http://127.0.0.1:{port}/data.csv", tmp_path / "data.csv")


def test_interrupt_keeps_the_part(server: FileServer, tmp_path: Path) -> None:
    def press_control_c(received: int, _: int | None) -> None:
        if received == 5000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(server.url, tmp_path / "data.csv", on_progress=press_control_c)
    assert (tmp_path / "data.csv.part").read_bytes() == CONTENT[:5000]

    download(server.url, tmp_path / "data.csv", checksum=SHA256)
    assert server.ranges == [None, "bytes=5000-"]


def test_file_in_place_of_the_directory_is_said(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(
        DownloadError, match=r"taken/data\.csv cannot be written: .*; choose another directory"
    ):
        download(server.url, tmp_path / "taken" / "data.csv")

    assert server.ranges == []


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
)
def test_unwritable_directory_is_said(server: FileServer, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(DownloadError, match="cannot be written: Permission denied"):
        download(server.url, tmp_path / "data.csv")


def test_refused_opening_of_the_part_is_said(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DownloadError, match="cannot be written: Permission denied"):
        download(server.url, tmp_path / "data.csv")


@pytest.mark.parametrize("url", ["ftp://example.org/data.csv", "file:///etc/hosts", "data.csv"])
def test_other_addresses_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadError, match="must start with http"):
        download(url, tmp_path / "data.csv")


def test_checksums_are_compared_by_their_algorithm(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(CONTENT)

    assert matches(path, SHA256.upper().replace("SHA256", "sha256"))
    assert matches(path, "md5:" + hashlib.md5(CONTENT).hexdigest())
    assert not matches(path, "md5:" + "0" * 32)
    with pytest.raises(ValueError, match="must start with one of sha256, md5"):
        matches(path, "0" * 64)


def test_cache_directory_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.delenv("PSLREC_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_directory() == Path.home() / ".cache" / "pslrec"

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "pslrec"

    monkeypatch.setenv("PSLREC_CACHE_DIR", str(tmp_path / "own"))
    assert cache_directory() == tmp_path / "own"


@pytest.mark.parametrize(
    ("system", "ending"), [("Darwin", "Library/Caches/pslrec"), ("Windows", "pslrec/cache")]
)
def test_cache_directory_follows_the_platform(
    monkeypatch: pytest.MonkeyPatch, system: str, ending: str
) -> None:
    monkeypatch.delenv("PSLREC_CACHE_DIR", raising=False)
    monkeypatch.setattr("platform.system", lambda: system)

    assert cache_directory().as_posix().endswith(ending)
