"""A full disk in the middle of any command that writes: one sentence, exit code 2, and nothing half-written."""

import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from command_line import Command, Disk, Outcome

from pslrec.errors import PslrecError
from pslrec.files._places import is_temporary

TRAINING = (
    *(
        "--set",
        "backbone.dimension=4",
        "--set",
        "training.epochs=2",
        "--set",
        "training.validate_every=1",
    ),
    *("--threads", "1"),
)


class Case(NamedTuple):
    """A command that writes.

    Args:
        arguments: given a finished run, a log and where to write to.
        can_resume: whether what is whole may stay behind, and the same command finishes it; otherwise nothing stays.
    """

    arguments: Callable[[Path, Path, Path], tuple[object, ...]]
    can_resume: bool = False


def _recommending(suffix: str) -> Case:
    return Case(lambda run, _log, out: ("recommend", run, "--all", "--out", out / f"lists{suffix}"))


def _exporting(to: str) -> Case:
    return Case(lambda run, _log, out: ("export", run, "--to", to, "--out", out / "export"))


def _preparing(suffix: str) -> Case:
    return Case(
        lambda _run, log, out: (
            "data",
            "prepare",
            log,
            "--k-core",
            0,
            "--out",
            out / f"log{suffix}",
        )
    )


CASES = {
    **{f"recommend {suffix}": _recommending(suffix) for suffix in (".csv", ".jsonl", ".parquet")},
    **{f"export {to}": _exporting(to) for to in ("safetensors", "npz", "parquet", "onnx", "faiss")},
    **{f"prepare {suffix}": _preparing(suffix) for suffix in (".csv", ".tsv", ".parquet")},
    "split": Case(lambda _run, log, out: ("data", "split", log, "--out", out / "split")),
    "report": Case(
        lambda run, _log, out: ("report", run, "--out", out / "report.html", "--threads", 1)
    ),
    "train": Case(
        lambda _run, log, out: ("train", log, *TRAINING, "--out", out / "run", "--resume"),
        can_resume=True,
    ),
    "refit": Case(
        lambda _run, log, out: (
            "train",
            log,
            *TRAINING,
            "--refit",
            "--out",
            out / "run",
            "--resume",
        ),
        can_resume=True,
    ),
    "tune": Case(
        lambda _run, log, out: (
            "tune",
            log,
            *TRAINING,
            "--grid",
            "loss.temperature=0.1,0.2",
            "--out",
            out / "search",
        ),
        can_resume=True,
    ),
    "compare": Case(
        lambda _run, log, out: (
            "compare",
            log,
            *TRAINING,
            "--losses",
            "sl,psl-relu",
            "--tune",
            "1",
            "--seeds",
            "1",
            "--out",
            out / "compare",
        ),
        can_resume=True,
    ),
    "stress": Case(
        lambda _run, log, out: (
            "stress",
            log,
            *TRAINING,
            "--noise",
            "0.1",
            "--shift",
            "0.5",
            "--out",
            out / "stress",
        ),
        can_resume=True,
    ),
}
NEEDS = {"export onnx": "onnx", "export faiss": "faiss"}


@pytest.fixture(scope="module")
def finished(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from pslrec import Recommender

    path = tmp_path_factory.mktemp("finished") / "run"
    Recommender("sl", epochs=2, dimension=8).fit(log).save(path)
    return path


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    if request.param in NEEDS:
        pytest.importorskip(NEEDS[request.param])
    return CASES[request.param]


def assert_one_sentence_about_room(outcome: Outcome) -> None:
    assert outcome.code == 2, outcome.err
    assert "Traceback" not in outcome.err
    last = outcome.err.splitlines()[-1]
    assert last.startswith("error: ")
    assert "cannot be written" in last
    assert "make room or choose another place" in last
    assert ".pslrec-" not in last


def everything_in(directory: Path) -> dict[str, bytes]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def assert_nothing_half_written(case: Case, out: Path) -> None:
    assert not [path for path in out.rglob("*") if is_temporary(path.name)]
    if not case.can_resume:
        assert everything_in(out) == {}


def n_calls_of(case: Case, pslrec: Command, finished: Path, log: Path, out: Path) -> int:
    disk = Disk()
    with disk.used():
        outcome = pslrec(*case.arguments(finished, log, out))
    assert outcome.code == 0, outcome.err
    assert everything_in(out)
    shutil.rmtree(out)
    out.mkdir()
    return disk.n_calls


def fill_at(place: int, case: Case, pslrec: Command, finished: Path, log: Path, out: Path) -> None:
    disk = Disk()
    disk.room = place
    with disk.used():
        outcome = pslrec(*case.arguments(finished, log, out))
    assert_one_sentence_about_room(outcome)
    assert_nothing_half_written(case, out)


def test_a_full_disk_is_one_sentence(
    case: Case,
    pslrec: Command,
    finished: Path,
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    # The very first call: what is written later is tried by the slow tests.
    fill_at(1, case, pslrec, finished, log, out)


@pytest.mark.slow
def test_a_full_disk_at_any_moment_leaves_nothing_half_written(
    case: Case,
    pslrec: Command,
    finished: Path,
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    n_calls = n_calls_of(case, pslrec, finished, log, out)
    places = sorted({round(n_calls * share / 12) for share in range(12)} | {1, n_calls - 1})
    for place in places:
        fill_at(place, case, pslrec, finished, log, out)
        if case.can_resume:
            # There is room again: the same command goes on to the end.
            outcome = pslrec(*case.arguments(finished, log, out))
            assert outcome.code == 0, outcome.err
            assert not [path for path in out.rglob("*") if is_temporary(path.name)]
        shutil.rmtree(out)
        out.mkdir()


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_an_older_file_stays_as_it_was(
    pslrec: Command, finished: Path, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"lists{suffix}"
    out.write_text("before")
    disk = Disk()
    disk.room = 2
    with disk.used():
        outcome = pslrec("recommend", finished, "--all", "--out", out)
    assert_one_sentence_about_room(outcome)
    assert everything_in(tmp_path) == {out.name: b"before"}


def test_saving_from_python_leaves_nothing_half_written(
    finished: Path, log: Path, tmp_path: Path
) -> None:
    from pslrec import Recommender

    fitted = Recommender("sl", epochs=1, dimension=4).fit(log)
    for recommender in (fitted, Recommender.load(finished)):
        for room in range(0, 30, 3):
            disk = Disk()
            disk.room = room
            with (
                pytest.raises(
                    PslrecError, match="cannot be written: no space left on device; make room"
                ),
                disk.used(),
            ):
                recommender.save(tmp_path / "saved")
            assert list(tmp_path.iterdir()) == []
        recommender.save(tmp_path / "saved")
        assert Recommender.load(tmp_path / "saved").n_users_ == recommender.n_users_
        shutil.rmtree(tmp_path / "saved")


PROGRAM = """
import resource, sys
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
from pslrec.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 400])
def test_the_system_itself_refuses_to_write(
    case: Case, finished: Path, log: Path, tmp_path: Path, limit: int
) -> None:
    """No file may be longer than a limit: then the system refuses, wherever and by whatever library it is written."""
    if resource.getrlimit(resource.RLIMIT_FSIZE)[1] != resource.RLIM_INFINITY:
        pytest.skip("the length of files is limited here already")
    out = tmp_path / "out"
    out.mkdir()
    arguments = [str(each) for each in case.arguments(finished, log, out)]
    command = [sys.executable, "-c", PROGRAM, str(limit), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path
    )
    assert_one_sentence_about_room(Outcome(done.returncode, done.stdout, done.stderr))
    assert "file too large" in done.stderr
    assert_nothing_half_written(case, out)
