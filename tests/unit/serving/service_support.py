"""A tiny run, a client within this process, and a real server in a thread, for the tests of the service."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from pslrec.config import RunConfig
from pslrec.data._synthetic import planted_tastes
from pslrec.experiment import run as train
from pslrec.serving import Service, create_app, listen
from pslrec.serving._server import make_server, run_server

N_USERS, N_ITEMS = 40, 30
TOKEN = "a-token-of-some-length"


def make_run(
    directory: Path, *, seed: int = 0, prefix: str = "user/", backbone: str = "mf"
) -> Path:
    """A finished run with text for users and whole numbers, some of them beyond what JavaScript can hold, for items."""
    planted = planted_tastes(N_USERS, N_ITEMS, seed=0).interactions
    log = directory.with_suffix(".csv")
    pairs = zip(planted.users.tolist(), planted.items.tolist(), strict=True)
    log.write_text(
        "user,item\n" + "".join(f"{prefix}{user},{item_id(item)}\n" for user, item in pairs)
    )
    settings = {
        "data.source": str(log),
        "backbone.name": backbone,
        "backbone.dimension": 8,
        "sampling.negatives": 8,
        "training.epochs": 2,
        "training.seed": seed,
    }
    train(RunConfig.from_settings(settings), out=directory)
    return directory


def item_id(row: int) -> int:
    return row * 10 if row else 2**60


class Client:
    """Asks an application in this process."""

    def __init__(self, service: Service, headers: dict[str, str] | None = None) -> None:
        self.service, self.app, self._headers = service, create_app(service), headers or {}

    def ask(self, method: str, path: str, **content: Any) -> httpx.Response:
        return asyncio.run(self.ask_soon(method, path, **content))

    async def ask_soon(self, method: str, path: str, **content: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://service", headers=self._headers
        ) as client:
            return await client.request(method, path, **content)

    def get(self, path: str) -> httpx.Response:
        return self.ask("GET", path)

    def post(self, path: str, json: Any = None, **content: Any) -> httpx.Response:
        return (
            self.ask("POST", path, **content)
            if json is None
            else self.ask("POST", path, json=json, **content)
        )


@contextmanager
def served(service: Service, host: str = "127.0.0.1") -> Iterator[tuple[int, uvicorn.Server]]:
    """A real server in a thread of its own; gives its port and itself."""
    with listen(host, 0) as listener:
        server = make_server(service, listener)
        thread = threading.Thread(target=run_server, args=(server, service, listener))
        port = listener.getsockname()[1]
        thread.start()
        try:
            yield port, server
        finally:
            server.should_exit = True
            thread.join(timeout=20)
            assert not thread.is_alive()
