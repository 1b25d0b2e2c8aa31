"""Whether the evaluated pairs are like pairs held out at random, as a section of a report."""

from collections.abc import Mapping, Sequence
from typing import Any

from pslrec.reporting._document import (
    Block,
    Cell,
    Section,
    Table,
    Text,
    Tone,
    number,
    percent,
    probability,
    words,
)
from pslrec.reporting._run_record import RunRecord

# What a value is, by measure; all others are shares.
UNITS = {"popularity": ".3g", "affinity": ".4f"}
EXPLANATION = (
    "Pairs of each part beside as many pairs of the same users, drawn at random from training. "
    "Popularity is the geometric mean of an item's interactions in the rest of training, affinity "
    "the mean cosine of an item with the user's other items there; p-values are of a permutation "
    "test, corrected by Holm's method"
)


def exchangeability_section(records: Sequence[RunRecord]) -> Section:
    """Say of each data set of the runs whether its validation and test parts are shifted.

    Args:
        records: the runs; those without the check are left out.
    """
    blocks: list[Block] = []
    seen = set()
    for record in records:
        checks = record.metrics.get("exchangeability")
        # Runs on the same data have the same split, which is shown once.
        if not isinstance(checks, Mapping) or not checks or record.data_key in seen:
            continue
        seen.add(record.data_key)
        for check in checks.values():
            blocks.append(_sentence(check))
        rows = _rows(checks)
        if rows:
            columns = ["part", "measure", "held out", "random", "difference", "effect", "p"]
            source = record.settings.get("data.source")
            blocks.append(Table(f"{source}: {EXPLANATION}", columns, rows))
    return Section("Exchangeability", blocks)


def _sentence(check: Mapping[str, Any]) -> Text:
    sentence = str(check["sentence"])
    tone: Tone = ""
    if check["verdict"] == "shifted":
        tone = "warning"
    return Text(f"{sentence[:1].upper()}{sentence[1:]}.", tone)


def _rows(checks: Mapping[str, Mapping[str, Any]]) -> list[list[Cell]]:
    rows = []
    for part, check in checks.items():
        for name, measure in check["measures"].items():
            pattern = UNITS.get(name, ".2%")
            rows.append(
                [
                    words(part),
                    words(name),
                    number(measure["held_out"], pattern),
                    number(measure["random"], pattern),
                    percent(measure["difference"]),
                    number(measure["effect"], "+.2f"),
                    probability(measure["adjusted_p"]),
                ]
            )
    return rows
