"""Any file of a run directory broken in any way: what reads it succeeds or says one sentence, and never hangs."""

import copy
import json
import os
import random
import shutil
import signal
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl
import pytest
import tomli_w
import torch
from command_line import Command, Outcome
from torch import Tensor

from pslrec.errors import PslrecError
from pslrec.files._tensors import read_tensors, write_tensors

SMALL = (
    "--set",
    "backbone.dimension=4",
    "--set",
    "training.epochs=2",
    "--set",
    "training.validate_every=1",
)
ONE_THREAD = ("--threads", "1")
PATIENCE_SECONDS = 30

FILES = (
    "config.toml",
    "environment.json",
    "format",
    "log.jsonl",
    "metrics.json",
    "model.safetensors",
    "checkpoint.safetensors",
    "seen.safetensors",
    "users.parquet",
    "items.parquet",
    "lock",
)


def _random_bytes(path: Path) -> None:
    path.write_bytes(random.Random(7).randbytes(3000))


def _truncated(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _flipped(path: Path) -> None:
    # Some bytes in the middle changed: headers and footers stay as they are.
    content = bytearray(path.read_bytes() or b"x")
    for place in range(len(content) // 3, len(content) // 2):
        content[place] ^= 0x15
    path.write_bytes(bytes(content))


def _text(text: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(text) and None


def _replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


def _like_another(name: str) -> Callable[[Path], None]:
    return lambda path: path.write_bytes((path.parent / name).read_bytes()) and None


def _huge_text(path: Path) -> None:
    # Sparse: a gigabyte of zeros that takes no place on the disk.
    path.write_bytes(b"")
    os.truncate(path, 2**30)


def _nameless_tensors(path: Path) -> None:
    write_tensors(
        path,
        {"x": torch.zeros(3), "users": torch.zeros(2, 2, 2)},
        {"progress": "[]", "epoch": "minus"},
    )


BREAKS: dict[str, Callable[[Path], object]] = {
    "empty": _text(""),
    "truncated": _truncated,
    "random bytes": _random_bytes,
    "bytes flipped": _flipped,
    "a list": _text("[1, 2]"),
    "a number": _text("3"),
    "null": _text("null"),
    "an empty object": _text("{}"),
    "nested without end": _text("[" * 100_000),
    "an endless number": _text("x = " + "9" * 100_000),
    "numbers for names": _text(
        '{"test": 3, "validation": {"ndcg@x": "a"}, "best_epoch": [], "protocol": {}, "threads": []}'
    ),
    "a directory": _replaced(lambda path: path.mkdir()),
    "absent": _replaced(lambda path: None),
    "a pipe": _replaced(os.mkfifo),
    "an endless device": _replaced(lambda path: path.symlink_to("/dev/zero")),
    "a dangling link": _replaced(lambda path: path.symlink_to("nowhere")),
    "a link in a circle": _replaced(lambda path: path.symlink_to(path.name)),
    "a huge text": _huge_text,
    "other tensors": _nameless_tensors,
    "the model": _like_another("model.safetensors"),
    "the ids of items": _like_another("items.parquet"),
}
# A few of each kind, for every run of the tests; all of them in the slow ones.
QUICK = ("random bytes", "a pipe", "numbers for names", "other tensors")


VALUES = (
    None,
    True,
    -1,
    0,
    2**70,
    1e300,
    1e-300,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\0",
    [],
    [1],
    {},
    {"x": 1},
)


def _with_another_value(tree: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The same names with one of the values, at any depth, replaced or left out."""
    changed = copy.deepcopy(tree)
    node = changed
    while True:
        name = chance.choice(sorted(node))
        if not isinstance(node[name], dict) or not node[name] or chance.random() < 0.2:
            break
        node = node[name]
    if chance.random() < 0.2:
        del node[name]
    else:
        node[name] = chance.choice(VALUES)
    return changed


def _without_none(tree: Any) -> Any:
    # TOML has no null.
    if isinstance(tree, dict):
        return {name: _without_none(value) for name, value in tree.items() if value is not None}
    return tree


def change_json(path: Path, chance: random.Random) -> None:
    path.write_text(json.dumps(_with_another_value(json.loads(path.read_text()), chance)))


def change_toml(path: Path, chance: random.Random) -> None:
    changed = _with_another_value(tomllib.loads(path.read_text()), chance)
    path.write_text(tomli_w.dumps(_without_none(changed)))


def change_log(path: Path, chance: random.Random) -> None:
    lines = path.read_text().splitlines()
    place = chance.randrange(len(lines))
    lines[place] = json.dumps(_with_another_value(json.loads(lines[place]), chance))
    path.write_text("\n".join(lines))


def change_tensors(path: Path, chance: random.Random) -> None:
    tensors, metadata = read_tensors(path)
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    if metadata and chance.random() < 0.3:
        name = chance.choice(sorted(metadata))
        if name == "progress" and chance.random() < 0.8:
            metadata[name] = json.dumps(_with_another_value(json.loads(metadata[name]), chance))
        else:
            metadata[name] = chance.choice(["", "x", "[]", "-3", "9" * 5000])
        write_tensors(path, tensors, metadata)
        return
    name = chance.choice(sorted(tensors))
    tensor = tensors.pop(name)
    changes: list[Callable[[], Tensor | None]] = [
        lambda: None,
        lambda: tensor[:0],
        lambda: tensor[:-1],
        lambda: tensor.unsqueeze(0),
        lambda: torch.zeros(()),
        lambda: torch.cat([tensor, tensor]),
        tensor.double,
        tensor.int,
        tensor.bool,
        lambda: torch.full_like(tensor, -1),
        lambda: torch.full_like(tensor, 2**30),
        lambda: torch.full(tensor.shape, torch.nan),
        lambda: torch.full(tensor.shape, torch.inf),
        lambda: torch.full(tensor.shape, 3e38),
        lambda: torch.zeros_like(tensor),
    ]
    try:
        changed = chance.choice(changes)()
    except (RuntimeError, IndexError):  # of a tensor without rows
        changed = None
    if changed is not None:
        tensors[name] = changed.contiguous()
    write_tensors(path, tensors, metadata)


def change_ids(path: Path, chance: random.Random) -> None:
    ids = pl.read_parquet(path)["id"]
    frames = [
        pl.DataFrame({"id": ids[:-1]}),
        pl.DataFrame({"id": ids[::-1]}),
        pl.DataFrame({"id": [ids[0]] * len(ids)}),
        pl.DataFrame({"id": [None, *ids[1:]]}),
        pl.DataFrame({"id": [[1]] * len(ids)}),
        pl.DataFrame({"id": [1.5 * n for n in range(len(ids))]}),
        pl.DataFrame({"id": [b"x%d" % n for n in range(len(ids))]}),
        pl.DataFrame({"id": range(len(ids))}),
        pl.DataFrame({"name": ids}),
        pl.DataFrame({"id": ids, "more": ids}),
        pl.DataFrame(),
    ]
    chance.choice(frames).write_parquet(path)


CHANGES: dict[str, Callable[[Path, random.Random], None]] = {
    "config.toml": change_toml,
    "environment.json": change_json,
    "log.jsonl": change_log,
    "metrics.json": change_json,
    "model.safetensors": change_tensors,
    "checkpoint.safetensors": change_tensors,
    "seen.safetensors": change_tensors,
    "users.parquet": change_ids,
    "items.parquet": change_ids,
}
N_CHANGES = 40


@contextmanager
def patience() -> Iterator[None]:
    """Raises in what takes too long."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(PATIENCE_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def finished(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, only to be copied."""
    from pslrec.config import RunConfig
    from pslrec.experiment import run

    settings = {
        "data.source": str(log),
        "backbone.dimension": 4,
        "training.epochs": 2,
        "training.validate_every": 1,
    }
    path = tmp_path_factory.mktemp("finished") / "run"
    run(RunConfig.from_settings(settings), out=path)
    return path


def copied(finished: Path, place: Path) -> Path:
    path = place / "run"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(finished, path)
    return path


def load_model(path: Path) -> None:
    from pslrec import Recommender

    Recommender.load(path).recommend(k=2)


def load_for_serving(path: Path) -> None:
    from pslrec.serving._served import ServedModel

    assert ServedModel.load(path).description


def save_again(path: Path) -> None:
    from pslrec import Recommender

    Recommender.load(path).save(path.with_name("copy"))


FUNCTIONS: dict[str, Callable[[Path], None]] = {
    "Recommender.load": load_model,
    "Recommender.save": save_again,
    "serve": load_for_serving,
}
COMMANDS: dict[str, Callable[[Path, Path], tuple[object, ...]]] = {
    "resume": lambda run, log: ("train", "--out", run, "--resume", *ONE_THREAD),
    "resume with data": lambda run, log: (
        "train",
        log,
        *SMALL,
        "--out",
        run,
        "--resume",
        *ONE_THREAD,
    ),
    "warm start": lambda run, log: ("train", log, *SMALL, "--warm-start", run, *ONE_THREAD),
    "evaluate": lambda run, log: ("evaluate", run, *ONE_THREAD),
    "recommend": lambda run, log: (
        "recommend",
        run,
        "--all",
        "--out",
        run.with_name("recommended.csv"),
    ),
    "similar": lambda run, log: ("similar", run, "--item", "item-1"),
    "export": lambda run, log: ("export", run, "--to", "npz", "--out", run.with_name("exported")),
    "report": lambda run, log: ("report", run, "--out", run.with_name("report.html"), *ONE_THREAD),
}


def assert_success_or_one_sentence(outcome: Outcome) -> None:
    assert "Traceback" not in outcome.err
    assert outcome.code in (0, 2), outcome.err
    if outcome.code == 2:
        lines = [line for line in outcome.err.splitlines() if line.startswith("error:")]
        assert len(lines) == 1, outcome.err
        assert outcome.err.rstrip().endswith(lines[0]), outcome.err


def assert_every_reader_bears(
    place: Path,
    log: Path,
    pslrec: Command,
    make: Callable[[Path], Path],
    what: str,
    readers: Sequence[str],
) -> None:
    """Whatever reads a run that `make` broke in a directory of its own ends as it should."""
    for reader in readers:
        inside = place / "of one"
        shutil.rmtree(inside, ignore_errors=True)
        inside.mkdir()
        run = make(inside)
        try:
            with patience():
                if reader in COMMANDS:
                    assert_success_or_one_sentence(pslrec(*COMMANDS[reader](run, log)))
                else:
                    FUNCTIONS[reader](run)
        except PslrecError:
            continue
        except (AssertionError, Exception) as error:
            raise AssertionError(f"{reader}, {what}: {error!r}") from error


def broken(finished: Path, name: str, how: str) -> Callable[[Path], Path]:
    def make(place: Path) -> Path:
        run = copied(finished, place)
        BREAKS[how](run / name)
        return run

    return make


def changed(finished: Path, name: str, seed: int) -> Callable[[Path], Path]:
    def make(place: Path) -> Path:
        run = copied(finished, place)
        CHANGES[name](run / name, random.Random(f"{name} {seed}"))
        return run

    return make


READERS = (*COMMANDS, *FUNCTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("how", BREAKS)
@pytest.mark.parametrize("name", FILES)
def test_every_reader_bears_every_broken_file(
    finished: Path, tmp_path: Path, log: Path, pslrec: Command, name: str, how: str
) -> None:
    assert_every_reader_bears(
        tmp_path, log, pslrec, broken(finished, name, how), f"{name} {how}", READERS
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(N_CHANGES))
@pytest.mark.parametrize("name", CHANGES)
def test_every_reader_bears_a_changed_value(
    finished: Path, tmp_path: Path, log: Path, pslrec: Command, name: str, seed: int
) -> None:
    assert_every_reader_bears(
        tmp_path, log, pslrec, changed(finished, name, seed), f"{name} seed {seed}", READERS
    )


@pytest.mark.parametrize("how", QUICK)
@pytest.mark.parametrize("name", FILES)
def test_loading_bears_a_broken_file(
    finished: Path, tmp_path: Path, log: Path, pslrec: Command, name: str, how: str
) -> None:
    make = broken(finished, name, how)
    assert_every_reader_bears(
        tmp_path, log, pslrec, make, f"{name} {how}", ("resume", "evaluate", "Recommender.load")
    )
