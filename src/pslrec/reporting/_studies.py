"""Reports of studies: a search for settings, a comparison, or any other table of trials."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pslrec.artifacts import ArtifactError
from pslrec.files import read_json
from pslrec.reporting._document import (
    Block,
    Charts,
    Document,
    Fold,
    Mark,
    Section,
    Table,
    Text,
    Tile,
    Tiles,
    number,
    percent,
    probability,
    words,
)
from pslrec.reporting._runs import write_report
from pslrec.reporting._study_charts import (
    critical_difference_chart,
    curve_chart,
    importance_chart,
    quality_chart,
    slice_chart,
)

COMPARISON_FILE = "comparison.json"
RESULTS_FILE = "results.json"


def is_study(path: Path) -> bool:
    """Whether a directory holds a study that `study_report` can read."""
    return (path / COMPARISON_FILE).exists() or (path / RESULTS_FILE).exists()


def study_report(directory: Path, out: Path) -> Path:
    """Write the report of a study.

    Args:
        directory: of a search, a comparison, or another study.
        out: the HTML file to write; an older one is replaced.
    """
    if (directory / COMPARISON_FILE).exists():
        found = read_json(directory / COMPARISON_FILE, error=ArtifactError)
        return write_report(comparison_document(found), out)
    found = read_json(directory / RESULTS_FILE, error=ArtifactError)
    if found.get("kind") == "tuning":
        return write_report(tuning_document(found, directory.name), out)
    return write_report(trials_document(found, directory.name), out)


def tuning_document(found: Mapping[str, Any], name: str) -> Document:
    """The report of a search.

    Args:
        found: the content of `results.json`.
        name: of the study.
    """
    metric = found["metric"]
    trials = found["trials"]
    tiles = _state_tiles(trials)
    blocks: list[Block] = [Tiles(tiles)]
    best = found.get("best")
    if best is None:
        blocks.append(Text("The search is not complete, so nothing is chosen yet.", "warning"))
    else:
        value = next(trial["value"] for trial in trials if trial["key"] == best["key"])
        tiles.insert(0, Tile(f"Best {metric}", f"{value:.4f}", "on validation"))
        test = found["metrics"].get("test", {}).get(metric)
        if test is not None:
            tiles.insert(1, Tile(f"Test {metric}", f"{test:.4f}", "opened for the best one alone"))
        blocks.append(Text(f"Best settings: {settings_in_words(best['settings'])}."))
    for warning in found.get("warnings", ()):
        blocks.append(Text(f"{warning[0].upper()}{warning[1:]}.", "warning"))

    names = list(found.get("space", {}))
    valued = [trial for trial in trials if trial["value"] is not None]
    pictures = []
    if len(valued) > 1:
        pictures = [slice_chart(each, valued, metric=metric) for each in names]
        if found.get("importances"):
            pictures.append(importance_chart(found["importances"]))
        pictures.append(curve_chart(valued, metric=metric))
    sections = [
        Section("Summary", blocks),
        Section("The search", [Charts(pictures)] if pictures else []),
        Section("Trials", [_trial_table(trials, names, metric)]),
        Section("What is the same for all", [_asked_table(found)]),
    ]
    return Document(f"Tuning study {name}", f"chosen by {metric} on validation", sections)


def trials_document(found: Mapping[str, Any], name: str) -> Document:
    """The report of a study of which nothing is known but its trials; arguments as above."""
    trials = found["trials"]
    names: dict[str, None] = {}
    for trial in trials:
        names |= dict.fromkeys(trial["settings"])
    metric = found["metric"]
    sections = [
        Section("Summary", [Tiles(_state_tiles(trials))]),
        Section("Trials", [_trial_table(trials, list(names), metric)]),
    ]
    return Document(f"Study {name}", str(found.get("kind")), sections)


def _state_tiles(trials: Sequence[Mapping[str, Any]]) -> list[Tile]:
    tiles = [Tile("Trials", str(len(trials)))]
    states = [trial["state"] for trial in trials]
    for state in dict.fromkeys(states):
        tiles.append(Tile(state.capitalize(), str(states.count(state))))
    seconds = sum(trial["seconds"] for trial in trials)
    tiles.append(Tile("Time", f"{seconds:,.0f} s", "of all trials together"))
    return tiles


def _trial_table(trials: Sequence[Mapping[str, Any]], names: Sequence[str], metric: str) -> Table:
    rows = []
    for trial in trials:
        found = trial["found"]
        row = [number(trial["trial"], ".0f")]
        for name in names:
            value = trial["settings"].get(name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            row.append(number(value, ".4g") if is_number else words(value))
        row.append(number(found.get("validation", {}).get(metric)))
        if any("test" in each["found"] for each in trials):
            row.append(number(found.get("test", {}).get(metric)))
        row.append(number(found.get("best_epoch"), ".0f"))
        row.append(number(found.get("trained_epochs"), ".0f"))
        row.append(number(trial["seconds"], ".1f"))
        mark: Mark = "worse" if trial["state"] == "failed" else ""
        row.append(words(trial["state"], mark))
        row.append(words(trial["reason"]))
        rows.append(row)
    columns = ["trial", *(name.rpartition(".")[2] for name in names), f"validation {metric}"]
    if any("test" in each["found"] for each in trials):
        columns.append(f"test {metric}")
    columns += ["best epoch", "epochs", "seconds", "state", "reason"]
    return Table("All trials", columns, rows)


def _asked_table(found: Mapping[str, Any]) -> Table:
    rows = []
    for name, value in found.get("asked", {}).items():
        if name != "space":
            rows.append([words(name), words(value)])
    for name, values in found.get("space", {}).items():
        rows.append([words(f"searched: {name}"), words(_space_in_words(values))])
    return Table("Settings that differ from the defaults, and what was searched", ["", ""], rows)


def _space_in_words(values: Any) -> str:
    if isinstance(values, dict):
        scale = ", by order of magnitude" if values.get("log") else ""
        return f"{values['low']:g} to {values['high']:g}{scale}"
    return ", ".join(str(value) for value in values)


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
        _contestant_table(found),
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
        Section("Pairs", [_pair_table(found), Text(note, "note")]),
        Section("How the contestants were tuned", _tuning_blocks(found)),
    ]
    title = f"Comparison on {found['data']}"
    subtitle = ", ".join(one["name"] for one in contestants)
    return Document(title, subtitle, sections)


def rank_chart(found: Mapping[str, Any]) -> Any:
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


def _contestant_table(found: Mapping[str, Any]) -> Table:
    metric = found["metric"]
    rows = []
    for place, one in enumerate(found["contestants"]):
        low, high = one["interval"]
        mark: Mark = "best" if place == 0 else ""
        rows.append(
            [
                words(one["name"]),
                number(one["ndcg@20"], mark=mark if metric == "ndcg@20" else ""),
                number(one["ndcg@20_deviation"]),
                number(one["recall@20"], mark=mark if metric == "recall@20" else ""),
                number(one["recall@20_deviation"]),
                words(f"{low:.4f} to {high:.4f}"),
                number(one["rank"], ".3f"),
                number(one["seconds"], ".3g"),
            ]
        )
    columns = [
        "contestant",
        "NDCG@20",
        "deviation",
        "Recall@20",
        "deviation",
        f"95 % interval of {metric}",
        "mean rank",
        "seconds",
    ]
    return Table("Test part: means and standard deviations over seeds", columns, rows)


def _pair_table(found: Mapping[str, Any]) -> Table:
    rows = []
    for pair in found["pairs"]:
        low, high = pair["interval"]
        marks: dict[str, Mark] = {"better": "better", "worse": "worse"}
        seeds = [words(None), words(None)]
        if pair["seeds_p"] is not None:
            seeds = [probability(pair["seeds_p_holm"]), number(pair["seeds_effect"], "+.2f")]
        rows.append(
            [
                words(f"{pair['first']} - {pair['second']}"),
                number(pair["difference"], "+.4f"),
                percent(pair["relative"]),
                words(f"{low:+.4f} to {high:+.4f}"),
                probability(pair["users_p_holm"]),
                number(pair["users_effect"], "+.2f"),
                *seeds,
                words(pair["verdict"], marks.get(pair["verdict"], "muted")),
            ]
        )
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
