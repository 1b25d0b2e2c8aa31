"""A finished run as a web service with a page to look at it."""

from pslrec.serving.app import create_app
from pslrec.serving.options import ServiceOptions
from pslrec.serving.server import address_of, listen, make_server, serve
from pslrec.serving.service import Service

__all__ = ["Service", "ServiceOptions", "address_of", "create_app", "listen", "make_server", "serve"]
