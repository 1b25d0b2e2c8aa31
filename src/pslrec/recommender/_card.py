"""What a recommender says about itself: as text, and as a card in a notebook."""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import polars as pl

from pslrec.artifacts import Epoch, flat_settings
from pslrec.config import RunConfig
from pslrec.inference import TrainedModel
from pslrec.reporting import Axis, Series, line_chart, standalone_svg

CHART_SIZE = (340.0, 190.0)
CARD = (
    "border: 1px solid #8884; border-radius: 8px; padding: 12px 16px; display: inline-flex; "
    "flex-wrap: wrap; gap: 16px; align-items: center; font-family: sans-serif; font-size: 13px"
)


def curve_frame(epochs: Sequence[Epoch]) -> pl.DataFrame:
    """Epochs as a frame: epoch, loss, validation and seconds.

    Args:
        epochs: in order; there may be none.
    """
    return pl.DataFrame(
        {
            "epoch": [epoch.number for epoch in epochs],
            "loss": [epoch.loss for epoch in epochs],
            "validation": [epoch.validation for epoch in epochs],
            "seconds": [epoch.seconds for epoch in epochs],
        },
        schema={
            "epoch": pl.Int64,
            "loss": pl.Float64,
            "validation": pl.Float64,
            "seconds": pl.Float64,
        },
    )


def facts_of(model: TrainedModel, config: RunConfig) -> dict[str, str]:
    """What there is to say about a fitted recommender, by heading.

    Args:
        model: what was trained.
        config: its settings.
    """
    loss = config.loss.name
    temperature = config.loss.options().get("temperature")
    if temperature is not None:
        loss += f" (temperature {temperature:.4g})"
    facts = {
        "data": f"{model.n_users:,} users, {model.n_items:,} items, {len(model.seen.items):,} pairs",
        "model": f"{loss} on {config.backbone.name}, {model.dimension} dimensions",
    }
    for name, weight in (("walks", config.walks.weight), ("a regression", config.walks.regression)):
        if model.walks is not None and weight:
            facts["model"] += f", {name} of weight {weight:g}"
    values = flat_settings(config.model_dump(exclude_none=True))
    chosen = []
    for name in config.auto.chosen:
        value = values.get(name)
        is_said_above = name.startswith(("backbone.", "walks.")) or name == "loss.temperature"
        if is_said_above or not isinstance(value, int | float | str):
            continue
        shown = value
        if isinstance(value, float):
            shown = f"{value:.4g}"
        chosen.append(f"{name.rpartition('.')[2].replace('_', ' ')} {shown}")
    if chosen:
        facts["found by auto"] = ", ".join(chosen)
    facts["validation"] = _quality(model.metrics)
    return facts


def _quality(metrics: Mapping[str, Any]) -> str:
    epoch = f"epoch {metrics.get('best_epoch', '?')} of {metrics.get('trained_epochs', '?')}"
    found = metrics.get("validation") or {}
    for name in ("ndcg@20", *sorted(found)):
        if name in found and name.startswith("ndcg@"):
            return f"{name.replace('ndcg', 'NDCG')} {found[name]:.4f} in {epoch}"
    return f"none was held out; {epoch} was taken"


def text_card(title: str, facts: Mapping[str, str]) -> str:
    """A title and facts as lines of text.

    Args:
        title: the first line.
        facts: by heading.
    """
    lines = [title]
    for heading, fact in facts.items():
        lines.append(f"  {heading}: {fact}")
    return "\n".join(lines)


def html_card(
    title: str, facts: Mapping[str, str], curve: pl.DataFrame, best_epoch: int | None = None
) -> str:
    """A title, facts and the learning curve as a piece of a page.

    Args:
        title: the first line.
        facts: by heading.
        curve: as `curve_frame` gives it; without a value of validation nothing is drawn.
        best_epoch: the one that was kept, which is marked.
    """
    rows = []
    for heading, fact in facts.items():
        cells = f"<th style='text-align: left; padding-right: 12px'>{escape(heading)}</th>"
        rows.append(f"<tr>{cells}<td style='text-align: left'>{escape(fact)}</td></tr>")
    table = f"<table style='margin: 6px 0 0'>{''.join(rows)}</table>"
    body = f"<div><code>{escape(title)}</code>{table if rows else ''}</div>"
    return f"<div style='{CARD}'>{body}{_picture(curve, best_epoch)}</div>"


def _picture(curve: pl.DataFrame, best: int | None) -> str:
    measured = curve.drop_nulls("validation")
    if measured.height < 2:
        return ""
    points = list(zip(measured["epoch"], measured["validation"], strict=True))
    says = "Validation by epoch."
    if best is not None:
        says = f"Validation by epoch; the best epoch is {best}."
    chart = line_chart(
        "Validation by epoch",
        says,
        [Series("validation", points, highlight=best)],
        x=Axis("epoch", is_whole=True),
        y=Axis("validation"),
        size=CHART_SIZE,
    )
    # As an image, because rules of style inside of a page would hold for the whole page.
    drawn = base64.b64encode(standalone_svg(chart).encode()).decode()
    return f'<img alt="{escape(says)}" src="data:image/svg+xml;base64,{drawn}">'
