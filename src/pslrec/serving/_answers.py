"""Answers in JSON."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

NO_STORE = {"cache-control": "no-store"}


def json_answer(content: dict[str, Any]) -> Response:
    """A successful answer."""
    body = json.dumps(content, separators=(",", ":")).encode()
    return Response(body, headers=NO_STORE, media_type="application/json")


def problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """An answer that says in one sentence what went wrong.

    Args:
        status: HTTP status of the answer.
        sentence: what is wrong and what to do about it.
        headers: further headers, such as `retry-after`.
    """
    body = json.dumps({"error": sentence}).encode()
    all_headers = {**NO_STORE, **(headers or {})}
    return Response(body, status, headers=all_headers, media_type="application/json")
