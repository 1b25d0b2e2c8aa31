"""Learning curves: loss and validation by epoch."""

import math
from collections.abc import Sequence

from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import Series, line_chart
from pslrec.reporting._document import Block, Chart, Charts, Section, Text
from pslrec.reporting._run_record import RunRecord

TITLE = "Learning curves"
EPOCHS = Axis("epoch", is_whole=True)


def learning_curves(records: Sequence[RunRecord]) -> Section:
    """Draw loss and validation by epoch, one line per run.

    Args:
        records: the runs; those without a log are left out.
    """
    # Styles count all runs, so that a run has the same colour in every chart of the report.
    trained = [(style, record) for style, record in enumerate(records) if record.epochs]
    if not trained:
        nothing = "No epoch was finished, so there is no curve to draw."
        return Section(TITLE, [Text(nothing, "note")])

    charts = [_losses(trained)]
    notes = []
    losses = set()
    diverged = []
    for _, record in trained:
        losses.add(record.settings.get("loss.name"))
        if not all(math.isfinite(epoch.loss) for epoch in record.epochs):
            diverged.append(record.label)
    if len(losses) > 1:
        says = "Different losses have no common scale: compare the shapes of their curves only."
        notes.append(Text(says, "note"))
    validation = _validations(trained)
    if validation is not None:
        charts.append(validation)
    else:
        says = "No run used validation data, so each kept its last epoch."
        notes.append(Text(says, "note"))
    if diverged:
        says = f"The loss was not always a finite number in: {', '.join(diverged)}."
        notes.append(Text(says, "warning"))
    blocks: list[Block] = [Charts(charts), *notes]
    return Section(TITLE, blocks)


def _losses(trained: Sequence[tuple[int, RunRecord]]) -> Chart:
    series = []
    longest = 0
    for style, record in trained:
        points = [(epoch.number, epoch.loss) for epoch in record.epochs]
        longest = max(longest, len(points))
        series.append(Series(record.label, points, style))
    label = series[0].label
    first = series[0].points[0][1]
    last = series[0].points[-1][1]
    says = (
        f"Mean training loss in each of up to {longest} epochs; "
        f"that of {label} goes from {first:.4g} to {last:.4g}."
    )
    return line_chart("Training loss", says, series, x=EPOCHS, y=Axis("loss"))


def _validations(trained: Sequence[tuple[int, RunRecord]]) -> Chart | None:
    series = []
    on_test = []
    for style, record in trained:
        points = []
        for epoch in record.epochs:
            validation = epoch.validation
            # Most runs validate every few epochs only.
            if validation is not None:
                points.append((epoch.number, validation))
        if points:
            best = record.metrics.get("best_epoch")
            series.append(Series(record.label, points, style, highlight=best))
        if record.metrics.get("selected_on_test"):
            on_test.append(record.label)
    if not series:
        return None
    says = (
        "The value by which the epoch is chosen: NDCG@20, unless the loss asks for another. "
        "A ring marks the chosen epoch."
    )
    if on_test:
        says += f" Chosen on the test set, as in the paper: {', '.join(on_test)}."
    return line_chart("Validation", says, series, x=EPOCHS, y=Axis("validation NDCG"))
