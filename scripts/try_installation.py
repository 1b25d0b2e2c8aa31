"""Tries an installed pslrec as a newcomer would: `python scripts/try_installation.py`, with the interpreter that has it.

Run from any directory but `src`: what is tried has to be the installed package. Used by `make wheel` and by the
workflow that builds wheels.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> None:
    import pslrec
    from pslrec.kernels import IS_COMPILED

    place = Path(pslrec.__file__).resolve().parent
    if "site-packages" not in place.parts:
        sys.exit(f"pslrec is imported from {place}, which is not an installation")
    if shutil.which("c++") is not None and not IS_COMPILED:
        sys.exit("the wheel has no compiled kernels, though there is a compiler here")
    with tempfile.TemporaryDirectory() as directory:
        try_python(Path(directory))
        try_command_line(Path(directory))
    print(f"pslrec {pslrec.__version__} works: trained, saved, loaded, asked, papers found")


def try_python(directory: Path) -> None:
    from pslrec import Recommender
    from pslrec.data import load_interactions

    log = directory / "log.csv"
    load_interactions("debian").to_frame().write_csv(log)
    recommender = Recommender(loss="psl-relu", preset="fast", k_core=10, epochs=2).fit(log)
    before = recommender.recommend(["gimp"], k=5)
    recommender.save(directory / "model")
    after = Recommender.load(directory / "model").recommend(["gimp"], k=5)
    assert len(before) == 5
    assert before.equals(after)


def try_command_line(directory: Path) -> None:
    program = Path(sys.executable).with_name("pslrec")
    run = str(directory / "run")
    for arguments in (
        ["doctor"],
        ["recommend", str(directory / "model"), "--user", "gimp", "--k", "3"],
        ["train", "debian", "--preset", "fast", "--set", "training.epochs=2", "--out", run],
        ["evaluate", run, "--k", "5,20"],
        ["reproduce"],
        ["reproduce", "slatk-kdd-2025", "--datasets", "health", "--dry-run"],
        ["reproduce", "psl-neurips-2024", "claims"],
    ):
        subprocess.run([program, *arguments], check=True, cwd=directory)


if __name__ == "__main__":
    main()
