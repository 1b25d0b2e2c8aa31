"""The service as an ASGI application: which address is answered by what, and the sentences for what goes wrong."""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

from pslrec import __version__
from pslrec.errors import PslrecError, UnknownNameError
from pslrec.serving._description import describe
from pslrec.serving._guard import Guard, Message, Receive, Refusal, Send
from pslrec.serving._identifiers import shortened
from pslrec.serving._pages import page
from pslrec.serving._schemas import HistoryRequest, RecommendRequest
from pslrec.serving._service import Service

logger = logging.getLogger(__name__)

SIMILAR = "/similar/"
FAILED = "the service failed to answer this request; its log says why"
STOPPING = "the service is stopping; ask again when it is back"
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
# What pydantic puts into the place of an error for the members of a union.
_UNION_MEMBERS = ("int", "str", "constrained-int", "constrained-str")

Asked = TypeVar("Asked", bound=BaseModel)


class Reply(NamedTuple):
    """An answer, ready to be sent."""

    body: bytes
    status: int = 200
    kind: str = "application/json"
    headers: dict[str, str] = {"cache-control": "no-store"}  # noqa: RUF012 - never changed


class Asking(NamedTuple):
    """A request, as far as answers depend on it."""

    path: str
    query: bytes
    body: bytes


Handler = Callable[[Asking], Awaitable[Reply]]


class Application:
    """Answers HTTP requests from a service; any ASGI server can run it.

    Args:
        service: is closed when the server stops.
    """

    def __init__(self, service: Service) -> None:
        self._service, self._guard = service, Guard(service.options)
        self._handlers: dict[str, dict[str, Handler]] = {
            "/": {"GET": _constant(_page("page.html"))},
            "/docs": {"GET": _constant(_page("docs.html"))},
            "/openapi.json": {"GET": _constant(_json(describe(service.options)))},
            "/health": {"GET": _constant(_json({"status": "ok"}))},
            "/version": {"GET": self._version},
            "/recommend": {"POST": self._recommend},
            "/recommend-for-history": {"POST": self._recommend_for_history},
            "/reload": {"POST": self._reload},
        }

    def take_local_names_only(self) -> None:
        """From now on refuse requests for another `Host` than this machine, see `Guard`."""
        self._guard.take_local_names_only()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI asks for it."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            try:
                reply = await self._reply(scope, receive)
            except ConnectionAbortedError:  # there is nobody left to answer
                return
            except asyncio.CancelledError:
                # Only a server that stops without waiting does this. It is what was asked for, so
                # the client gets a sentence, and the log no traceback.
                reply = _problem(503, STOPPING, {"connection": "close"})
            await _send(reply, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            try:
                message = await receive()
            except asyncio.CancelledError:
                # The server does not wait; its threads end with their work in hand.
                return
            is_end = message["type"] == "lifespan.shutdown"
            if is_end:
                self._service.close()
            await send({"type": f"{message['type']}.complete"})
            if is_end:
                return

    async def _reply(self, scope: Message, receive: Receive) -> Reply:
        try:
            with self._guard.admit(scope):
                handler = self._handler(scope["method"], scope["path"])
                body = await self._guard.body(scope, receive)
                return await handler(Asking(scope["path"], scope["query_string"], body))
        except Refusal as refusal:
            return _problem(refusal.status, refusal.sentence, refusal.headers)
        except UnknownNameError as error:
            return _problem(404, str(error))
        except PslrecError as error:
            return _problem(422, str(error))
        except ConnectionAbortedError:
            raise
        except Exception:
            logger.exception("%s %s failed", scope["method"], scope["path"])
            return _problem(500, FAILED)

    def _handler(self, method: str, path: str) -> Handler:
        handlers = {"GET": self._similar} if path.startswith(SIMILAR) else self._handlers.get(path)
        if handlers is None:
            raise Refusal(404, "there is nothing at this address; `/docs` lists what there is")
        handler = handlers.get("GET" if method == "HEAD" else method)
        if handler is None:
            allowed = ", ".join([*handlers, *(["HEAD"] if "GET" in handlers else [])])
            raise Refusal(
                405, f"this address takes {allowed}, not {shortened(method)}", {"allow": allowed}
            )
        return handler

    async def _recommend(self, asking: Asking) -> Reply:
        return _json(await self._service.recommend(self._asked(RecommendRequest, asking.body)))

    async def _recommend_for_history(self, asking: Asking) -> Reply:
        return _json(
            await self._service.recommend_for_history(self._asked(HistoryRequest, asking.body))
        )

    async def _similar(self, asking: Asking) -> Reply:
        given = dict(parse_qsl(asking.query.decode("latin-1"), keep_blank_values=True))
        k = given.pop("k", "20")
        if given:
            raise Refusal(
                422, f"`{shortened(next(iter(given)))}` is no setting of this request; it takes `k`"
            )
        if not _LENGTH.fullmatch(k) or not int(k):
            raise Refusal(422, f"{self._k_rule()}, got `{shortened(k)}`")
        return _json(await self._service.similar(asking.path.removeprefix(SIMILAR), int(k)))

    async def _version(self, _: Asking) -> Reply:
        facts = {
            "pslrec": __version__,
            **self._service.model.description,
            "largest_k": self._service.options.largest_k,
        }
        return _json(facts)

    async def _reload(self, asking: Asking) -> Reply:
        if self._service.options.token is None:
            # Any page in a browser could send this request, so it takes a secret.
            raise Refusal(
                403,
                "a reload by request needs a service with a token; send SIGHUP to the process instead",
            )
        await self._service.reload()
        return await self._version(asking)

    def _asked(self, model: type[Asked], body: bytes) -> Asked:
        try:
            return model.model_validate_json(body)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_context=False)[0]
            if problem["type"] == "json_invalid":
                reason = problem["msg"].removeprefix("Invalid JSON: ")
                raise Refusal(400, f"the body is not valid JSON: {reason}") from error
            raise Refusal(422, self._sentence(problem)) from error

    def _sentence(self, problem: Any) -> str:
        """What pydantic found, as one sentence about one value."""
        place = [str(part) for part in problem["loc"]]
        if problem["type"] == "extra_forbidden":
            return f"`{shortened(place[-1])}` is no setting of this request; `/docs` lists what there is"
        if problem["type"] == "missing":
            return f"`{place[-1]}` is missing"
        if place == ["k"]:
            return f"{self._k_rule()}, got `{shortened(json.dumps(problem['input']))}`"
        if len(place) > 1 and place[0] in ("users", "history"):
            return f"`{place[0]}[{place[1]}]` must be a whole number or text, as ids are, got {_short(problem['input'])}"
        reason = str(problem["msg"])
        return f"`{'.'.join(place) or 'body'}`: {reason[:1].lower()}{reason[1:]}, got {_short(problem['input'])}"

    def _k_rule(self) -> str:
        return f"`k` must be a whole number from 1 to {self._service.options.largest_k}"


def create_app(service: Service) -> Application:
    """The service as an application for any ASGI server.

    Args:
        service: what answers; it is closed when the server stops.
    """
    return Application(service)


def _short(value: object) -> str:
    return f"`{shortened(json.dumps(value, default=str, ensure_ascii=False))}`"


def _constant(reply: Reply) -> Handler:
    async def send_it(_: Asking) -> Reply:
        return reply

    return send_it


def _page(name: str) -> Reply:
    content, headers = page(name)
    return Reply(content, kind="text/html; charset=utf-8", headers=headers)


def _json(content: dict[str, Any]) -> Reply:
    return Reply(json.dumps(content, separators=(",", ":")).encode())


def _problem(status: int, sentence: str, headers: dict[str, str] | None = None) -> Reply:
    return Reply(
        json.dumps({"error": sentence}).encode(),
        status,
        headers={"cache-control": "no-store", **(headers or {})},
    )


async def _send(reply: Reply, send: Send) -> None:
    headers = {"content-type": reply.kind, "content-length": str(len(reply.body)), **reply.headers}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": encoded})
    await send({"type": "http.response.body", "body": reply.body})
