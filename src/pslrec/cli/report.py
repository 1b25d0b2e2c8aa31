"""`pslrec report`: one HTML file about a run, several runs, a study, or a reproduction."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pslrec.cli._options import Threads, use_threads
from pslrec.cli._rule_options import ItemTableEncoding, ItemTableFile, table_file

if TYPE_CHECKING:
    from pslrec.reporting import Presentation


ADVICE = "; RUN must be a directory that `pslrec train --out` has made"


def report_command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Run directories, or one directory of `tune`, `compare`, `stress`, `reproduce`.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File to write; an older one is replaced."
        ),
    ] = Path("report.html"),
    item_table: ItemTableFile = None,
    item_table_encoding: ItemTableEncoding = None,
    threads: Threads = None,
) -> None:
    """Write a self-contained HTML report: metrics, learning curves, score histograms, settings.

    If you give several runs, they are compared with the first one.
    """
    from pslrec.artifacts import ITEM_TABLE_FILE
    from pslrec.data.items import TableFile
    from pslrec.reporting import is_study, reproduction_report, run_report, study_report

    use_threads(threads)
    titles = table_file(item_table, item_table_encoding)
    if len(runs) == 1 and is_study(runs[0]):
        written = study_report(runs[0], out)
    else:
        results = _results_directory(runs)
        if results is None:
            if titles is None and (runs[0] / ITEM_TABLE_FILE).is_file():
                titles = TableFile(runs[0] / ITEM_TABLE_FILE)
            written = run_report(runs, out, item_table=titles)
        else:
            written = reproduction_report(results, out, presentation=_presentation(results))
    typer.echo(f"the report is in {written} ({written.stat().st_size / 1000:.0f} kB)")


def _presentation(results: Path) -> "Presentation | None":
    """How the paper that the results belong to wants them shown."""
    from pslrec.reproduction import Grid, presentation_of

    if not (results.parent / "paper.toml").is_file():
        return None
    return presentation_of(Grid(results.parent))


def _results_directory(paths: list[Path]) -> Path | None:
    """The directory with a reproduction's results; `None` if all of the paths are runs."""
    from pslrec.errors import ConfigError
    from pslrec.files import local_path
    from pslrec.reporting import holds_results

    for path in paths:
        local_path(path, error=ConfigError)
        if not path.is_dir():
            raise ConfigError(f"there is no directory {path}{ADVICE}")
    # Every run directory has a file `format`, a damaged one as well: what is wrong with it is
    # said by the reader of runs.
    others = [path for path in paths if not (path / "format").exists()]
    if not others:
        return None
    # The results of a reproduction, or the directory of a reproduction with results/ in it.
    candidates = []
    for path in others:
        # The folder of a paper may hold data of its own beside them.
        candidates += [path / "results", path]
    results = [candidate for candidate in candidates if holds_results(candidate)]
    if results and len(paths) == 1:
        return results[0]
    if results:
        raise ConfigError(
            f"{others[0]} holds results of a reproduction, which are not runs; "
            "give it alone, or leave it out"
        )
    hint = ""
    inside = sorted(str(inner.parent) for inner in others[0].glob("*/format"))
    if inside:
        # By name: there may be anything else beside them.
        hint = f"; it holds runs: pslrec report {shlex.join(inside[:5])}"
    raise ConfigError(
        f"{others[0]} holds neither a run nor the results of a reproduction{hint or ADVICE}"
    )
