"""The report of one run or of several."""

import logging
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pslrec.artifacts import ArtifactError
from pslrec.config import SamplingSection
from pslrec.data.items import TableFile
from pslrec.errors import PslrecError
from pslrec.evaluation import compare_results
from pslrec.files import local_path, make_directory, write_text
from pslrec.reporting._comparison import LEVEL, metrics_section
from pslrec.reporting._curves import learning_curves
from pslrec.reporting._distributions import groups_section, score_section
from pslrec.reporting._document import (
    Block,
    Document,
    Section,
    Table,
    Text,
    Tile,
    Tiles,
    number,
    percent,
    words,
)
from pslrec.reporting._examples import examples_section
from pslrec.reporting._exchangeability import exchangeability_section
from pslrec.reporting._measures import K, Measurer, Measures
from pslrec.reporting._noise import noise_section
from pslrec.reporting._page import render
from pslrec.reporting._run_record import RunRecord, labels_of, read_run
from pslrec.reporting._settings import settings_section
from pslrec.reporting._surrogates import surrogate_section

logger = logging.getLogger(__name__)
NDCG = f"ndcg@{K}"
RECALL = f"recall@{K}"


def run_report(
    runs: Sequence[Path], out: Path, *, item_table: TableFile | Path | None = None
) -> Path:
    """Write the report of a run, or of several runs beside the first one.

    What a run does not keep is computed from its model and data. Where those are gone, the report
    says so and does without.

    Args:
        runs: run directories, finished or not.
        out: the HTML file to write; an older one is replaced.
        item_table: a file with item ids and titles; the report then shows what some users of the
            first finished run would get.

    Returns:
        The file written.
    """
    # The same run named twice is one run; a dictionary keeps the order in which they are named.
    unique: dict[Path, None] = {}
    for path in runs:
        unique[local_path(path, error=ArtifactError).resolve()] = None
    paths = list(unique)
    if not paths:
        raise ArtifactError("`runs` must name at least one run directory")
    # Before the catalogue is ranked, which may take minutes.
    _prepare_place(out)
    labels = labels_of(paths)
    records = [read_run(path, label) for path, label in zip(paths, labels, strict=True)]
    examples = []
    finished = [record for record in records if record.is_finished]
    if item_table is not None and finished:
        examples.append(examples_section(finished[0], item_table))
    measured, problems = _measured(records)
    document = run_document(records, measured, problems)
    # Behind the metrics, before what explains them.
    sections = [*document.sections[:2], *examples, *document.sections[2:]]
    return write_report(replace(document, sections=sections), out)


def write_report(document: Document, out: Path) -> Path:
    """Write a document as HTML.

    Args:
        document: what to write.
        out: the file; its directory is made if it does not exist.
    """
    _prepare_place(out)
    write_text(out, render(document), error=ArtifactError)
    return out


def _prepare_place(out: Path) -> None:
    if out.is_dir():
        raise ArtifactError(f"`out` must be a file such as report.html, got the directory {out}")
    make_directory(out.parent, error=ArtifactError)


def run_document(
    records: Sequence[RunRecord], measured: Mapping[str, Measures], problems: Sequence[str] = ()
) -> Document:
    """Put the report of runs together, before it is rendered.

    Args:
        records: the runs, at least one.
        measured: what was computed from their models, by label.
        problems: what could not be computed, and why.
    """
    first = records[0]
    if len(records) == 1:
        settings = first.settings
        title = f"Run {first.label}"
        subtitle = (
            f"{settings.get('loss.name')} with {settings.get('backbone.name')} "
            f"on {settings.get('data.source')}"
        )
        summary = _single_summary(first, measured.get(first.label))
    else:
        title = f"Comparison of {len(records)} runs"
        subtitle = ", ".join(record.label for record in records)
        summary = _several_summary(records, measured)
    # Right below the numbers that they put in doubt.
    for problem in (*_cautions(records), *problems):
        summary.append(Text(problem, "warning"))
    sections = [
        Section("Summary", summary),
        metrics_section(records, measured),
        learning_curves(records),
        noise_section(records),
        exchangeability_section(records),
        groups_section(records, measured),
        score_section(records, measured),
        surrogate_section(records),
        settings_section(records),
    ]
    return Document(title, subtitle, sections)


def _measured(records: Sequence[RunRecord]) -> tuple[dict[str, Measures], list[str]]:
    measurer = Measurer()
    measured = {}
    problems = []
    for record in records:
        if not record.is_finished:
            continue
        logger.info("ranking the catalogue with the model of %s", record.label)
        # Data that is gone costs a report some of its charts, but never the report.
        try:
            measured[record.label] = measurer.measure(record)
        except (PslrecError, ValueError) as error:
            problems.append(f"Per-user values and scores are missing for {record.label}: {error}.")
    return measured, problems


def _single_summary(record: RunRecord, measures: Measures | None) -> list[Block]:
    settings = record.settings
    tiles = []
    for name, title in ((NDCG, f"NDCG@{K}"), (RECALL, f"Recall@{K}")):
        value = record.metric(name)
        validation = record.metric(name, "validation")
        hint = ""
        if validation is not None:
            hint = f"{validation:.4f} on validation"
        if value is not None:
            tiles.append(Tile(title, f"{value:.4f}", hint))
        elif validation is not None:
            tiles.append(Tile(title, f"{validation:.4f}", "on validation; there is no test part"))

    temperature = ""
    if settings.get("loss.temperature") is not None:
        temperature = f"temperature {settings['loss.temperature']:.4g}"
    tiles.append(Tile("Loss", str(settings.get("loss.name")), temperature))
    dimension = ""
    if settings.get("backbone.dimension"):
        dimension = f"{settings['backbone.dimension']} dimensions"
    tiles.append(Tile("Backbone", str(settings.get("backbone.name")), dimension))
    tiles.append(
        Tile("Negatives", str(settings.get("sampling.negatives")), _hint(record, measures))
    )

    metrics = record.metrics
    if record.is_finished:
        trained = f"of {metrics.get('trained_epochs')} trained"
        tiles.append(Tile("Chosen epoch", str(metrics.get("best_epoch")), trained))
        tiles.append(Tile("Protocol", str(metrics.get("protocol"))))
    seconds = [epoch.seconds for epoch in record.epochs if not math.isnan(epoch.seconds)]
    if seconds:
        per_epoch = f"{statistics.fmean(seconds):.2g} s per epoch"
        tiles.append(Tile("Training", _duration(sum(seconds)), per_epoch))
    if measures is not None:
        facts = measures.facts
        test_pairs = f"{facts['test pairs']:,} test pairs"
        tiles.append(Tile("Users", f"{facts['users']:,}"))
        tiles.append(Tile("Items", f"{facts['items']:,}"))
        tiles.append(Tile("Training pairs", f"{facts['train pairs']:,}", test_pairs))
    return [Tiles(tiles)]


def _hint(record: RunRecord, measures: Measures | None) -> str:
    """What the setting of negatives came to, where that can be said without knowing the data."""
    negatives = record.settings.get("sampling.negatives")
    if isinstance(negatives, int):
        return "per positive"
    if negatives == "catalog":
        return "all items"
    # What `auto` comes to depends on the size of the catalogue.
    if negatives != "auto" or measures is None:
        return ""
    shared = SamplingSection(negatives="auto").n_shared(int(measures.facts["items"]))
    if shared is None:
        return "all items"
    return f"{shared:,} items per block of users"


def _several_summary(records: Sequence[RunRecord], measured: Mapping[str, Measures]) -> list[Block]:
    first = records[0]
    rows = []
    for place, record in enumerate(records):
        settings = record.settings
        gain = None
        # The first run beside itself, or runs on different data, have nothing to compare.
        if place > 0 and record.data_key == first.data_key:
            gain = _gain(record.metric(NDCG), first.metric(NDCG))
        protocol = "not finished"
        if record.is_finished:
            protocol = record.metrics.get("protocol", "")
        rows.append(
            [
                words(record.label),
                number(record.metric(NDCG)),
                percent(gain),
                number(record.metric(RECALL)),
                words(settings.get("loss.name")),
                words(settings.get("backbone.name")),
                words(settings.get("sampling.negatives")),
                words(settings.get("data.source")),
                words(protocol),
                words(settings.get("training.seed")),
                number(record.metrics.get("best_epoch"), ".0f"),
                number(record.metrics.get("seconds_per_epoch"), ".3g"),
            ]
        )
    columns = [
        "run",
        f"NDCG@{K}",
        f"vs. {first.label}",
        f"Recall@{K}",
        "loss",
        "backbone",
        "negatives",
        "data",
        "protocol",
        "seed",
        "epoch",
        "s per epoch",
    ]
    blocks: list[Block] = []
    best = _best_sentence(records, measured)
    if best:
        blocks.append(Text(best))
    blocks.append(Table("The runs; metrics are those of the test set", columns, rows))
    return blocks


def _gain(value: float | None, base: float | None) -> float | None:
    if value is None or not base:
        return None
    return value / base - 1


def _best_sentence(records: Sequence[RunRecord], measured: Mapping[str, Measures]) -> str:
    """Which run is best and whether that is chance; empty where there is nothing to compare."""
    ranked = []
    for record in records:
        value = record.metric(NDCG)
        if value is not None and record.data_key == records[0].data_key:
            ranked.append((value, record.label))
    if len(ranked) < 2:
        return ""
    # A stable sort: of equal runs, the one named first is best.
    ranked.sort(key=lambda pair: -pair[0])
    (ahead, best), (behind, second) = ranked[:2]

    sentence = f"{best} ranks best, with an NDCG@{K} of {ahead:.4f}"
    if behind:
        sentence += f", {100 * (ahead / behind - 1):.1f} % above {second}"
    if best in measured and second in measured:
        # One comparison, so without the correction that the table of all comparisons has.
        found = compare_results(measured[second].test, measured[best].test, NDCG)
        verdict = "not significant"
        if found.t_test < LEVEL:
            verdict = "significant"
        p = f"= {found.t_test:.3f}"
        if found.t_test < 0.001:
            p = "< 0.001"
        sentence += (
            f"; over {found.n_users:,} users, the difference is {verdict} (paired t-test, p {p})"
        )
    return f"{sentence}."


def _cautions(records: Sequence[RunRecord]) -> list[str]:
    """What speaks against trusting or comparing the metrics."""
    found = []
    on_test = []
    protocols = set()
    data = set()
    for record in records:
        if record.metrics.get("selected_on_test"):
            on_test.append(record.label)
        if not record.is_finished:
            found.append(f"{record.label} is not finished; the report shows what it has so far.")
            continue
        protocols.add(record.metrics.get("protocol"))
        # Without the protocol, which is the last part of the key and has a sentence of its own.
        data.add(record.data_key[:-1])
    if on_test:
        found.append(
            "The epoch was chosen on the test set, as the paper does where there is no "
            f"validation set: {', '.join(on_test)}."
        )
    if len(protocols) > 1:
        found.append(
            "The runs were evaluated under different protocols; their metrics are not comparable."
        )
    if len(data) > 1:
        found.append("The runs were evaluated on different data; their metrics are not comparable.")
    return found


def _duration(seconds: float) -> str:
    # A minute and a half is the least that whole minutes can tell.
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
