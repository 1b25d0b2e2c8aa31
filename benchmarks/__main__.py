"""`python -m benchmarks [NAME...]`: measure, print a table, keep the results and update the tables of the documentation."""

import argparse
import inspect
import sys
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks import benchmarks
from benchmarks._plots import draw
from benchmarks._publish import REPOSITORY, load_record, record, save, update_pages
from benchmarks.machine import describe_machine, load


def main(arguments: list[str] | None = None) -> None:
    available = benchmarks()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.split(":", 1)[1].strip()
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"which to run: {', '.join(available)}; all if not given",
    )
    parser.add_argument("--list", action="store_true", help="list the benchmarks")
    parser.add_argument(
        "--tables",
        action="store_true",
        help="measure nothing, make the tables from the kept results again",
    )
    parser.add_argument(
        "--search",
        action="store_true",
        help="measure nothing, choose the settings of those compared with on validation data; slow, may be resumed",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="an option of the benchmark, such as memory_minutes=10 of serving; repeatable",
    )
    parser.add_argument(
        "--scale",
        type=float,
        metavar="SHARE",
        help="of `large`: 1 is 300 million interactions; the same as --set scale=SHARE",
    )
    options = parser.parse_args(arguments)
    if options.scale is not None:
        options.set.append(f"scale={options.scale}")
    try:
        settings = {
            name: _number(value)
            for name, _, value in (setting.partition("=") for setting in options.set)
        }
    except ValueError:
        parser.error(f"--set takes NAME=NUMBER, got {' '.join(options.set)}")
    unknown = sorted(set(options.names) - set(available))
    if unknown:
        parser.error(f"unknown benchmark `{unknown[0]}`; there are {', '.join(available)}")
    console = Console()
    for name in options.names or available:
        if options.list:
            console.print(f"[bold]{name}[/]  {available[name].DESCRIPTION}", highlight=False)
            continue
        if options.search:
            _search(name, available[name], console, settings)
            continue
        kept = (
            load_record(name)
            if options.tables
            else _measure(name, available[name], console, settings)
        )
        if kept is not None:
            pictures = draw(available[name], kept)
            for path in [*update_pages(name, available[name], kept), *pictures]:
                console.print(f"updated {path.relative_to(REPOSITORY)}", highlight=False)


def _search(name: str, benchmark: Any, console: Console, settings: dict[str, float]) -> None:
    if not hasattr(benchmark, "search"):
        console.print(f"{name} has nothing to search", highlight=False)
        return
    path = benchmark.search(report=lambda text: console.print(text, highlight=False), **settings)
    console.print(f"wrote {path.relative_to(REPOSITORY)}", highlight=False)


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _measure(
    name: str, benchmark: Any, console: Console, settings: dict[str, float]
) -> dict[str, Any]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    machine = {**describe_machine(), "load_before": load()}
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name)
        takes_report = "report" in inspect.signature(benchmark.run).parameters

        def report(text: str) -> None:
            progress.update(task, description=f"{name}: {text}")
            if not console.is_terminal:
                # A log has no line that could be drawn again.
                console.print(f"{name}: {text}", highlight=False, soft_wrap=True)

        options = {"report": report} if takes_report else {}
        result = benchmark.run(**options, **settings)
    kept = record(name, benchmark.DESCRIPTION, {**machine, "load_after": load()}, result)
    _show(kept, console)
    console.print(f"wrote {save(kept).relative_to(REPOSITORY)}\n", highlight=False)
    return kept


def _show(kept: dict[str, Any], console: Console) -> None:
    result = kept["result"]
    rows = result.get("rows", [])
    table = Table(
        title=f"{kept['benchmark']}: {kept['description']}", title_justify="left", box=None
    )
    for heading in rows[0] if rows else ():
        table.add_column(heading, justify="left" if isinstance(rows[0][heading], str) else "right")
    for row in rows:
        table.add_row(*map(str, row.values()))
    console.print(table)
    for key, value in result.items():
        if isinstance(value, str | int | float):
            console.print(f"{key}: {value}", highlight=False)
    console.print(
        f"load before and after: {kept['machine']['load_before']}, {kept['machine']['load_after']}",
        highlight=False,
    )


if __name__ == "__main__":
    sys.exit(main())
