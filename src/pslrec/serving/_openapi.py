"""The OpenAPI description of the service, made from its routes, their models and the limits."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute
from starlette.schemas import BaseSchemaGenerator

from pslrec import __version__
from pslrec.serving._options import ServiceOptions
from pslrec.serving._schemas import Problem

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

PROBLEMS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    404: "The model does not know an id.",
    408: "The body did not arrive in time.",
    409: "The run cannot be read, or is being read; the old model stays.",
    413: "The body is too large.",
    421: "The `Host` is not a name of this machine.",
    422: "A value has the wrong type or is out of its range.",
    500: "The service failed.",
    503: "The service is busy.",
}


class Operation(NamedTuple):
    """What an endpoint takes and gives.

    Args:
        gives: model of the answer.
        takes: model of the body, if there is one.
        query: model of the query, if there is one.
        problems: statuses of its own; those that any request can get are added.
        is_open: it answers without a token.
    """

    gives: type[BaseModel]
    takes: type[BaseModel] | None
    query: type[BaseModel] | None
    problems: tuple[int, ...]
    is_open: bool


def operation(
    *,
    gives: type[BaseModel],
    takes: type[BaseModel] | None = None,
    query: type[BaseModel] | None = None,
    problems: tuple[int, ...] = (),
    is_open: bool = False,
) -> Callable[[Endpoint], Endpoint]:
    """Note on an endpoint what it takes and gives; see `Operation`."""

    def noted(endpoint: Endpoint) -> Endpoint:
        endpoint.operation = Operation(gives, takes, query, problems, is_open)  # type: ignore[attr-defined]
        return endpoint

    return noted


def describe(routes: Sequence[BaseRoute], options: ServiceOptions) -> dict[str, Any]:
    """The routes as a document of OpenAPI 3.1.

    Args:
        routes: their endpoints are marked with `operation`.
        options: give the limits, and whether a token is needed.
    """
    endpoints = BaseSchemaGenerator().get_endpoints(list(routes))
    schemas = _schemas([endpoint.func.operation for endpoint in endpoints])  # type: ignore[attr-defined]
    _set_limits(schemas, options)
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        marked: Operation = endpoint.func.operation  # type: ignore[attr-defined]
        described: dict[str, Any] = {
            "summary": (endpoint.func.__doc__ or "").rstrip("."),
            "responses": _responses(marked, options),
        }
        parameters = _parameters(endpoint.path, marked, schemas)
        if parameters:
            described["parameters"] = parameters
        if marked.takes is not None:
            described["requestBody"] = {"required": True, "content": _content(marked.takes)}
        if options.token is not None and not marked.is_open:
            described["security"] = [{"token": []}]
        paths.setdefault(endpoint.path, {})[endpoint.http_method] = described
    components: dict[str, Any] = {"schemas": schemas}
    if options.token is not None:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "pslrec",
            "version": __version__,
            "description": "Recommendations from a trained model.",
        },
        "paths": paths,
        "components": components,
    }


def _schemas(operations: list[Operation]) -> dict[str, Any]:
    models: dict[type[BaseModel], str] = {Problem: "serialization"}
    for marked in operations:
        models[marked.gives] = "serialization"
        for model in (marked.takes, marked.query):
            if model is not None:
                models[model] = "validation"
    _, definitions = models_json_schema(
        list(models.items()),  # type: ignore[arg-type]
        ref_template="#/components/schemas/{model}",
    )
    schemas: dict[str, Any] = definitions["$defs"]
    return schemas


def _set_limits(schemas: dict[str, Any], options: ServiceOptions) -> None:
    # The service checks these itself, since they are known only when it starts.
    longest = {"users": options.largest_batch, "history": options.longest_history}
    for name in ("RecommendRequest", "HistoryRequest", "SimilarQuery"):
        properties = schemas[name]["properties"]
        properties["k"]["maximum"] = options.largest_k
        for field in properties.keys() & longest.keys():
            properties[field]["maxItems"] = longest[field]


def _responses(marked: Operation, options: ServiceOptions) -> dict[str, Any]:
    statuses = {*marked.problems, 500, 503}
    if options.token is None:
        statuses.add(421)
    elif not marked.is_open:
        statuses.add(401)
    responses = {
        "200": {"description": marked.gives.__doc__, "content": _content(marked.gives)},
    }
    for status in sorted(statuses):
        responses[str(status)] = {"description": PROBLEMS[status], "content": _content(Problem)}
    return responses


def _parameters(path: str, marked: Operation, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = []
    if "{item}" in path:
        parameters.append(
            {
                "name": "item",
                "in": "path",
                "required": True,
                "description": "Id of an item; a slash in it may be sent as it is or as %2F.",
                "schema": {"type": "string", "minLength": 1},
            }
        )
    if marked.query is not None:
        schema = schemas.pop(marked.query.__name__)
        for name, field in schema["properties"].items():
            parameters.append(
                {
                    "name": name,
                    "in": "query",
                    "required": name in schema.get("required", ()),
                    "description": field.pop("description"),
                    "schema": field,
                }
            )
    return parameters


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
