"""The pages of the service: single files that fetch nothing from elsewhere, and are not allowed to."""

import base64
import hashlib
import re
from importlib.resources import files


def page(name: str) -> tuple[bytes, dict[str, str]]:
    """A page of the package with the headers that keep it to itself.

    Args:
        name: of the file.
    """
    content = files("pslrec.serving").joinpath(name).read_bytes()
    policy = [
        "default-src 'none'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        *(
            f"{part}-src {' '.join(_hashes(content, tag))}"
            for part, tag in (("script", b"script"), ("style", b"style"))
        ),
    ]
    return content, {
        "content-security-policy": "; ".join(policy),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }


def _hashes(content: bytes, tag: bytes) -> list[str]:
    parts = re.findall(rb"<%b>(.*?)</%b>" % (tag, tag), content, re.DOTALL)
    return [
        f"'sha256-{base64.b64encode(hashlib.sha256(part).digest()).decode()}'" for part in parts
    ]
