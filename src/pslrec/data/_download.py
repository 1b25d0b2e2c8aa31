"""Fetching one file over HTTP: resumed where it stopped, verified, and in its place only when it is whole."""

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
DIGESTS: dict[str, Callable[[], Any]] = {
    "sha256": hashlib.sha256,
    "md5": partial(hashlib.md5, usedforsecurity=False),
}


class UnwritableError(DownloadError):
    """The place where a download shall go takes no files."""


def cache_directory() -> Path:
    """Where downloads are kept: `PSLREC_CACHE_DIR`, or `pslrec` in the platform's directory for caches."""
    chosen = os.environ.get("PSLREC_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    system = platform.system()
    if system == "Windows":
        return (
            Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
            / "pslrec"
            / "cache"
        )
    if system == "Darwin":
        return Path.home() / "Library" / "Caches" / "pslrec"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pslrec"


def download(
    url: str, destination: Path, *, checksum: str | None = None, on_progress: Progress | None = None
) -> Path:
    """Fetch one file; an earlier attempt that was cut off is continued.

    Bytes go to `destination` with `.part` appended, and are renamed once length and checksum are right, so
    what is at `destination` is always whole. A part survives a lost connection and Ctrl-C; it is thrown away
    when the file has changed on the server since, or when the checksum is wrong.

    Args:
        url: an http or https address.
        destination: where the file shall be; missing directories are made.
        checksum: what the content must hash to, as "sha256:..." or "md5:..."; `None` checks the length only.
        on_progress: called with the bytes at hand and the bytes in all (`None` if the server does not say).

    Returns:
        `destination`.
    """
    if not url.startswith(("http://", "https://")):
        raise DownloadError(f"`url` must start with http:// or https://, got {url}")
    part = _Part(destination)
    with _writing(destination):
        destination.parent.mkdir(parents=True, exist_ok=True)
        if not part.can_continue(url, is_verified=checksum is not None):
            part.discard()
    response = _respond(url, part)
    if response is not None:
        with response:
            _receive(url, response, part, on_progress)
    if checksum is not None and not matches(part.path, checksum):
        part.discard()
        raise DownloadError(
            f"what came from {url} does not have the checksum {checksum}; it was deleted, try again"
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
        raise ValueError(
            f"`checksum` must start with one of {', '.join(DIGESTS)} and a colon, got {checksum}"
        )
    with path.open("rb") as file:
        return hashlib.file_digest(file, DIGESTS[algorithm]).hexdigest() == digest.lower()


@dataclass(frozen=True)
class _Part:
    """The bytes received so far, and beside them a note of which version of which file they belong to."""

    destination: Path

    @property
    def path(self) -> Path:
        return self.destination.with_name(self.destination.name + ".part")

    @property
    def note(self) -> Path:
        return self.destination.with_name(self.destination.name + ".part.json")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def origin(self) -> dict[str, str]:
        try:
            origin = json.loads(self.note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return origin if isinstance(origin, dict) else {}

    def can_continue(self, url: str, *, is_verified: bool) -> bool:
        origin = self.origin()
        # Without a validator only a checksum could tell that the two halves are of one file.
        return origin.get("url") == url and (bool(origin.get("validator")) or is_verified)

    def headers(self) -> dict[str, str]:
        validator = self.origin().get("validator")
        return {"Range": f"bytes={self.size}-"} | ({"If-Range": validator} if validator else {})

    def is_continued_by(self, response: HTTPResponse) -> bool:
        starts_here = response.headers.get("Content-Range", "").startswith(f"bytes {self.size}-")
        return starts_here and _validator(response) == self.origin().get("validator", "")

    def remember(self, url: str, validator: str) -> None:
        write_text(
            self.note, json.dumps({"url": url, "validator": validator}), error=UnwritableError
        )

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def publish(self) -> None:
        self.path.replace(self.destination)
        self.note.unlink(missing_ok=True)
        sync_directory(self.destination.parent)


def _respond(url: str, part: _Part) -> HTTPResponse | None:
    """The answer that carries the missing bytes, or all of them; `None` if none are missing."""
    if part.size:
        try:
            response = _request(url, part.headers())
        except HTTPError as refusal:
            with refusal:
                if refusal.headers.get("Content-Range") == f"bytes */{part.size}":
                    return None
        else:
            # A server that does not know ranges, or knows that the file has changed, sends it whole.
            if response.status != PARTIAL_CONTENT or part.is_continued_by(response):
                return response
            response.close()
        part.discard()
    return _request(url, {})


def _request(url: str, headers: Mapping[str, str]) -> HTTPResponse:
    # A compressed transfer would make lengths and ranges mean something else.
    request = Request(
        url, headers={"User-Agent": "pslrec", "Accept-Encoding": "identity", **headers}
    )
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
    continues = response.status == PARTIAL_CONTENT
    received = part.size if continues else 0
    length = response.headers.get("Content-Length")
    total = received + int(length) if length else None
    with _writing(part.destination), part.path.open("ab" if continues else "wb") as file:
        part.remember(url, _validator(response))
        for chunk in _chunks(url, response):
            file.write(chunk)
            received += len(chunk)
            if on_progress is not None:
                on_progress(received, total)
        file.flush()
        os.fsync(file.fileno())
    if total is not None and received != total:
        raise DownloadError(
            f"{url} stopped after {received:,} of {total:,} bytes; run again to continue there"
        )


def _chunks(url: str, response: HTTPResponse) -> Iterator[bytes]:
    while True:
        try:
            chunk = response.read(CHUNK_BYTES)
        except (OSError, HTTPException) as error:
            message = f"the connection to {url} broke: {_reason(error)}; run again to continue where it stopped"
            raise DownloadError(message) from error
        if not chunk:
            return
        yield chunk


@contextmanager
def _writing(destination: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{destination} cannot be written: {_reason(error)}; choose another directory or make room"
        raise UnwritableError(message) from error


def _validator(response: HTTPResponse) -> str:
    # A weak tag promises equal meaning, not equal bytes.
    tag = response.headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")


def _reason(error: BaseException | str) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
