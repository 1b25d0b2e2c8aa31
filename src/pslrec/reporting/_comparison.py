"""Metrics of runs side by side, and whether they differ by more than chance."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from pslrec.evaluation import Comparison, Evaluated, compare_results
from pslrec.reporting._document import (
    Block,
    Cell,
    Fold,
    Section,
    Table,
    Text,
    number,
    percent,
    probability,
    words,
)
from pslrec.reporting._measures import K, Measures
from pslrec.reporting._run_record import RunRecord

FIRST = ("ndcg", "recall", "precision", "hit_rate", "mrr", "map", "f1")
COMPARED = (f"ndcg@{K}", f"recall@{K}")
LEVEL = 0.05
NAMES = {
    "ndcg": "NDCG",
    "recall": "Recall",
    "precision": "Precision",
    "hit_rate": "Hit rate",
    "mrr": "MRR",
    "map": "MAP",
}
# Of these neither more nor less is better in itself.
NEUTRAL = ("average_popularity", "coverage", "gini", "tail_share")


def metric_title(name: str) -> str:
    """How a metric is written.

    >>> metric_title("ndcg@20"), metric_title("tail_share@5")
    ('NDCG@20', 'tail share@5')
    """
    base, at, k = name.partition("@")
    return NAMES.get(base, base.replace("_", " ")) + at + k


def metrics_section(records: Sequence[RunRecord], measured: Mapping[str, Measures]) -> Section:
    """Tables of metrics, and comparisons with the first run.

    Args:
        records: the runs; those that are not finished are left out.
        measured: values of single users, by label.
    """
    finished = [record for record in records if record.is_finished]
    if not finished:
        return Section(
            "Metrics", [Text("No run is finished, so there are no metrics yet.", "note")]
        )
    blocks: list[Block] = [_metric_table(finished, "test", _main_names(finished), "Test part")]
    blocks += _evaluated_notes(finished)
    blocks += significance_blocks(finished, measured)
    blocks += _seed_blocks(finished)
    every = _all_names(finished)
    blocks.append(
        Fold("All metrics of the test part", [_metric_table(finished, "test", every, "Test part")])
    )
    if any(record.metrics.get("validation") for record in finished):
        table = _metric_table(finished, "validation", every, "Validation part")
        blocks.append(Fold("All metrics of the validation part", [table]))
    return Section("Metrics", blocks)


def _evaluated_notes(records: Sequence[RunRecord]) -> list[Block]:
    """On how many users and pairs the runs were evaluated; runs of one data set say it once."""
    told: dict[str, list[RunRecord]] = {}
    for record in records:
        counts = record.metrics.get("evaluated", {}).get("test")
        if counts is not None and counts["of_pairs"]:
            told.setdefault(Evaluated(**counts).sentence("test"), []).append(record)
    notes: list[Block] = []
    for sentence, those in told.items():
        labels = ", ".join(record.label for record in those)
        prefix = f"{labels}: " if len(records) > 1 else ""
        few = Evaluated(**those[0].metrics["evaluated"]["test"]).is_few
        caution = ": too few to tell models apart by some per cent" if few else ""
        notes.append(Text(f"{prefix}{sentence}{caution}.", "warning" if few else "note"))
    return notes


def _all_names(records: Sequence[RunRecord]) -> list[str]:
    names = {name for record in records for name in record.metrics.get("test", {})}

    def order(name: str) -> tuple[int, str, int]:
        base, _, k = name.partition("@")
        return (
            FIRST.index(base) if base in FIRST else len(FIRST),
            base,
            int(k) if k.isdigit() else 0,
        )

    return sorted(names, key=order)


def _main_names(records: Sequence[RunRecord]) -> list[str]:
    return [
        name for name in _all_names(records) if name.partition("@")[0] in FIRST[:2]
    ] or _all_names(records)[:6]


def _metric_table(
    records: Sequence[RunRecord], split: str, names: Sequence[str], caption: str
) -> Table:
    protocols = sorted({str(record.metrics.get("protocol")) for record in records})
    caption += f", protocol {' and '.join(protocols)}"
    is_contest = len({record.data_key for record in records}) == 1 < len(records)
    rows = []
    for name in names:
        values = [record.metric(name, split) for record in records]
        known = [value for value in values if value is not None]
        is_ranked = is_contest and len(set(known)) > 1 and name.partition("@")[0] not in NEUTRAL
        cells = [number(v, mark="best" if is_ranked and v == max(known) else "") for v in values]
        rows.append([words(metric_title(name)), *cells])
    if is_contest:
        caption += "; the best value of a row is bold"
    return Table(caption, ["metric", *(record.label for record in records)], rows)


def significance_blocks(
    finished: Sequence[RunRecord], measured: Mapping[str, Measures]
) -> list[Block]:
    """Every run beside the first one on the same data, judged user by user.

    Args:
        finished: the runs.
        measured: values of single users, by label.
    """
    base, *others = finished
    rows: list[tuple[str, str, float | None, Comparison]] = []
    for other in others:
        if (
            base.label not in measured
            or other.label not in measured
            or other.data_key != base.data_key
        ):
            continue
        first, second = measured[base.label].test, measured[other.label].test
        rows += [
            (other.label, name, first[name], compare_results(first, second, name))
            for name in COMPARED
        ]
    if not rows:
        return []
    corrected = holm([comparison.t_test for *_, comparison in rows])
    cells = [_comparison_row(*row, p) for row, p in zip(rows, corrected, strict=True)]
    columns = [
        "run",
        "metric",
        "difference",
        "relative",
        "95 % interval",
        "t-test p",
        "Wilcoxon p",
        "corrected p",
        "verdict",
    ]
    caption = f"Each run minus {base.label}, over the same {rows[0][3].n_users:,} users"
    note = (
        "Tests are paired over users: a t-test and the Wilcoxon signed-rank test, both two-sided; the interval is by "
        f"bootstrap. The corrected p is the t-test's after Holm's correction for the {len(rows)} comparisons of this table; "
        f"the verdict asks whether it is below {LEVEL}. This measures the chance of the draw of users; that of training "
        "needs several seeds."
    )
    return [Table(caption, columns, cells), Text(note, "note")]


def _comparison_row(
    label: str, name: str, base: float | None, comparison: Comparison, corrected: float
) -> list[Cell]:
    low, high = comparison.interval
    difference = comparison.difference
    relative = difference / base if base else None
    is_clear = corrected < LEVEL
    verdict = ("better" if difference > 0 else "worse") if is_clear else "inside chance"
    return [
        words(label),
        words(metric_title(name)),
        number(difference, "+.4f"),
        percent(relative, mark_sign=is_clear),
        words(f"{low:+.4f} to {high:+.4f}"),
        probability(comparison.t_test),
        probability(comparison.wilcoxon),
        probability(corrected),
        words(
            verdict, "better" if verdict == "better" else "worse" if verdict == "worse" else "muted"
        ),
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values after Holm's correction for making several tests.

    >>> [round(p, 6) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected


def _seed_blocks(finished: Sequence[RunRecord]) -> list[Block]:
    groups: dict[tuple[tuple[str, str], ...], list[RunRecord]] = {}
    for record in finished:
        groups.setdefault(_all_but_seed(record.settings), []).append(record)
    repeated = [group for group in groups.values() if len(group) > 1]
    if not repeated:
        return []
    rows = []
    for group in repeated:
        cells = [
            words(", ".join(record.label for record in group)),
            number(float(len(group)), ".0f"),
        ]
        for name in COMPARED:
            found = [record.metric(name) for record in group]
            values = [value for value in found if value is not None and math.isfinite(value)]
            spread = statistics.stdev(values) if len(values) > 1 else None
            cells += [number(statistics.fmean(values) if values else None), number(spread)]
        rows.append(cells)
    names = [part for name in COMPARED for part in (metric_title(name), "deviation")]
    return [
        Table(
            "Runs that differ in the seed of training only: means and standard deviations",
            ["runs", "seeds", *names],
            rows,
        )
    ]


def _all_but_seed(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted((name, str(value)) for name, value in settings.items() if name != "training.seed")
    )
