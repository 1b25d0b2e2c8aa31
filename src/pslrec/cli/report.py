"""`pslrec report`: one HTML file about a run, several runs, or a reproduction."""

from pathlib import Path
from typing import Annotated

import typer

from pslrec.cli._options import Threads, use_threads


def report_command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Directories of runs, or one directory with the CSV files of a reproduction.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file to write; an older one is replaced.")
    ] = Path("report.html"),
    threads: Threads = None,
) -> None:
    """Write a report that opens in any browser, without a network: tables, curves, scores, settings.

    Several runs are compared with the first one.
    """
    from pslrec.reporting import reproduction_report, run_report

    use_threads(threads)
    results = _results_directory(runs)
    written = run_report(runs, out) if results is None else reproduction_report(results, out)
    typer.echo(f"the report is in {written} ({written.stat().st_size / 1000:.0f} kB)")


def _results_directory(paths: list[Path]) -> Path | None:
    """The directory of a reproduction's results among the paths; `None` if all of them are runs."""
    from pslrec.errors import ConfigError
    from pslrec.files import local_path

    for path in paths:
        local_path(path, error=ConfigError)
        if not path.is_dir():
            raise ConfigError(
                f"there is no directory {path}; RUN is a directory that `pslrec train --out` has made"
            )
    others = [path for path in paths if not (path / "format").exists()]
    if not others:
        return None
    found = [
        inner for path in others for inner in (path, path / "results") if any(inner.glob("*.csv"))
    ]
    if found and len(paths) == 1:
        return found[0]
    if found:
        raise ConfigError(
            f"{others[0]} holds results of a reproduction; give it alone, or give runs only"
        )
    inside = sorted(inner.parent.name for inner in others[0].glob("*/format"))
    hint = f"; it holds the runs {', '.join(inside[:5])}: give {others[0]}/*" if inside else ""
    raise ConfigError(f"{others[0]} holds neither a run nor CSV files of results{hint}")
