"""The OpenAPI description of the service, made from its routes, their models and the limits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

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


@dataclass(frozen=True)
class Operation:
    """Decorates an endpoint with what it takes and gives.

    Args:
        gives: model of the answer.
        takes: model of the body, if there is one.
        query: model of the query, if there is one.
        problems: statuses of its own; those that any request can get are added.
        is_open: it answers without a token.
    """

    gives: type[BaseModel]
    takes: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    problems: tuple[int, ...] = ()
    is_open: bool = False

    def __call__(self, endpoint: Endpoint) -> Endpoint:
        """Mark an endpoint."""
        endpoint.operation = self  # type: ignore[attr-defined]
        return endpoint


def describe(routes: Sequence[BaseRoute], options: ServiceOptions) -> dict[str, Any]:
    """The routes as a document of OpenAPI 3.1.

    Args:
        routes: their endpoints are decorated with an `Operation`; the first line of an endpoint's
            docstring becomes its summary.
        options: give the limits, and whether a token is needed.
    """
    paths: dict[str, Any] = {}
    components: dict[str, Any] = {}
    endpoints = BaseSchemaGenerator().get_endpoints(list(routes))
    operations = [_operation(endpoint.func) for endpoint in endpoints]
    schemas = _schemas(operations, options)
    for endpoint, operation in zip(endpoints, operations, strict=True):
        described: dict[str, Any] = {
            "summary": (endpoint.func.__doc__ or "").rstrip("."),
            "responses": _responses(operation, options),
        }
        parameters = _parameters(endpoint.path, operation, schemas)
        if parameters:
            described["parameters"] = parameters
        if operation.takes is not None:
            described["requestBody"] = {"required": True, "content": _content(operation.takes)}
        if options.token is not None and not operation.is_open:
            described["security"] = [{"token": []}]
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        paths[endpoint.path] = {endpoint.http_method: described}
    components["schemas"] = schemas
    information = {
        "title": "pslrec",
        "version": __version__,
        "description": "Recommendations from a trained model.",
    }
    return {"openapi": "3.1.0", "info": information, "paths": paths, "components": components}


def _operation(endpoint: Any) -> Operation:
    operation: Operation = endpoint.operation
    return operation


def _schemas(operations: list[Operation], options: ServiceOptions) -> dict[str, Any]:
    modes: dict[type[BaseModel], str] = {Problem: "serialization"}
    for operation in operations:
        modes[operation.gives] = "serialization"
        for model in (operation.takes, operation.query):
            if model is not None:
                modes[model] = "validation"
    _, definitions = models_json_schema(
        list(modes.items()),  # type: ignore[arg-type]
        ref_template="#/components/schemas/{model}",
    )
    schemas: dict[str, Any] = definitions["$defs"]
    # These limits are not in the models, since they are known only when a service starts.
    for schema in schemas.values():
        properties = schema["properties"]
        if "k" in properties:
            # A model may have a lower limit of its own.
            own = properties["k"].get("maximum", options.largest_k)
            properties["k"]["maximum"] = min(own, options.largest_k)
    schemas["RecommendRequest"]["properties"]["users"]["maxItems"] = options.largest_batch
    schemas["HistoryRequest"]["properties"]["history"]["maxItems"] = options.longest_history
    return schemas


def _responses(operation: Operation, options: ServiceOptions) -> dict[str, Any]:
    statuses = {*operation.problems, 500, 503}
    if options.token is None:
        statuses.add(421)
    elif not operation.is_open:
        statuses.add(401)
    responses = {
        "200": {"description": operation.gives.__doc__, "content": _content(operation.gives)},
    }
    for status in sorted(statuses):
        responses[str(status)] = {"description": PROBLEMS[status], "content": _content(Problem)}
    return responses


def _parameters(path: str, operation: Operation, schemas: dict[str, Any]) -> list[dict[str, Any]]:
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
    if operation.query is not None:
        schema = schemas.pop(operation.query.__name__)
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
