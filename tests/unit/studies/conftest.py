"""A log small enough to train on in a moment, and a PostgreSQL of our own."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pslrec.config import RunConfig
from pslrec.data._synthetic import TasteModel, planted_tastes


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    model = TasteModel(n_topics=4, median_history=9, minimum_history=6)
    path = tmp_path_factory.mktemp("data") / "log.csv"
    planted_tastes(60, 40, model=model, seed=2).interactions.to_frame().write_csv(path)
    return path


@pytest.fixture(scope="module")
def config(log) -> RunConfig:
    return RunConfig.from_settings(
        {
            "data.source": str(log),
            "backbone.dimension": 8,
            "sampling.negatives": 5,
            "training.epochs": 3,
            "training.validate_every": 1,
        }
    )


def _binary(name: str) -> str:
    # Debian keeps the server's programs out of the path.
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or next(map(str, reversed(installed)), None)
    if found is None:
        pytest.skip(f"PostgreSQL is not installed here: there is no `{name}`")
    return found


def _server_user() -> dict[str, object]:
    """PostgreSQL refuses to run as root, so that its own user takes over there."""
    if os.geteuid() != 0:
        return {}
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user `postgres`")
    return {"user": "postgres", "group": "postgres", "extra_groups": []}


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a running server with an empty database."""
    pytest.importorskip("psycopg", reason="the driver of PostgreSQL is not installed")
    initdb, pg_ctl = _binary("initdb"), _binary("pg_ctl")
    user = _server_user()
    home = Path(tempfile.mkdtemp(prefix="pslrec-pg-"))
    if user:
        shutil.chown(home, "postgres", "postgres")
    data = home / "data"

    def call(*command: str) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60, cwd=home, **user)

    call(
        initdb,
        "-D",
        str(data),
        "-U",
        "pslrec",
        "-A",
        "trust",
        "--no-sync",
        "-E",
        "UTF8",
        "--locale=C",
    )
    # A socket in its own directory, so that it meets no other server.
    options = f"-c listen_addresses='' -c unix_socket_directories={home} -c fsync=off"
    call(pg_ctl, "-D", str(data), "-w", "-l", str(home / "log"), "-o", options, "start")
    try:
        yield f"postgresql://pslrec@/postgres?host={home}"
    finally:
        call(pg_ctl, "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(params=["journal", "postgresql"])
def storage(request) -> str | None:
    """Both places for the books."""
    if request.param == "journal":
        return None
    return str(request.getfixturevalue("postgresql"))
