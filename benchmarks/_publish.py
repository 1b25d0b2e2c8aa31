"""Results as files, and what the documentation shows of them between two markers.

A benchmark may give two texts: `markdown(record)`, all of it, for the block `NAME`, and `headline(record)`, what somebody
who reads one screen should see, for the block `NAME headline`. Wherever a page has one of these blocks, it is written
there, so no number on a page is typed by hand.
"""

import json
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

from pslrec.files import make_directory, write_text

REPOSITORY = Path(__file__).resolve().parent.parent
RESULTS = REPOSITORY / "benchmarks" / "results"
# A benchmark itself keeps all cores busy.
BUSY = 1.5
MARKED = r"(<!-- benchmark: {name} -->\n).*?(<!-- end of benchmark -->)"


def record(
    name: str, description: str, machine: dict[str, Any], result: dict[str, Any]
) -> dict[str, Any]:
    """What is kept of a benchmark: the result, and what it was measured on."""
    return {
        "benchmark": name,
        "description": description,
        "measured": date.today().isoformat(),
        "machine": machine,
        "result": result,
    }


def save(kept: dict[str, Any], directory: Path = RESULTS) -> Path:
    """Write a record."""
    make_directory(directory)
    path = directory / f"{kept['benchmark']}.json"
    write_text(path, json.dumps(kept, indent=2) + "\n")
    return path


def load_record(name: str, directory: Path = RESULTS) -> dict[str, Any] | None:
    """The last record of a benchmark, if there is one."""
    path = directory / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def pages() -> list[Path]:
    """The documents that may hold tables."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def with_table(text: str, name: str, table: str) -> str:
    """The text with the table between the benchmark's markers, if it has them."""
    return re.sub(
        MARKED.format(name=re.escape(name)),
        lambda match: f"{match[1]}{table}\n{match[2]}",
        text,
        flags=re.DOTALL,
    )


def texts(name: str, benchmark: ModuleType, kept: dict[str, Any]) -> dict[str, str]:
    """The texts that a benchmark gives for the documentation, by the name of their block."""
    found = {}
    if hasattr(benchmark, "markdown"):
        found[name] = benchmark.markdown(kept)
    if hasattr(benchmark, "headline"):
        found[f"{name} headline"] = benchmark.headline(kept)
    return found


def update_pages(
    name: str, benchmark: ModuleType, kept: dict[str, Any], paths: Iterable[Path] | None = None
) -> list[Path]:
    """Write the benchmark's texts into every page that has their markers; gives the pages that changed."""
    blocks = texts(name, benchmark, kept)
    changed = []
    for path in pages() if paths is None else paths:
        before = path.read_text()
        after = before
        for block, text in blocks.items():
            after = with_table(after, block, text)
        if after != before:
            write_text(path, after)
            changed.append(path)
    return changed


def about_load(record: dict[str, Any]) -> str:
    """A sentence if the machine was busy with other work while it measured, else nothing."""
    machine = record["machine"]
    loads = [load[0] for load in (machine.get("load_before"), machine.get("load_after")) if load]
    if max(loads, default=0.0) <= BUSY * machine["cores"]:
        return ""
    return (
        f" The machine was busy with other work (load {max(loads):.1f} on {machine['cores']} cores): seconds are much too long, "
        "and ratios are less certain."
    )


def table(rows: list[dict[str, Any]]) -> str:
    """Rows of equal keys as a Markdown table, numbers to the right."""
    headings = list(rows[0])
    rules = ["---" if isinstance(rows[0][heading], str) else "---:" for heading in headings]
    lines = [headings, rules, *([str(row[heading]) for heading in headings] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
