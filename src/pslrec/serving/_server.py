"""The process that serves: its socket, its signals, its end."""

import asyncio
import logging
import signal
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from pslrec.errors import ConfigError, MissingExtraError
from pslrec.serving._app import Application, create_app
from pslrec.serving._connections import protocol
from pslrec.serving._guard import Refusal
from pslrec.serving._local_names import is_local_socket
from pslrec.serving._service import Service

try:
    import uvicorn
except ImportError as error:
    raise MissingExtraError("uvicorn", "serve") from error

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 30
WAITING_CONNECTIONS = 512
SWITCH_SECONDS = 0.001
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on.

    Args:
        host: name or address to listen at; `localhost` can be reached from this machine only.
        port: its port; 0 for any that is free.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=WAITING_CONNECTIONS)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"can not listen at {host} port {port}: {reason}; choose another with --host and --port"
        ) from error


def address_of(listener: socket.socket) -> str:
    """Where a browser finds a socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(service: Service, listener: socket.socket) -> None:
    """Answer requests until SIGTERM or SIGINT; SIGHUP reads the run again.

    Args:
        service: what answers.
        listener: where it listens.
    """
    server = make_server(service)
    # The thread that computes must not wait long for the one that talks to clients, nor that one for it.
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with _stopped_by_signals(server):
            asyncio.run(server.serve(sockets=[listener]))
    finally:
        sys.setswitchinterval(before)


@contextmanager
def _stopped_by_signals(server: "Server") -> Generator[None, None, None]:
    """Around all of asyncio's work, which a signal must not interrupt while it begins or ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, server.stop) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def make_server(service: Service) -> "Server":
    """A server for a service, for a loop of one's own."""
    options = service.options
    app = create_app(service)
    config = uvicorn.Config(
        app,
        http=protocol(options),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(round(options.stop_seconds), 1),
    )
    return Server(config, service, app)


class Server(uvicorn.Server):
    """Stops when asked to, once everybody who asked before has an answer; a second request to stop does not wait."""

    def __init__(self, config: uvicorn.Config, service: Service, app: Application) -> None:
        super().__init__(config)
        self._service, self._app = service, app
        self._reloads: set[asyncio.Task[None]] = set()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer at these sockets; without a token under local names only, if all are local."""
        is_local = bool(sockets) and all(is_local_socket(each) for each in sockets or [])
        if is_local and self._service.options.token is None:
            self._app.take_local_names_only()
        await super().serve(sockets=sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Listen to signals while serving; unlike its parent it does not send them on afterwards."""
        handlers: dict[signal.Signals, Any] = {signal.SIGINT: self.stop, signal.SIGTERM: self.stop}
        if hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = self._reload
        try:
            before = {
                number: signal.signal(number, handler) for number, handler in handlers.items()
            }
        except ValueError:  # not the main thread, where signals are the business of somebody else
            yield
            return
        self._loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self, *_: object) -> None:
        """Stop after the requests in hand; asked a second time, at once."""
        self.force_exit = self.should_exit
        self.should_exit = True

    def _reload(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._start_reload)

    def _start_reload(self) -> None:
        task = self._loop.create_task(self._reload_now())
        # The loop itself holds tasks weakly only.
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def _reload_now(self) -> None:
        try:
            model = await self._service.reload()
        except Refusal as refusal:
            logger.warning("%s", refusal.sentence)
        except Exception:
            logger.exception("the old model stays, for reading the new one failed")
        else:
            logger.info("serving %s, model %s", model.path.name, model.fingerprint)
