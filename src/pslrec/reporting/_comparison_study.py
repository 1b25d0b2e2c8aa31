"""The report of a comparison."""

from collections.abc import Mapping
from typing import Any

from pslrec.reporting._document import (
    Block,
    Cell,
    Chart,
    Charts,
    Document,
    Fold,
    Mark,
    Section,
    Table,
    Text,
    interval,
    number,
    percent,
    plus_minus,
    probability,
    words,
)
from pslrec.reporting._study_charts import critical_difference_chart, quality_chart


def settings_in_words(settings: Mapping[str, Any]) -> str:
    """Settings for a sentence, sections left out.

    >>> settings_in_words({"loss.temperature": 0.1, "training.seed": 3})
    'temperature 0.1, seed 3'
    """
    parts = []
    for name, value in settings.items():
        shown = f"{value:.4g}" if isinstance(value, float) else value
        parts.append(f"{name.rpartition('.')[2]} {shown}")
    return ", ".join(parts) or "nothing"


def comparison_document(found: Mapping[str, Any]) -> Document:
    """The report of a comparison.

    Args:
        found: the content of `comparison.json`.
    """
    metric = found["metric"]
    contestants = found["contestants"]
    best, second = contestants[:2]
    pair = found["pairs"][0]
    verdict = "and both tests tell them apart"
    if pair["verdict"] == "not told apart":
        verdict = "but the tests cannot tell the two apart"
    blocks: list[Block] = [
        Text(
            f"{best['name']} is ahead with a test {metric} of {best[metric]:.4f}, before "
            f"{second['name']} with {second[metric]:.4f}, {verdict}."
        ),
        Text(_effort_sentence(found), "note"),
        # What was tried, and what was chosen, has a section of its own.
        contestant_table(found).narrowed(6),
        Charts(
            [
                rank_chart(found),
                quality_chart(contestants, metric=metric, title="Quality against time"),
            ]
        ),
    ]
    note = (
        "Differences are first minus second. Over users: Wilcoxon's signed-rank test on values "
        "averaged over seeds, and a bootstrap interval. Over seeds: a paired t-test. All tests are "
        "two-sided and corrected by Holm's method for the number of pairs. An effect is a mean "
        "difference divided by the standard deviation of the differences. A pair is told apart if "
        "every test that could be made is below 0.05."
    )
    sections = [
        Section("Summary", blocks),
        Section("Pairs", [pair_table(found), Text(note, "note")]),
        Section("How the contestants were tuned", _tuning_blocks(found)),
    ]
    title = f"Comparison on {found['data']}"
    subtitle = ", ".join(one["name"] for one in contestants)
    return Document(title, subtitle, sections)


def rank_chart(found: Mapping[str, Any]) -> Chart:
    """The critical-difference plot of a comparison."""
    ordered = sorted(found["contestants"], key=lambda one: one["rank"])
    return critical_difference_chart(
        {one["name"]: one["rank"] for one in ordered},
        found["critical_difference"],
        found["groups"],
        title="Mean ranks over users",
    )


def _effort_sentence(found: Mapping[str, Any]) -> str:
    if not found["n_trials"]:
        tuned = "Nothing was tuned: contestants have the settings that they were given"
    else:
        tuned = (
            f"Up to {found['n_trials']} settings were tried for each contestant, on validation "
            f"({found['space']} spaces, fewer where a space has no more)"
        )
    return (
        f"{tuned}; then {found['n_seeds']} seeds. Protocol {found['protocol']}, "
        f"{found['n_users']:,} users."
    )


def contestant_table(found: Mapping[str, Any]) -> Table:
    """Everything about each contestant; the best by the metric of the comparison stands out."""
    metric = found["metric"]
    rows = []
    for place, one in enumerate(found["contestants"]):
        row = [words(one["name"])]
        for name in ("ndcg@20", "recall@20"):
            mark: Mark = "best" if place == 0 and name == metric else ""
            text = plus_minus(one[name], one[f"{name}_deviation"])
            row.append(Cell(text, one[name], mark))
        row += [
            interval(one["interval"]),
            number(one["rank"], ".3f"),
            number(one["seconds"], ".3g"),
            number(one["n_trials"], ".0f"),
            words(settings_in_words(one["settings"])),
        ]
        rows.append(row)
    columns = [
        "contestant",
        "NDCG@20",
        "Recall@20",
        f"95 % interval of {metric}",
        "mean rank",
        "seconds",
        "trials",
        "settings",
    ]
    return Table("Test part: means and standard deviations over seeds", columns, rows)


def pair_table(found: Mapping[str, Any]) -> Table:
    """Every pair of contestants, with what was tested."""
    marks: dict[str, Mark] = {"better": "better", "worse": "worse"}
    rows = []
    for pair in found["pairs"]:
        row = [
            words(f"{pair['first']} - {pair['second']}"),
            number(pair["difference"], "+.4f"),
            percent(pair["relative"]),
            interval(pair["interval"], "+.4f"),
        ]
        for kind in ("users", "seeds"):
            row.append(probability(pair[f"{kind}_p_holm"]))
            row.append(number(pair[f"{kind}_effect"], "+.2f"))
        row.append(words(pair["verdict"], marks.get(pair["verdict"], "muted")))
        rows.append(row)
    columns = [
        "pair",
        "difference",
        "relative",
        "95 % interval",
        "users: p",
        "effect",
        "seeds: p",
        "effect",
        "verdict",
    ]
    return Table(f"Differences in {found['metric']} on the test part", columns, rows)


def _tuning_blocks(found: Mapping[str, Any]) -> list[Block]:
    rows = []
    for one in found["contestants"]:
        rows.append(
            [
                words(one["name"]),
                words(settings_in_words(one["settings"])),
                number(one["n_trials"], ".0f"),
                number(one["tuning_seconds"], ",.0f"),
            ]
        )
    columns = ["contestant", "settings", "trials", "seconds"]
    blocks: list[Block] = [Table("What tuning chose, and what it took", columns, rows)]
    warnings = []
    for one in found["contestants"]:
        for warning in one["warnings"]:
            warnings.append(Text(f"{one['name']}: {warning}.", "warning"))
    if warnings:
        blocks.append(Fold(f"{len(warnings)} warnings about the tuning", warnings))
    return blocks
