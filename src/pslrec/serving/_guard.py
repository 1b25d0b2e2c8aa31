"""What every request passes before it is looked at: name, token, and the limits."""

import hmac
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from pslrec.serving._identifiers import shortened
from pslrec.serving._local_names import is_local_name
from pslrec.serving._options import ServiceOptions

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# Pages and descriptions that hold nothing of the model.
OPEN_PATHS = frozenset({"/", "/docs", "/openapi.json", "/health"})


class Refusal(Exception):  # noqa: N818 - the answer to a request, not a fault
    """A request that is answered with a sentence.

    Args:
        status: of the answer.
        sentence: what is wrong and what to do.
        headers: of the answer, beside the usual ones.
    """

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, headers or {}


class Guard:
    """Lets requests in, or refuses them.

    Args:
        options: token and limits.
    """

    def __init__(self, options: ServiceOptions) -> None:
        self._options = options
        self._takes_local_names_only = False
        self._token = None if options.token is None else options.token.encode()
        self._n_requests = 0

    def take_local_names_only(self) -> None:
        """From now on refuse requests for another `Host` than this machine.

        A page of a foreign site can let its own name point to 127.0.0.1, and the browser would then
        let it read what a service on this machine answers. Such a request carries the foreign name.
        """
        self._takes_local_names_only = True

    @contextmanager
    def admit(self, scope: Message) -> Iterator[None]:
        """Count a request while it is in work; raise if it may not be."""
        self._check_host(scope)
        self._check_token(scope)
        # A service that is busy still tells that it is alive.
        if self._n_requests >= self._options.concurrent_requests and scope["path"] != "/health":
            raise Refusal(503, "the service is busy; try again in a second", {"retry-after": "1"})
        self._n_requests += 1
        try:
            yield
        finally:
            self._n_requests -= 1

    async def body(self, scope: Message, receive: Receive) -> bytes:
        """The body of a request, as long as it is not too large; `ConnectionAbortedError` where the client went away."""
        declared = header(scope, b"content-length")
        if declared is None and header(scope, b"transfer-encoding") is None:
            return b""
        if (
            declared is not None
            and declared.isdigit()
            and int(declared) > self._options.largest_body
        ):
            raise self._too_large()
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionAbortedError
            body += bytes(message.get("body", b""))
            if len(body) > self._options.largest_body:
                raise self._too_large()
            if not message.get("more_body", False):
                return body

    def _check_host(self, scope: Message) -> None:
        if not self._takes_local_names_only:
            return
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        foreign = [host for host in hosts if not is_local_name(host)]
        if hosts and not foreign:
            return
        got = f"got `{shortened(foreign[0])}`" if foreign else "got none"
        raise Refusal(
            421,
            f"`Host` must be localhost, 127.0.0.1 or [::1], with any port, {got}: without a token this "
            "service answers its own machine only; ask for one of these names, or start it with a token",
        )

    def _check_token(self, scope: Message) -> None:
        if self._token is None or scope["path"] in OPEN_PATHS:
            return
        scheme, _, given = (header(scope, b"authorization") or b"").partition(b" ")
        # Takes as long for a token that is nearly right as for one that is not.
        is_right = hmac.compare_digest(given.strip(), self._token)
        if scheme.lower() != b"bearer" or not is_right:
            sentence = "this service needs a token: send it as `Authorization: Bearer TOKEN`"
            raise Refusal(401, sentence, {"www-authenticate": "Bearer"})

    def _too_large(self) -> Refusal:
        return Refusal(
            413, f"the body of a request may hold at most {self._options.largest_body:,} bytes"
        )


def header(scope: Message, name: bytes) -> bytes | None:
    """The first value of a header."""
    for found, value in scope["headers"]:
        if found == name:
            return bytes(value)
    return None
