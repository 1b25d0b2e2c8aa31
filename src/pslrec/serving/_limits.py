"""What every request passes before it is routed: its head, `Host`, token, and a free place."""

import asyncio
import hmac
import logging

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pslrec.errors import shortened
from pslrec.serving._answers import problem
from pslrec.serving._connections import LARGEST_HEAD, current_connection, too_large_head
from pslrec.serving._local_names import is_local_name
from pslrec.serving._options import ServiceOptions

logger = logging.getLogger(__name__)

# Pages and descriptions that hold nothing of the model.
OPEN_PATHS = frozenset({"/", "/docs", "/openapi.json", "/health"})


class Limits:
    """ASGI middleware that refuses requests, and answers those that fail.

    Args:
        app: handles the requests that are let in.
        options: the token and the limits.
        local_names_only: see `create_app`.
    """

    def __init__(self, app: ASGIApp, options: ServiceOptions, *, local_names_only: bool) -> None:
        self._app = app
        self._options = options
        self._local_names_only = local_names_only
        self._n_requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection = current_connection.get()
        if connection is not None:
            connection.request_began()
        self._n_requests += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._n_requests -= 1
            if connection is not None:
                connection.request_ended()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False

        async def watched_send(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, watched_send)
        except HTTPException as refusal:
            answer = problem(refusal.status_code, refusal.detail, refusal.headers)
        except ClientDisconnect:
            # There is nobody left to answer.
            return
        except asyncio.CancelledError:
            # Only a server that stops without waiting cancels requests. That is what its operator
            # asked for, so the client gets a sentence, and the log no traceback.
            answer = problem(
                503,
                "the service is stopping; try again when it is back",
                {"connection": "close"},
            )
        except Exception:
            logger.exception("%s %s failed", scope["method"], scope["path"])
            answer = problem(500, "the service failed to answer this request; its log says why")
        else:
            return
        # An answer that was begun cannot be taken back.
        if not is_begun:
            await answer(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        if _head_size(scope) > LARGEST_HEAD:
            raise HTTPException(431, too_large_head(), {"connection": "close"})
        if self._local_names_only:
            self._check_host(Headers(scope=scope))
        if self._options.token is not None and scope["path"] not in OPEN_PATHS:
            self._check_token(Headers(scope=scope), self._options.token)
        # This request is counted already. A busy service still tells that it is alive.
        if self._n_requests > self._options.concurrent_requests and scope["path"] != "/health":
            raise HTTPException(
                503, "the service is busy; try again in a second", {"retry-after": "1"}
            )

    def _check_host(self, headers: Headers) -> None:
        hosts = headers.getlist("host")
        foreign = [host for host in hosts if not is_local_name(host)]
        if hosts and not foreign:
            return
        got = f"`{shortened(foreign[0])}`" if foreign else "none"
        raise HTTPException(
            421,
            f"`Host` must be localhost, 127.0.0.1 or [::1], with any port, got {got}: without a "
            "token this service answers its own machine only; use one of these names, or start "
            "the service with a token",
        )

    def _check_token(self, headers: Headers, token: str) -> None:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # Compared as bytes, since text that is not ASCII raises, and in a time that does not
        # depend on how much of the token is right.
        is_right = hmac.compare_digest(given.strip().encode(), token.encode())
        if scheme.lower() != "bearer" or not is_right:
            raise HTTPException(
                401,
                "this service needs a token: send it as `Authorization: Bearer TOKEN`",
                {"www-authenticate": "Bearer"},
            )


def _head_size(scope: Scope) -> int:
    """Bytes of a request's head, written with one space wherever HTTP allows several."""
    target = scope.get("raw_path") or scope["path"].encode()
    size = len(f"{scope['method']}  HTTP/1.1\r\n\r\n") + len(target)
    if scope["query_string"]:
        size += len("?") + len(scope["query_string"])
    for name, value in scope["headers"]:
        size += len(name) + len(": ") + len(value) + len("\r\n")
    return size
