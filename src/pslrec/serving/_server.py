"""The process that serves: its socket, its signals, its end."""

import asyncio
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from starlette.exceptions import HTTPException

from pslrec.errors import ConfigError
from pslrec.serving._app import create_app
from pslrec.serving._connections import LimitedLoop
from pslrec.serving._local_names import is_local_socket
from pslrec.serving._service import Service

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 30
WAITING_CONNECTIONS = 512
SWITCH_SECONDS = 0.001
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections from now on.

    Args:
        host: name or address to listen at; only this machine can reach `localhost`.
        port: port to listen at; 0 takes any that is free.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = addresses[0]
        listener = socket.create_server(address[:2], family=family, backlog=WAITING_CONNECTIONS)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"cannot listen at {host} port {port}: {reason}; choose another with --host and --port"
        ) from error
    # Accepted connections inherit this. The head and the body of an answer are written one after
    # the other; without it the second would wait until the client acknowledges the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(listener: socket.socket) -> str:
    """Where a browser finds a socket."""
    host, port = listener.getsockname()[:2]
    if ":" in host:
        return f"http://[{host}]:{port}"
    return f"http://{host}:{port}"


def serve(service: Service, listener: socket.socket) -> None:
    """Answer requests until SIGTERM or SIGINT; SIGHUP reloads the run.

    Args:
        service: answers the requests.
        listener: where to listen, see `listen`.
    """
    signals = _Signals(service)
    server = make_server(service, listener, on_startup=signals.take_over)
    # The thread that computes and the one that talks to clients must not wait long for each other.
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with signals.handled():
            # Requests make cyclic garbage. Unless what is loaded is set aside, each full collection
            # walks through all of it, and stops the service for 0.15 s, several times a minute.
            gc.collect()
            gc.freeze()
            run_server(server, service, listener)
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before)


def make_server(
    service: Service, listener: socket.socket, on_startup: Callable[[], None] | None = None
) -> uvicorn.Server:
    """The HTTP server of a service.

    Args:
        service: answers the requests.
        listener: where it will listen; a local address without a token takes local names only.
        on_startup: see `create_app`.
    """
    options = service.options
    app = create_app(
        service,
        local_names_only=options.token is None and is_local_socket(listener),
        on_startup=on_startup,
    )
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # Nothing here depends on who the client behind a proxy is.
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(round(options.stop_seconds), 1),
    )
    return uvicorn.Server(config)


def run_server(server: uvicorn.Server, service: Service, listener: socket.socket) -> None:
    """Run a server in an event loop with the limits of its service, until it stops."""
    with asyncio.Runner(loop_factory=lambda: LimitedLoop(service.options)) as runner:
        runner.run(server.serve(sockets=[listener]))


class _Signals:
    """What SIGINT, SIGTERM and SIGHUP do to a service.

    The first signal to stop waits until requests in work are answered, a second one does not.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._n_stops = 0
        self._stop_server: Any = None
        self._loop: LimitedLoop | None = None
        self._reloads: set[asyncio.Task[None]] = set()

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle signals around all of asyncio's work, which they must not interrupt."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers: dict[int, Any] = dict.fromkeys(STOP_SIGNALS, self._stop)
        # Windows has no SIGHUP.
        if hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = self._reload
        before = {}
        for number, handler in handlers.items():
            before[number] = signal.signal(number, handler)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def take_over(self) -> None:
        """Take the place of the handlers that the server has just installed for itself.

        It stops gracefully on the first signal, but would wait on after a second SIGTERM.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        assert isinstance(loop, LimitedLoop)
        self._loop = loop
        self._stop_server = signal.getsignal(signal.SIGTERM)
        for number in STOP_SIGNALS:
            signal.signal(number, self._stop)
        if self._n_stops:
            # The signal came before the server could hear it.
            self._stop_server(signal.SIGTERM, None)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._n_stops += 1
        # The server sends on what it has heard when it is done, when there is no more to stop.
        if self._loop is None or self._loop.is_closed():
            return
        if self._n_stops == 1:
            self._stop_server(number, frame)
        else:
            self._loop.call_soon_threadsafe(self._loop.stop_requests)

    def _reload(self, *_: object) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._start_reload)

    def _start_reload(self) -> None:
        task = asyncio.get_running_loop().create_task(self._reload_now())
        # The loop itself holds tasks only weakly.
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def _reload_now(self) -> None:
        try:
            model = await self._service.reload()
        except HTTPException as refusal:
            logger.warning("%s", refusal.detail)
        except Exception:
            logger.exception("the old model stays, because reading the new one failed")
        else:
            logger.info("serving %s, model %s", model.path.name, model.fingerprint)
