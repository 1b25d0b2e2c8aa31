"""The files of a stress test: runs, summary, curves, and a page."""

from pathlib import Path

import polars as pl

from pslrec.files import make_directory, write_text
from pslrec.reporting import STRESS_SAYS, stress_chart, stress_tables, study_report, write_chart
from pslrec.studies._stress import summarize


def write_stress(runs: pl.DataFrame, out: Path, *, base: str, name: str = "data") -> list[Path]:
    """Write `runs.csv`, `summary.csv`, a curve per test, and two pages; give what was written.

    Args:
        runs: from `stress`.
        out: directory.
        base: the loss that the others are compared with.
        name: of the data, for titles.
    """
    make_directory(out)
    summary = summarize(runs, base)
    page = [f"# Stress tests of losses: {name}"]
    written = []
    for test, table in stress_tables(summary, base).items():
        written += write_chart(stress_chart(summary, test, base=base, name=name), out / test)
        page += [table.markdown(level=2), STRESS_SAYS[test], f"![{table.title}]({test}.svg)"]
    texts = {
        "runs.csv": runs.write_csv(),
        "summary.csv": summary.write_csv(),
        "README.md": "\n\n".join(page) + "\n",
    }
    for file, text in texts.items():
        write_text(out / file, text)
        written.append(out / file)
    if (out / "results.json").exists():
        written.append(study_report(out, out / "stress.html"))
    return written
