"""Metrics of runs side by side, and whether they differ by more than chance."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pslrec.evaluation import Comparison, Evaluated, compare_results, holm
from pslrec.reporting._document import (
    Block,
    Cell,
    Fold,
    Mark,
    Section,
    Table,
    Text,
    Tone,
    interval,
    number,
    percent,
    probability,
    words,
)
from pslrec.reporting._grouping import grouped
from pslrec.reporting._measures import K, Measures
from pslrec.reporting._results import metric_title, position
from pslrec.reporting._run_record import RunRecord

# The order of rows; other metrics follow by name.
FIRST = ("ndcg", "recall", "precision", "hit_rate", "mrr", "map", "f1")
MAIN = FIRST[:2]
# More metrics would be more tests, and so a stricter correction for each of them.
COMPARED = (f"ndcg@{K}", f"recall@{K}")
LEVEL = 0.05
# Of these, neither more nor less is better in itself.
NEUTRAL = ("average_popularity", "coverage", "gini", "tail_share")
COMPARISON_COLUMNS = (
    "run",
    "metric",
    "difference",
    "relative",
    "95 % interval",
    "t-test p",
    "Wilcoxon p",
    "corrected p",
    "verdict",
)


@dataclass(frozen=True)
class Contrast:
    """One metric of a run beside the same metric of the first run.

    Args:
        label: name of the run.
        metric: name of the metric.
        base: value of the first run.
        comparison: how the two differ over users.
    """

    label: str
    metric: str
    base: float
    comparison: Comparison


def metrics_section(records: Sequence[RunRecord], measured: Mapping[str, Measures]) -> Section:
    """Tables of metrics, and comparisons with the first run.

    Args:
        records: the runs; those that are not finished are left out.
        measured: values of single users, by label of the run.
    """
    finished = [record for record in records if record.is_finished]
    if not finished:
        nothing = Text("No run is finished, so there are no metrics yet.", "note")
        return Section("Metrics", [nothing])
    every = _all_names(finished)
    main = [name for name in every if name.partition("@")[0] in MAIN]
    # A run may have been evaluated by other metrics than the usual ones.
    if not main:
        main = every[:6]

    blocks: list[Block] = []
    if any(record.metrics.get("test") for record in finished):
        blocks.append(_metric_table(finished, "test", main, "Test set"))
        blocks += _evaluated_notes(finished)
        blocks += significance_blocks(finished, measured)
        blocks += _seed_blocks(finished)
        test = _metric_table(finished, "test", every, "Test set")
        blocks.append(Fold("All metrics on the test set", [test]))
    else:
        blocks.append(Text("There is no test part.", "note"))
        blocks.append(_metric_table(finished, "validation", main, "Validation set"))
    if any(record.metrics.get("validation") for record in finished):
        validation = _metric_table(finished, "validation", every, "Validation set")
        blocks.append(Fold("All metrics on the validation set", [validation]))
    return Section("Metrics", blocks)


def _evaluated_notes(records: Sequence[RunRecord]) -> list[Block]:
    """On how many users and pairs the runs were evaluated; runs on one data set say it once."""
    labels: dict[Evaluated, list[str]] = {}
    for record in records:
        counts = record.metrics.get("evaluated", {}).get("test")
        if counts is not None and counts["of_pairs"]:
            labels.setdefault(Evaluated(**counts), []).append(record.label)
    notes: list[Block] = []
    for evaluated, those in labels.items():
        says = f"The run was {evaluated.sentence('test')}"
        if len(records) > 1:
            says = f"{', '.join(those)}: {evaluated.sentence('test')}"
        tone: Tone = "note"
        if evaluated.is_few:
            says += ": too few to tell models apart that differ by a few percent"
            tone = "warning"
        notes.append(Text(f"{says}.", tone))
    return notes


def _all_names(records: Sequence[RunRecord]) -> list[str]:
    names: set[str] = set()
    for record in records:
        names |= record.metrics.get("test", {}).keys() | record.metrics.get("validation", {}).keys()
    return sorted(names, key=_order)


def _order(name: str) -> tuple[int, str, int]:
    base, _, k = name.partition("@")
    # As a number: as text, 100 would come before 20.
    length = 0
    if k.isdigit():
        length = int(k)
    return position(base, FIRST), base, length


def _metric_table(
    records: Sequence[RunRecord], split: str, names: Sequence[str], caption: str
) -> Table:
    labels = []
    protocols = set()
    data = set()
    for record in records:
        labels.append(record.label)
        protocols.add(str(record.metrics.get("protocol")))
        data.add(record.data_key)
    caption += f", protocol {' and '.join(sorted(protocols))}"
    # On different data, the largest number is not the best one.
    is_contest = len(records) > 1 and len(data) == 1
    if is_contest:
        caption += "; the best value in each row is bold"

    rows = []
    for name in names:
        values = [record.metric(name, split) for record in records]
        known = [value for value in values if value is not None]
        best = None
        if is_contest and len(set(known)) > 1 and name.partition("@")[0] not in NEUTRAL:
            best = max(known)
        row = [words(metric_title(name))]
        for value in values:
            mark: Mark = ""
            if value is not None and value == best:
                mark = "best"
            row.append(number(value, mark=mark))
        rows.append(row)
    return Table(caption, ["metric", *labels], rows)


def significance_blocks(
    finished: Sequence[RunRecord], measured: Mapping[str, Measures]
) -> list[Block]:
    """Compare every run with the first one on the same data, user by user.

    Args:
        finished: the runs.
        measured: values of single users, by label of the run.
    """
    base, *others = finished
    if base.label not in measured:
        return []
    first = measured[base.label].test
    contrasts = []
    p_values = []
    for other in others:
        # On other data there are other users, who cannot be paired.
        if other.label not in measured or other.data_key != base.data_key:
            continue
        second = measured[other.label].test
        for name in COMPARED:
            comparison = compare_results(first, second, name)
            contrasts.append(Contrast(other.label, name, first[name], comparison))
            p_values.append(comparison.t_test)
    if not contrasts:
        return []

    # With many comparisons, some are below any level by chance.
    rows = []
    for contrast, p in zip(contrasts, holm(p_values), strict=True):
        rows.append(_comparison_row(contrast, p))
    n_users = contrasts[0].comparison.n_users
    caption = f"Each run minus {base.label}, over the same {n_users:,} users"
    note = (
        "All tests are paired over users: a t-test and the Wilcoxon signed-rank test, both "
        "two-sided. The interval is a bootstrap interval. The corrected p is the p-value of the "
        f"t-test after Holm's correction for the {len(rows)} comparisons in this table; the "
        f"verdict says whether it is below {LEVEL}. All of this accounts for the chance in "
        "drawing the users; the chance in training takes several seeds to measure."
    )
    return [Table(caption, COMPARISON_COLUMNS, rows), Text(note, "note")]


def _comparison_row(contrast: Contrast, corrected: float) -> list[Cell]:
    comparison = contrast.comparison
    difference = comparison.difference
    relative = None
    if contrast.base:
        relative = difference / contrast.base
    is_clear = corrected < LEVEL
    verdict = words("not significant", "muted")
    if is_clear and difference > 0:
        verdict = words("better", "better")
    elif is_clear:
        verdict = words("worse", "worse")
    return [
        words(contrast.label),
        words(metric_title(contrast.metric)),
        number(difference, "+.4f"),
        percent(relative, mark_sign=is_clear),
        interval(comparison.interval, "+.4f"),
        probability(comparison.t_test),
        probability(comparison.wilcoxon),
        probability(corrected),
        verdict,
    ]


def _seed_blocks(finished: Sequence[RunRecord]) -> list[Block]:
    groups = grouped(finished, lambda record: _all_but_seed(record.settings))
    rows = []
    for group in groups.values():
        # A single run has no deviation to show.
        if len(group) < 2:
            continue
        labels = ", ".join(record.label for record in group)
        row = [words(labels), number(float(len(group)), ".0f")]
        for name in COMPARED:
            row += _mean_and_deviation(group, name)
        rows.append(row)
    if not rows:
        return []
    columns = ["runs", "seeds"]
    for name in COMPARED:
        columns += [metric_title(name), "deviation"]
    caption = "Runs that differ in the training seed only: means and standard deviations"
    return [Table(caption, columns, rows)]


def _all_but_seed(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    others = dict(settings)
    others.pop("training.seed", None)
    # As text: settings may be lists, which cannot be keys of a dictionary.
    return tuple(sorted((name, str(value)) for name, value in others.items()))


def _mean_and_deviation(records: Sequence[RunRecord], metric: str) -> list[Cell]:
    values = []
    for record in records:
        value = record.metric(metric)
        # One run that diverged would make the mean of all others no number.
        if value is not None and math.isfinite(value):
            values.append(value)
    mean = None
    deviation = None
    if values:
        mean = statistics.fmean(values)
    if len(values) > 1:
        deviation = statistics.stdev(values)
    return [number(mean), number(deviation)]
