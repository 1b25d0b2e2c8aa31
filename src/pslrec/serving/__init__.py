"""A trained model as a web service, with a page for looking at its recommendations."""

from pslrec.errors import MissingExtraError

try:
    import httptools  # noqa: F401
    import starlette  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise MissingExtraError("starlette, uvicorn and httptools", "serve") from error

from pslrec.serving._app import create_app
from pslrec.serving._local_names import is_local_socket
from pslrec.serving._options import ServiceOptions
from pslrec.serving._server import address_of, listen, serve
from pslrec.serving._service import Service

__all__ = [
    "Service",
    "ServiceOptions",
    "address_of",
    "create_app",
    "is_local_socket",
    "listen",
    "serve",
]
