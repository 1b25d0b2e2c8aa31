"""Downloading one file over HTTP: resumed, verified, and in its place only when it is complete."""

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from pslrec.errors import DownloadError
from pslrec.files import sync_directory, write_text

Progress = Callable[[int, int | None], None]

CHUNK_BYTES = 1 << 18
TIMEOUT_SECONDS = 30.0
PARTIAL_CONTENT = 206
RANGE_NOT_SATISFIABLE = 416
# Some publishers give MD5 only. Here it detects damage, not attacks, and without the remark systems
# with a strict security policy refuse to compute it.
DIGESTS: dict[str, Callable[[], Any]] = {
    "sha256": hashlib.sha256,
    "md5": partial(hashlib.md5, usedforsecurity=False),
}


class UnwritableError(DownloadError):
    """A download cannot be written where it should go."""


def cache_directory() -> Path:
    """Where downloads are kept: `PSLREC_CACHE_DIR`, or `pslrec` in the user's cache directory."""
    chosen = os.environ.get("PSLREC_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    system = platform.system()
    if system == "Windows":
        local = os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")
        return Path(local) / "pslrec" / "cache"
    if system == "Darwin":
        return Path.home() / "Library" / "Caches" / "pslrec"
    # The standard says that an empty variable counts as one that is not set.
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "pslrec"


def download(
    url: str, destination: Path, *, checksum: str | None = None, on_progress: Progress | None = None
) -> Path:
    """Download one file; an earlier attempt that was cut off is resumed.

    Bytes go to `destination` with `.part` appended. This file is renamed once length and checksum
    are right, so a file at `destination` is always complete. A part survives a lost connection and
    Ctrl-C; it is discarded when the file has since changed on the server, or when the checksum is
    wrong.

    Args:
        url: an http or https address.
        destination: where the file should be; missing directories are created.
        checksum: what the content must hash to, as "sha256:..." or "md5:..."; `None` checks the
            length only.
        on_progress: called with the bytes received so far and the bytes expected (`None` if the
            server does not say).

    Returns:
        `destination`.
    """
    if not url.startswith(("http://", "https://")):
        raise DownloadError(f"`url` must start with http:// or https://, got {url}")
    part = _Part(destination)
    with _writing(destination):
        destination.parent.mkdir(parents=True, exist_ok=True)
        # A part of another file, or of one that may have changed, is of no use.
        if not part.can_continue(url, is_verified=checksum is not None):
            part.discard()
    response = _respond(url, part)
    if response is not None:
        with response:
            _receive(url, response, part, on_progress)
    if checksum is not None and not matches(part.path, checksum):
        # Otherwise the next attempt would resume it, and fail again.
        part.discard()
        raise DownloadError(
            f"the download from {url} does not have the checksum {checksum}; "
            "it was deleted, try again"
        )
    with _writing(destination):
        part.publish()
    return destination


def matches(path: Path, checksum: str) -> bool:
    """Whether a file has a checksum, given as "sha256:..." or "md5:...".

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile() as file:
    ...     matches(Path(file.name), "md5:d41d8cd98f00b204e9800998ecf8427e")
    True
    """
    algorithm, separator, digest = checksum.partition(":")
    if algorithm not in DIGESTS or not separator:
        allowed = ", ".join(DIGESTS)
        raise ValueError(f"`checksum` must start with one of {allowed} and a colon, got {checksum}")
    with path.open("rb") as file:
        return hashlib.file_digest(file, DIGESTS[algorithm]).hexdigest() == digest.lower()


@dataclass(frozen=True)
class _Part:
    """The bytes received so far, with a note of the file and version they belong to."""

    destination: Path

    @property
    def path(self) -> Path:
        return self.destination.with_name(self.destination.name + ".part")

    @property
    def note(self) -> Path:
        return self.destination.with_name(self.destination.name + ".part.json")

    @property
    def size(self) -> int:
        if not self.path.exists():
            return 0
        return self.path.stat().st_size

    def origin(self) -> dict[str, str]:
        try:
            origin = json.loads(self.note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        # A note that something else has written counts as none.
        if not isinstance(origin, dict):
            return {}
        return origin

    def can_continue(self, url: str, *, is_verified: bool) -> bool:
        origin = self.origin()
        if origin.get("url") != url:
            return False
        # Without a validator only a checksum can show that the two halves are of one file.
        return bool(origin.get("validator")) or is_verified

    def headers(self) -> dict[str, str]:
        headers = {"Range": f"bytes={self.size}-"}
        validator = self.origin().get("validator")
        if validator:
            # Asks for the whole file if it has changed.
            headers["If-Range"] = validator
        return headers

    def is_continued_by(self, response: HTTPResponse) -> bool:
        # Some servers ignore `If-Range`, or send another range than the one asked for.
        content_range = response.headers.get("Content-Range", "")
        if not content_range.startswith(f"bytes {self.size}-"):
            return False
        return _validator(response) == self.origin().get("validator", "")

    def remember(self, url: str, validator: str) -> None:
        origin = {"url": url, "validator": validator}
        write_text(self.note, json.dumps(origin), error=UnwritableError)

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def publish(self) -> None:
        self.path.replace(self.destination)
        # After the rename: a part without its note would be downloaded again from the start.
        self.note.unlink(missing_ok=True)
        sync_directory(self.destination.parent)


def _respond(url: str, part: _Part) -> HTTPResponse | None:
    """The response that carries the missing bytes, or all of them; `None` if none are missing."""
    if part.size:
        try:
            response = _request(url, part.headers())
        except HTTPError as refusal:
            with refusal:
                # The server refuses the range because the part is already as long as the file.
                if refusal.headers.get("Content-Range") == f"bytes */{part.size}":
                    return None
        else:
            # A server that does not support ranges, or whose file has changed, sends all of it.
            if response.status != PARTIAL_CONTENT or part.is_continued_by(response):
                return response
            response.close()
        part.discard()
    return _request(url, {})


def _request(url: str, headers: Mapping[str, str]) -> HTTPResponse:
    # Lengths and ranges of a compressed transfer would not be those of the file.
    sent = {"User-Agent": "pslrec", "Accept-Encoding": "identity", **headers}
    request = Request(url, headers=sent)
    try:
        response: HTTPResponse = urlopen(request, timeout=TIMEOUT_SECONDS)
    except HTTPError as error:
        if error.code == RANGE_NOT_SATISFIABLE and "Range" in headers:
            raise
        with error:
            raise DownloadError(f"{url} answered {error.code} {error.reason}") from error
    except URLError as error:
        raise DownloadError(
            f"{url} could not be reached: {_reason(error.reason)}; check the network"
        ) from error
    except (OSError, HTTPException) as error:
        raise DownloadError(f"{url} gave no proper answer: {_reason(error)}") from error
    return response


def _receive(url: str, response: HTTPResponse, part: _Part, on_progress: Progress | None) -> None:
    received = 0
    mode = "wb"
    if response.status == PARTIAL_CONTENT:
        received = part.size
        mode = "ab"
    total = None
    length = response.headers.get("Content-Length")
    if length:
        total = received + int(length)
    with _writing(part.destination), part.path.open(mode) as file:
        # Before the first byte: a part whose origin is unknown cannot be resumed.
        part.remember(url, _validator(response))
        for chunk in _chunks(url, response):
            file.write(chunk)
            received += len(chunk)
            if on_progress is not None:
                on_progress(received, total)
        # On disk before the rename: a power cut must not leave an incomplete file under its name.
        file.flush()
        os.fsync(file.fileno())
    if total is not None and received != total:
        raise DownloadError(
            f"{url} stopped after {received:,} of {total:,} bytes; run again to resume there"
        )


def _chunks(url: str, response: HTTPResponse) -> Iterator[bytes]:
    while True:
        try:
            chunk = response.read(CHUNK_BYTES)
        except (OSError, HTTPException) as error:
            raise DownloadError(
                f"the connection to {url} broke: {_reason(error)}; "
                "run again to resume where it stopped"
            ) from error
        if not chunk:
            return
        yield chunk


@contextmanager
def _writing(destination: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnwritableError(
            f"{destination} cannot be written: {_reason(error)}; "
            "choose another directory or make room"
        ) from error


def _validator(response: HTTPResponse) -> str:
    tag = response.headers.get("ETag", "")
    # A weak tag promises equal meaning, not equal bytes.
    if tag and not tag.startswith("W/"):
        return tag
    return response.headers.get("Last-Modified", "")


def _reason(error: BaseException | str) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
