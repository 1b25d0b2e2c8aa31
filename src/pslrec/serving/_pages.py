"""The pages of the service, each sent as one file that may not fetch anything from elsewhere."""

import base64
import hashlib
import re
from importlib.resources import files

from starlette.responses import Response


def page(name: str) -> Response:
    """A page of this package, with headers that allow its own scripts and styles only.

    Args:
        name: its file name.
    """
    content = _content(name)
    # Ids and titles come from somebody's data. Should one ever be taken for HTML, the browser still
    # runs and fetches nothing but what is listed here.
    policy = [
        "default-src 'none'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        f"script-src {_hashes(content, b'script')}",
        f"style-src {_hashes(content, b'style')}",
    ]
    headers = {
        "content-security-policy": "; ".join(policy),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }
    return Response(content, headers=headers, media_type="text/html")


def _content(name: str) -> bytes:
    """The page with the style and the script that it names put in their places."""
    directory = files("pslrec.serving")

    def inserted(found: re.Match[bytes]) -> bytes:
        return directory.joinpath(found[1].decode()).read_bytes()

    return re.sub(rb"\{(page\.\w+)\}", inserted, directory.joinpath(name).read_bytes())


def _hashes(content: bytes, tag: bytes) -> str:
    hashes = []
    # Hashes instead of `unsafe-inline`, so that only these very scripts and styles are allowed.
    for part in re.findall(rb"<%b>(.*?)</%b>" % (tag, tag), content, re.DOTALL):
        digest = hashlib.sha256(part).digest()
        hashes.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    return " ".join(hashes)
