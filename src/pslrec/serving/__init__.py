"""A finished run as a web service with a page to look at it."""

from pslrec.serving._app import create_app
from pslrec.serving._local_names import is_local_socket
from pslrec.serving._options import ServiceOptions
from pslrec.serving._server import address_of, listen, make_server, serve
from pslrec.serving._service import Service

__all__ = [
    "Service",
    "ServiceOptions",
    "address_of",
    "create_app",
    "is_local_socket",
    "listen",
    "make_server",
    "serve",
]
