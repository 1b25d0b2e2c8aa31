"""The service as a Starlette application: its routes, and one sentence for whatever goes wrong."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pslrec import __version__
from pslrec.errors import PslrecError, UnknownNameError, shortened
from pslrec.serving._answers import json_answer, problem
from pslrec.serving._limits import Limits
from pslrec.serving._openapi import Operation, describe
from pslrec.serving._pages import page
from pslrec.serving._schemas import (
    Health,
    HistoryAnswer,
    HistoryRequest,
    RandomUser,
    RecommendAnswer,
    RecommendRequest,
    SearchAnswer,
    SearchQuery,
    SimilarAnswer,
    SimilarQuery,
    Version,
)
from pslrec.serving._service import Service

Asked = TypeVar("Asked", bound=BaseModel)


def create_app(
    service: Service,
    *,
    local_names_only: bool = False,
    on_startup: Callable[[], None] | None = None,
) -> Starlette:
    """The service as an application that any ASGI server can run.

    Args:
        service: answers the requests; it is closed when the server stops.
        local_names_only: refuse requests whose `Host` is not a name of this machine. Meant for a
            service without a token at a local address: otherwise a web page could point its own
            domain at this machine and read the answers through the visitor's browser.
        on_startup: called in the event loop once the server is starting.
    """
    options = service.options
    endpoints = _Endpoints(service)
    routes = [
        # The router tries routes in this order, so the busiest come first.
        Route("/recommend", endpoints.recommend, methods=["POST"]),
        Route("/recommend-for-history", endpoints.recommend_for_history, methods=["POST"]),
        # An item id may contain slashes.
        Route("/similar/{item:path}", endpoints.similar),
        Route("/search", endpoints.search),
        Route("/random-user", endpoints.random_user),
        Route("/health", endpoints.health),
        Route("/version", endpoints.version),
        Route(
            "/reload",
            endpoints.reload,
            methods=["POST"],
            include_in_schema=options.token is not None,
        ),
    ]
    description = describe(routes, options)
    constants = {
        "/": page("page.html"),
        "/docs": page("docs.html"),
        "/openapi.json": json_answer(description),
    }
    for path, answer in constants.items():
        routes.append(Route(path, _always(answer), include_in_schema=False))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if on_startup is not None:
            on_startup()
        yield
        service.close()

    app = Starlette(
        routes=routes,
        middleware=[Middleware(Limits, options=options, local_names_only=local_names_only)],
        exception_handlers={
            HTTPException: _explain_refusal,
            UnknownNameError: _explain_unknown_id,
            PslrecError: _explain_bad_value,
        },
        lifespan=lifespan,
    )
    # A redirect would be built from the `Host` of the request; a wrong address is simply a 404.
    app.router.redirect_slashes = False
    return app


class _Endpoints:
    """The routes with a JSON answer, one method each."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._options = service.options

    @Operation(takes=RecommendRequest, gives=RecommendAnswer, problems=(400, 404, 408, 413, 422))
    async def recommend(self, request: Request) -> Response:
        """Recommend items for users of the model."""
        body = await self._body(request)
        asked = self._checked(body, RecommendRequest)
        return json_answer(await self._service.recommend(asked))

    @Operation(takes=HistoryRequest, gives=HistoryAnswer, problems=(400, 404, 408, 413, 422))
    async def recommend_for_history(self, request: Request) -> Response:
        """Recommend items for somebody who is not in the model."""
        body = await self._body(request)
        asked = self._checked(body, HistoryRequest)
        return json_answer(await self._service.recommend_for_history(asked))

    @Operation(query=SimilarQuery, gives=SimilarAnswer, problems=(404, 422))
    async def similar(self, request: Request) -> Response:
        """List the items nearest to one."""
        query = json.dumps(dict(request.query_params))
        asked = self._checked(query, SimilarQuery)
        return json_answer(await self._service.similar(request.path_params["item"], asked))

    @Operation(query=SearchQuery, gives=SearchAnswer, problems=(422,))
    async def search(self, request: Request) -> Response:
        """Find items by a part of their title or id."""
        query = json.dumps(dict(request.query_params))
        asked = self._checked(query, SearchQuery)
        return json_answer(await self._service.search(asked))

    @Operation(gives=RandomUser)
    async def random_user(self, _: Request) -> Response:
        """Draw a user who has items."""
        return json_answer(self._service.random_user())

    @Operation(gives=Health, is_open=True)
    async def health(self, _: Request) -> Response:
        """Tell whether the service answers."""
        return json_answer({"status": "ok"})

    @Operation(gives=Version)
    async def version(self, _: Request) -> Response:
        """Tell what is being served."""
        facts = {
            "pslrec": __version__,
            **self._service.model.description,
            "largest_k": self._options.largest_k,
        }
        return json_answer(facts)

    @Operation(gives=Version, problems=(408, 409, 413))
    async def reload(self, request: Request) -> Response:
        """Read the run again and serve it from now on."""
        if self._options.token is None:
            # Any page in a browser could send this request, so it takes a secret.
            raise HTTPException(
                403,
                "reloading by request needs a service with a token; "
                "send SIGHUP to the process instead",
            )
        await self._body(request)
        await self._service.reload()
        return await self.version(request)

    async def _body(self, request: Request) -> bytes:
        largest = self._options.largest_body
        too_large = HTTPException(
            413,
            f"the body of a request may hold at most {largest:,} bytes",
            # The rest of the body is not read, so the connection cannot be used again.
            {"connection": "close"},
        )
        declared = request.headers.get("content-length", "0")
        if len(declared) > 18 or (declared.isdecimal() and int(declared) > largest):
            raise too_large
        body = bytearray()
        seconds = self._options.client_seconds
        try:
            async with asyncio.timeout(seconds):
                async for part in request.stream():
                    body += part
                    # A body in chunks declares no length.
                    if len(body) > largest:
                        raise too_large
        except TimeoutError:
            raise HTTPException(
                408,
                f"the request did not arrive within {seconds:g} seconds",
                {"connection": "close"},
            ) from None
        return bytes(body)

    def _checked(self, content: bytes | str, model: type[Asked]) -> Asked:
        try:
            return model.model_validate_json(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            if first["type"] == "json_invalid":
                reason = first["msg"].removeprefix("Invalid JSON: ")
                raise HTTPException(400, f"the body is not valid JSON: {reason}") from error
            raise HTTPException(422, self._sentence(first)) from error

    def _sentence(self, error: Any) -> str:
        """What pydantic found, as one sentence about one value."""
        place = [str(part) for part in error["loc"]]
        if error["type"] == "extra_forbidden":
            name = shortened(place[-1])
            return f"`{name}` is not a setting of this request; `/docs` lists what there is"
        if error["type"] == "missing":
            return f"`{place[-1]}` is missing"
        as_json = json.dumps(error["input"], default=str, ensure_ascii=False)
        got = f"got `{shortened(as_json)}`"
        if place == ["k"]:
            return f"`k` must be a whole number from 1 to {self._options.largest_k}, {got}"
        if len(place) > 1 and place[0] in ("users", "history", "items", "exclude"):
            return f"`{place[0]}[{place[1]}]` must be a whole number or text, {got}"
        name = ".".join(place) or "body"
        reason = str(error["msg"])
        return f"`{name}`: {reason[:1].lower()}{reason[1:]}, {got}"


def _always(answer: Response) -> Callable[[Request], Any]:
    async def endpoint(_: Request) -> Response:
        return answer

    return endpoint


async def _explain_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    # The router knows only the phrase of a status; all others come with a sentence.
    if error.detail == HTTPStatus.NOT_FOUND.phrase:
        return problem(404, "there is nothing at this address; `/docs` lists what there is")
    if error.detail == HTTPStatus.METHOD_NOT_ALLOWED.phrase and error.headers is not None:
        # Starlette keeps the methods of a route in a set.
        allowed = ", ".join(sorted(error.headers["Allow"].split(", ")))
        sentence = f"this address takes {allowed}, not {shortened(request.method)}"
        return problem(405, sentence, {"allow": allowed})
    return problem(error.status_code, error.detail, error.headers)


async def _explain_unknown_id(_: Request, error: Exception) -> Response:
    return problem(404, str(error))


async def _explain_bad_value(_: Request, error: Exception) -> Response:
    return problem(422, str(error))
