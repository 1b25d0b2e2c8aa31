import socket
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

# Without the extra `serve` there is nothing to test here.
MISSING = [
    name for name in ("starlette", "uvicorn", "httptools", "httpx") if find_spec(name) is None
]
collect_ignore_glob = ["test_*.py"] if MISSING else []

if not MISSING:
    from service_support import N_ITEMS, Client, item_id, make_run, served

    from pslrec.serving import Service, ServiceOptions


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("service") / "first")


@pytest.fixture(scope="session")
def other_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("service") / "second", seed=1)


@pytest.fixture(scope="session")
def titles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An item table: titles that look like HTML, and columns of text and numbers; one item is absent."""
    path = tmp_path_factory.mktemp("titles") / "titles.csv"
    lines = ["item,title,kind,number"]
    for row in range(N_ITEMS - 1):
        # One item has no kind.
        kind = ("even", "odd")[row % 2] if row else ""
        lines.append(f"{item_id(row)},<b>Thing {row}</b>,{kind},{row}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def client(finished_run: Path) -> Iterator[Client]:
    service = Service(finished_run)
    yield Client(service)
    service.close()


@pytest.fixture(scope="module")
def patient_port(finished_run: Path) -> Iterator[int]:
    """A server that loses its patience after a third of a second."""
    with served(
        Service(finished_run, options=ServiceOptions(client_seconds=0.3, connections=20))
    ) as (port, _):
        yield port


@pytest.fixture
def dial(patient_port: int) -> Iterator[Callable[[], socket.socket]]:
    opened: list[socket.socket] = []

    def connect() -> socket.socket:
        opened.append(socket.create_connection(("127.0.0.1", patient_port), timeout=10))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()
