"""The report of one run or of several."""

import logging
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from pslrec.artifacts import ArtifactError
from pslrec.config import SamplingSection
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
from pslrec.reporting._measures import K, Measurer, Measures
from pslrec.reporting._noise import noise_section
from pslrec.reporting._page import render
from pslrec.reporting._run_record import RunRecord, labels_of, read_run
from pslrec.reporting._settings import settings_section
from pslrec.reporting._surrogates import surrogate_section

logger = logging.getLogger(__name__)
NDCG, RECALL = f"ndcg@{K}", f"recall@{K}"


def run_report(runs: Sequence[Path], out: Path) -> Path:
    """Write the report of a run, or of several beside the first one.

    What a run does not keep is computed from its model and data; where those are gone, the report says so and goes without.

    Args:
        runs: directories of runs, finished or not.
        out: the HTML file; an older one is replaced.
    """
    unique = list(dict.fromkeys(local_path(path, error=ArtifactError).resolve() for path in runs))
    if not unique:
        raise ArtifactError("`runs` must name at least one directory of a run")
    _prepare_place(out)
    records = [read_run(path, label) for path, label in zip(unique, labels_of(unique), strict=True)]
    measured, problems = _measured(records)
    return write_report(run_document(records, measured, problems), out)


def write_report(document: Document, out: Path) -> Path:
    """Write a document as HTML.

    Args:
        document: what to write.
        out: the file; its directory is made if need be.
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
    """The report before it is rendered.

    Args:
        records: the runs.
        measured: what was computed from their models, by label.
        problems: what could not be computed, and why.
    """
    first = records[0]
    is_single = len(records) == 1
    what = f"{first.settings.get('loss.name')} with {first.settings.get('backbone.name')} on {first.settings.get('data.source')}"
    title = f"Run {first.label}" if is_single else f"Comparison of {len(records)} runs"
    summary = [
        *(_single_summary(first, measured) if is_single else _several_summary(records, measured))
    ]
    summary += [Text(problem, "warning") for problem in [*_cautions(records), *problems]]
    sections = [
        Section("Summary", summary),
        metrics_section(records, measured),
        learning_curves(records),
        noise_section(records),
        groups_section(records, measured),
        score_section(records, measured),
        surrogate_section(records),
        settings_section(records),
    ]
    return Document(
        title, what if is_single else ", ".join(record.label for record in records), sections
    )


def _measured(records: Sequence[RunRecord]) -> tuple[dict[str, Measures], list[str]]:
    measurer, measured, problems = Measurer(), {}, []
    for record in records:
        if not record.is_finished:
            continue
        logger.info("ranking the catalogue with the model of %s", record.label)
        try:
            measured[record.label] = measurer.measure(record)
        except (PslrecError, ValueError) as error:
            problems.append(
                f"Parts about single users and scores are missing for {record.label}: {error}."
            )
    return measured, problems


def _single_summary(record: RunRecord, measured: Mapping[str, Measures]) -> list[Block]:
    metrics = record.metrics
    tiles = []
    for name, title in ((NDCG, f"NDCG@{K}"), (RECALL, f"Recall@{K}")):
        value, validation = record.metric(name), record.metric(name, "validation")
        hint = "" if validation is None else f"{validation:.4f} on validation"
        if value is not None:
            tiles.append(Tile(title, f"{value:.4f}", hint))
    tiles += [Tile("Loss", str(record.settings.get("loss.name")), _temperature(record))]
    dimension = record.settings.get("backbone.dimension")
    tiles += [
        Tile(
            "Backbone",
            str(record.settings.get("backbone.name")),
            f"{dimension} dimensions" if dimension else "",
        )
    ]
    tiles.append(_negatives(record, measured.get(record.label)))
    if record.is_finished:
        tiles.append(
            Tile(
                "Epoch chosen",
                str(metrics.get("best_epoch")),
                f"of {metrics.get('trained_epochs')} trained",
            )
        )
        tiles.append(Tile("Protocol", str(metrics.get("protocol"))))
    seconds = [epoch.seconds for epoch in record.epochs if epoch.seconds == epoch.seconds]
    if seconds:
        tiles.append(
            Tile(
                "Training", _duration(sum(seconds)), f"{statistics.fmean(seconds):.2g} s per epoch"
            )
        )
    if record.label in measured:
        facts = measured[record.label].facts
        tiles.append(Tile("Users", f"{facts['users']:,}"))
        tiles.append(Tile("Items", f"{facts['items']:,}"))
        tiles.append(
            Tile(
                "Training pairs",
                f"{facts['train pairs']:,}",
                f"{facts['test pairs']:,} for the test",
            )
        )
    return [Tiles(tiles)]


def _several_summary(records: Sequence[RunRecord], measured: Mapping[str, Measures]) -> list[Block]:
    base = records[0].metric(NDCG)
    rows = []
    for place, record in enumerate(records):
        value = record.metric(NDCG)
        is_comparable = (
            place and record.data_key == records[0].data_key and base and value is not None
        )
        rows.append(
            [
                words(record.label),
                number(value),
                percent((value or 0.0) / base - 1 if is_comparable and base else None),
                number(record.metric(RECALL)),
                words(record.settings.get("loss.name")),
                words(record.settings.get("backbone.name")),
                words(record.settings.get("sampling.negatives")),
                words(record.settings.get("data.source")),
                words(record.metrics.get("protocol") if record.is_finished else "not finished"),
                words(record.settings.get("training.seed")),
                number(record.metrics.get("best_epoch"), ".0f"),
                number(record.metrics.get("seconds_per_epoch"), ".3g"),
            ]
        )
    columns = [
        "run",
        f"NDCG@{K}",
        f"to {records[0].label}",
        f"Recall@{K}",
        "loss",
        "backbone",
        "negatives",
        "data",
    ]
    columns += ["protocol", "seed", "epoch", "s per epoch"]
    blocks: list[Block] = [Text(sentence) for sentence in _verdicts(records, measured)]
    return [*blocks, Table("The runs; metrics are of the test part", columns, rows)]


def _verdicts(records: Sequence[RunRecord], measured: Mapping[str, Measures]) -> list[str]:
    ranked = [
        record
        for record in records
        if record.metric(NDCG) is not None and record.data_key == records[0].data_key
    ]
    if len(ranked) < 2:
        return []
    ranked.sort(key=lambda record: -(record.metric(NDCG) or 0.0))
    best, second = ranked[:2]
    ahead, behind = best.metric(NDCG) or 0.0, second.metric(NDCG) or 0.0
    sentence = f"{best.label} ranks best, with an NDCG@{K} of {ahead:.4f}"
    if behind:
        sentence += f", {100 * (ahead / behind - 1):.1f} % above {second.label}"
    if best.label in measured and second.label in measured:
        found = compare_results(measured[second.label].test, measured[best.label].test, NDCG)
        verdict = "more than" if found.t_test < LEVEL else "inside"
        sentence += f"; over {found.n_users:,} users that is {verdict} chance (paired t-test, p {_p(found.t_test)})"
    return [f"{sentence}."]


def _cautions(records: Sequence[RunRecord]) -> list[str]:
    found = [
        f"{record.label} is not finished; what it has so far is shown."
        for record in records
        if not record.is_finished
    ]
    on_test = [record.label for record in records if record.metrics.get("selected_on_test")]
    if on_test:
        found.append(
            f"The epoch was chosen on the test part, as the paper does without a validation part: {', '.join(on_test)}."
        )
    finished = [record for record in records if record.is_finished]
    if len({record.metrics.get("protocol") for record in finished}) > 1:
        found.append(
            "The runs were judged by different protocols; their metrics are not comparable."
        )
    if len({record.data_key[:-1] for record in finished}) > 1:
        found.append("The runs were judged on different data; their metrics are not comparable.")
    return found


def _temperature(record: RunRecord) -> str:
    value = record.settings.get("loss.temperature")
    return "" if value is None else f"temperature {value}"


def _negatives(record: RunRecord, measures: Measures | None) -> Tile:
    """What was asked for, and what came of it where that needs the size of the catalogue."""
    asked = record.settings.get("sampling.negatives")
    if isinstance(asked, int):
        return Tile("Negatives", str(asked), "per positive")
    if asked != "auto" or measures is None:
        return Tile("Negatives", str(asked), "all items" if asked == "catalog" else "")
    shared = SamplingSection(negatives="auto").n_shared(int(measures.facts["items"]))
    return Tile(
        "Negatives",
        "auto",
        "all items" if shared is None else f"{shared:,} items per block of users",
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"
