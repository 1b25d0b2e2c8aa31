"""Learning curves: loss and validation by epoch."""

import math
from collections.abc import Sequence

from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import Series, line_chart
from pslrec.reporting._document import Block, Chart, Charts, Section, Text
from pslrec.reporting._run_record import RunRecord


def learning_curves(records: Sequence[RunRecord]) -> Section:
    """Loss and validation by epoch, one line per run.

    Args:
        records: the runs; those without a log are left out.
    """
    trained = [(style, record) for style, record in enumerate(records) if record.epochs]
    if not trained:
        return Section(
            "Learning curves",
            [Text("No epoch was finished, so there is no curve to draw.", "note")],
        )
    blocks: list[Block] = [Charts([_losses(trained), *_validations(trained)])]
    if len({record.settings.get("loss.name") for _, record in trained}) > 1:
        blocks.append(
            Text(
                "Values of different losses have no common scale; compare their shapes only.",
                "note",
            )
        )
    if not any(epoch.validation is not None for _, record in trained for epoch in record.epochs):
        blocks.append(
            Text("No run looked at validation data, so each took its last epoch.", "note")
        )
    diverged = [
        record.label
        for _, record in trained
        if not all(math.isfinite(e.loss) for e in record.epochs)
    ]
    if diverged:
        blocks.append(
            Text(f"The loss was not a finite number at times in: {', '.join(diverged)}.", "warning")
        )
    return Section("Learning curves", blocks)


def _losses(trained: Sequence[tuple[int, RunRecord]]) -> Chart:
    series = [
        Series(record.label, [(epoch.number, epoch.loss) for epoch in record.epochs], style)
        for style, record in trained
    ]
    first, last = series[0].points[0][1], series[0].points[-1][1]
    longest = max(len(one.points) for one in series)
    says = f"Mean training loss of each of {longest} epochs; {series[0].label} goes from {first:.4g} to {last:.4g}."
    return line_chart("Training loss", says, series, x=Axis("epoch", is_whole=True), y=Axis("loss"))


def _validations(trained: Sequence[tuple[int, RunRecord]]) -> list[Chart]:
    series = []
    for style, record in trained:
        looks = [
            (epoch.number, epoch.validation)
            for epoch in record.epochs
            if epoch.validation is not None
        ]
        best = record.metrics.get("best_epoch")
        if looks:
            series.append(
                Series(record.label, looks, style, highlight=None if best is None else float(best))
            )
    if not series:
        return []
    on_test = [record.label for _, record in trained if record.metrics.get("selected_on_test")]
    says = "The value by which the epoch is chosen, NDCG@20 unless the loss asks for another; a ring marks the epoch chosen."
    if on_test:
        says += f" Chosen on the test part, as in the paper: {', '.join(on_test)}."
    return [
        line_chart(
            "Validation", says, series, x=Axis("epoch", is_whole=True), y=Axis("validation NDCG")
        )
    ]
