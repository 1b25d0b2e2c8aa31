"""The OpenAPI description of the service, made from its models and its limits."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from pslrec import __version__
from pslrec.serving._options import ServiceOptions
from pslrec.serving._schemas import (
    Health,
    HistoryAnswer,
    HistoryRequest,
    Problem,
    RecommendAnswer,
    RecommendRequest,
    SimilarAnswer,
    Version,
)

PROBLEMS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    404: "An id is unknown to the model.",
    409: "The run can not be read, or is being read; the old model stays.",
    413: "The body is too large.",
    421: "The `Host` is not a name of this machine.",
    422: "A value is of the wrong type or out of its range.",
    500: "The service failed.",
    503: "The service is busy.",
}
MODELS = (
    RecommendRequest, HistoryRequest, RecommendAnswer, HistoryAnswer, SimilarAnswer, Health, Version, Problem
)  # fmt: skip


def describe(options: ServiceOptions) -> dict[str, Any]:
    """The description as a document of OpenAPI 3.1.

    Args:
        options: limits that go into it, and whether a token is asked for.
    """
    both = [
        (model, "validation" if model.__name__.endswith("Request") else "serialization")
        for model in MODELS
    ]
    _, definitions = models_json_schema(both, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    schemas = definitions["$defs"]
    for name, field, longest in (
        ("RecommendRequest", "users", options.largest_batch),
        ("HistoryRequest", "history", options.longest_history),
    ):
        schemas[name]["properties"][field]["maxItems"] = longest
        schemas[name]["properties"]["k"]["maximum"] = options.largest_k
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "pslrec",
            "version": __version__,
            "description": "Recommendations from a trained model.",
        },
        "paths": _paths(options),
        "components": {"schemas": schemas},
    }
    if options.token is not None:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return document


def _paths(options: ServiceOptions) -> dict[str, Any]:
    k = {"type": "integer", "minimum": 1, "maximum": options.largest_k, "default": 20}
    similar_parameters = [
        {
            "name": "item",
            "in": "path",
            "required": True,
            "description": "Id of an item; a slash in it is sent as it is or as %2F.",
            "schema": {"type": "string", "minLength": 1},
        },
        {
            "name": "k",
            "in": "query",
            "required": False,
            "description": "Length of the list.",
            "schema": k,
        },
    ]
    paths = {
        "/recommend": {
            "post": _operation(
                "Lists for users of the model",
                RecommendAnswer,
                (400, 404, 413, 422),
                options,
                asks=RecommendRequest,
            )
        },
        "/recommend-for-history": {
            "post": _operation(
                "A list for somebody who is not in the model",
                HistoryAnswer,
                (400, 404, 413, 422),
                options,
                asks=HistoryRequest,
            )
        },
        "/similar/{item}": {
            "get": {
                **_operation("Items nearest to one", SimilarAnswer, (404, 422), options),
                "parameters": similar_parameters,
            }
        },
        "/health": {
            "get": _operation("Whether the service answers", Health, (), options, is_open=True)
        },
        "/version": {"get": _operation("What is being served", Version, (), options)},
    }
    if options.token is not None:
        paths["/reload"] = {
            "post": _operation(
                "Read the run again and serve it from now on", Version, (409, 413), options
            )
        }
    return paths


def _operation(
    summary: str,
    answer: type[BaseModel],
    problems: tuple[int, ...],
    options: ServiceOptions,
    *,
    asks: type[BaseModel] | None = None,
    is_open: bool = False,
) -> dict[str, Any]:
    needs_token = options.token is not None and not is_open
    statuses = {*problems, 500, 503}
    if needs_token:
        statuses.add(401)
    if options.token is None:
        statuses.add(421)
    operation: dict[str, Any] = {
        "summary": summary,
        "responses": {
            "200": {"description": (answer.__doc__ or "").strip(), "content": _content(answer)},
            **{
                str(each): {"description": PROBLEMS[each], "content": _content(Problem)}
                for each in sorted(statuses)
            },
        },
    }
    if asks is not None:
        operation["requestBody"] = {"required": True, "content": _content(asks)}
    if needs_token:
        operation["security"] = [{"token": []}]
    return operation


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
