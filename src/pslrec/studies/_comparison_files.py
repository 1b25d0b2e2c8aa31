"""The files of a comparison: JSON, CSV, Markdown, LaTeX, pictures and a page."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pslrec.files import make_directory, write_text
from pslrec.reporting import (
    contestant_table,
    latex_text,
    pair_table,
    quality_chart,
    rank_chart,
    study_report,
    write_chart,
)

METRICS = ("ndcg@20", "recall@20")


def write_comparison(found: Mapping[str, Any], out: Path) -> list[Path]:
    """Write everything about a comparison; gives the files.

    Args:
        found: what `compare_contestants` found.
        out: directory of the comparison.
    """
    make_directory(out)
    texts = {
        "comparison.json": json.dumps(found, indent=1) + "\n",
        "comparison.csv": _contestants(found).write_csv(),
        "pairs.csv": _pairs(found).write_csv(),
        "comparison.md": markdown(found),
        "comparison.tex": latex(found),
    }
    written = []
    for name, content in texts.items():
        write_text(out / name, content)
        written.append(out / name)
    quality = quality_chart(
        found["contestants"], metric=found["metric"], title=f"Quality against time: {found['data']}"
    )
    written += write_chart(rank_chart(found), out / "critical-difference")
    written += write_chart(quality, out / "quality-time")
    written.append(study_report(out, out / "comparison.html"))
    return written


def _contestants(found: Mapping[str, Any]) -> pl.DataFrame:
    rows = []
    for one in found["contestants"]:
        low, high = one["interval"]
        row = {"contestant": one["name"], "kind": one["kind"]}
        for metric in METRICS:
            row[metric] = one[metric]
            row[f"{metric}_deviation"] = one[f"{metric}_deviation"]
        row |= {
            "interval_low": low,
            "interval_high": high,
            "mean_rank": one["rank"],
            "n_seeds": len(one["ndcg@20_by_seed"]),
            "seconds": one["seconds"],
            "n_trials": one["n_trials"],
            "tuning_seconds": one["tuning_seconds"],
            "settings": json.dumps(one["settings"]),
        }
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def _pairs(found: Mapping[str, Any]) -> pl.DataFrame:
    rows = []
    for pair in found["pairs"]:
        row = dict(pair)
        row["interval_low"], row["interval_high"] = row.pop("interval")
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def markdown(found: Mapping[str, Any]) -> str:
    """The comparison as a page of Markdown."""
    parts = [
        f"# Comparison on {found['data']}",
        f"Test part, protocol {found['protocol']}, {found['n_users']:,} users. "
        f"Up to {found['n_trials']} settings tried for each contestant on validation "
        f"({found['space']} spaces), then {found['n_seeds']} seeds (± standard deviation).",
        contestant_table(found).markdown(),
        "![Mean ranks over users](critical-difference.svg)",
        "![Quality against time](quality-time.svg)",
        "## Pairs",
        f"Differences in {found['metric']}, first minus second, with bootstrap intervals; p-values "
        "of Wilcoxon's test over users and of the t-test over seeds, both paired and corrected by "
        "Holm's method; effects are differences in standard deviations of the differences.",
        pair_table(found).markdown(),
    ]
    warnings = []
    for one in found["contestants"]:
        for warning in one["warnings"]:
            warnings.append(f"- {one['name']}: {warning}.")
    if warnings:
        parts += ["## What speaks against the tuning", "\n".join(warnings)]
    return "\n\n".join(parts) + "\n"


def latex(found: Mapping[str, Any]) -> str:
    """The table of contestants for a paper, in the style of `booktabs`; the best is bold."""
    lines = [
        r"\begin{tabular}{lrrrr}",
        r"\toprule",
        r"Method & NDCG@20 & Recall@20 & Mean rank & Seconds \\",
        r"\midrule",
    ]
    best = {}
    for metric in METRICS:
        best[metric] = max(one[metric] for one in found["contestants"])
    for one in found["contestants"]:
        cells = [latex_text(one["name"])]
        for metric in METRICS:
            value = f"${one[metric]:.4f}$"
            if one[metric] == best[metric]:
                value = rf"$\mathbf{{{one[metric]:.4f}}}$"
            if one[f"{metric}_deviation"] is not None:
                value += rf" {{\small$\pm${one[f'{metric}_deviation']:.4f}}}"
            cells.append(value)
        cells += [f"{one['rank']:.2f}", f"{one['seconds']:.3g}"]
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"
