"""Lists that several processes make together: the file is that of one process, byte for byte."""

import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command_line import Command, start
from process_workers import PROCESSES, free_port

from pslrec import Recommender
from pslrec.cli import recommend as recommend_module
from pslrec.cli import similar as similar_module

N_USERS = 60


@pytest.fixture(scope="module")
def run_path(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    Recommender("sl", backbone="mf", epochs=2, dimension=8, negatives="catalog").fit(log).save(path)
    return path


@pytest.fixture(scope="module")
def histories(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Histories of 20 new users, a few lines of each here and there in the file."""
    path = tmp_path_factory.mktemp("new") / "histories.csv"
    pairs = pl.read_csv(log).select("user", "item").sample(fraction=0.3, shuffle=True, seed=1)
    users = pairs["user"].unique(maintain_order=True)[:20]
    pairs = pairs.filter(pl.col("user").is_in(users.implode()))
    pairs.with_columns(user="new " + pl.col("user").cast(pl.String)).write_csv(path)
    return path


def small_blocks() -> None:
    """Blocks of a few lists, so that every process has several, and the last one is not full."""
    recommend_module.USERS_AT_ONCE = 7
    similar_module.ITEMS_AT_ONCE = 7


def worker(rank: int, size: int, port: int, command: str, arguments: dict[str, Any]) -> None:
    """A process as torchrun starts it, with one thread."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size), **place}
    small_blocks()
    commands: dict[str, Any] = {
        "recommend": recommend_module.recommend_command,
        "similar": similar_module.similar_command,
    }
    commands[command](**arguments, threads=1)


def written(size: int, command: str, out: Path, **arguments: Any) -> bytes:
    port = free_port()
    workers = []
    for rank in range(size):
        given = (rank, size, port, command, {**arguments, "out": out})
        process = PROCESSES.Process(target=worker, args=given)
        process.start()
        workers.append(process)
    for process in workers:
        process.join(120)
        assert process.exitcode == 0
    return out.read_bytes()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_two_processes_write_what_one_writes(
    run_path: Path, histories: Path, tmp_path: Path, suffix: str
) -> None:
    ways: dict[str, tuple[str, dict[str, Any]]] = {
        "all": ("recommend", {"everybody": True, "k": 4, "explain": 1}),
        "new": ("recommend", {"histories": histories, "k": 4}),
        "similar": ("similar", {"everything": True, "k": 3}),
    }
    for name, (command, arguments) in ways.items():
        found = []
        for size in (1, 2):
            out = tmp_path / f"{name}-{size}{suffix}"
            found.append(written(size, command, out, run=run_path, **arguments))
        assert found[0] == found[1], name
        assert len(found[0]) > 100


def test_a_file_of_histories_gives_what_each_history_gives(
    pslrec: Command, run_path: Path, histories: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(recommend_module, "USERS_AT_ONCE", 7)
    out = tmp_path / "new.csv"
    done = pslrec("recommend", run_path, "--histories", histories, "-k", 3, "--out", out)
    assert done.code == 0, done.err
    assert "wrote 60 recommendations for 20 users" in done.err
    found = pl.read_csv(out)
    given = pl.read_csv(histories)
    assert (
        found["user"].unique(maintain_order=True).equals(given["user"].unique(maintain_order=True))
    )
    user = given["user"][0]
    own = given.filter(pl.col("user") == user)["item"].to_list()
    expected = Recommender.load(run_path).recommend_for(own, k=3)
    assert found.filter(pl.col("user") == user)["item"].to_list() == expected["item"].to_list()


def test_a_file_without_histories_is_refused(
    pslrec: Command, run_path: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("user,item\n")
    done = pslrec("recommend", run_path, "--histories", empty, "--out", tmp_path / "x.parquet")
    assert done.code == 2
    assert "holds no histories" in done.err


def test_neighbours_of_all_items_are_those_of_each(
    pslrec: Command, run_path: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(similar_module, "ITEMS_AT_ONCE", 7)
    out = tmp_path / "similar.csv"
    done = pslrec("similar", run_path, "--all", "-k", 3, "--out", out)
    assert done.code == 0, done.err
    found = pl.read_csv(out)
    assert found.columns == ["item", "similar", "score", "rank"]
    model = Recommender.load(run_path)
    items = found["item"].unique(maintain_order=True).to_list()
    assert "wrote 120 neighbours for 40 items" in done.err
    for item in (items[0], items[-1]):
        expected = model.similar_items([item], k=3)["similar"].to_list()
        assert found.filter(pl.col("item") == item)["similar"].to_list() == expected


def test_processes_as_a_person_asks_for_them(run_path: Path, tmp_path: Path) -> None:
    found = []
    for processes in (1, 2):
        out = tmp_path / f"{processes}.csv"
        options = ("--all", "-k", 4, "--out", out, "--threads", 1, "--processes", processes)
        program = start("recommend", run_path, *options)
        _, errors = program.communicate(timeout=120)
        assert program.returncode == 0, errors
        assert errors.count(f"wrote 240 recommendations for {N_USERS} users") == 1
        found.append(out.read_bytes())
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("recommend", "RUN", "--all", "--processes", 2), "give `--out FILE`"),
        (("similar", "RUN", "--all"), "`--all` writes to a file; give `--out FILE`"),
        (("similar", "RUN", "--item", "1", "--out", "x.csv"), "give `--all`"),
        (
            ("similar", "RUN"),
            "give one item, as in `pslrec similar RUN ITEM`, or one user by `--user ID`, or `--all`",
        ),
        (("recommend", "RUN", "--histories", "list.txt"), "with the columns `user` and `item`"),
        (("tune", "synthetic", "--processes", 2), "`tune` shares its runs among processes by"),
        (("compare", "synthetic", "--processes", 2), "by `--workers N`, each run in one process"),
        (("stress", "synthetic", "--processes", 2), "leave `--processes` and torchrun out"),
    ],
)
def test_what_makes_no_sense_in_processes_is_said(
    pslrec: Command, run_path: Path, arguments: tuple[Any, ...], message: str
) -> None:
    given = [run_path if each == "RUN" else each for each in arguments]
    done = pslrec(*given)
    assert done.code == 2
    assert message in done.err
