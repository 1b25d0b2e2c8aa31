"""Answers in JSON."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response

NO_STORE = {"cache-control": "no-store"}


def json_answer(content: dict[str, Any]) -> Response:
    """A successful answer."""
    # For a list of 20 items this takes 4 µs, the standard library 18.
    body = to_json(content)
    return Response(body, headers=NO_STORE, media_type="application/json")


def problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """An answer that says in one sentence what went wrong.

    Args:
        status: HTTP status of the answer.
        sentence: what is wrong and what to do about it.
        headers: further headers, such as `retry-after`.
    """
    # What a client sent may be quoted here, with characters that only the standard library encodes.
    body = json.dumps({"error": sentence}).encode()
    all_headers = {**NO_STORE, **(headers or {})}
    return Response(body, status, headers=all_headers, media_type="application/json")
