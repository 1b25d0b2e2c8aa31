"""The gain that a paper prints below its tables."""

from collections.abc import Mapping, Sequence

from pslrec.reporting import Result, gain_over
from pslrec.reproduction._paper import Improvement
from pslrec.reproduction._summaries import percent


def best_gain(
    values: Mapping[str, Mapping[str, float]], improvement: Improvement
) -> tuple[str, str]:
    """What the best of the losses gains over the other, as text, and which it is.

    Args:
        values: by loss and seed.
        improvement: which losses.
    """
    best, highest = "", float("-inf")
    for loss in improvement.of:
        gain = gain_over(values.get(loss, {}), values.get(improvement.over, {}))
        if gain is not None and gain > highest:
            best, highest = loss, gain
    if not best:
        return "", ""
    return percent(highest), best


def which(loss: str, improvement: Improvement) -> str:
    """Which of several losses is the best, without what all their names begin with."""
    if len(improvement.of) == 1:
        return ""
    shared = improvement.of[0].partition("-")[0] + "-"
    if all(name.startswith(shared) for name in improvement.of):
        loss = loss.removeprefix(shared)
    return f" ({loss})"


def unusual(setting: str) -> str:
    """What differs from the paper in a setting, in brackets.

    >>> unusual("noise, among all pairs")
    ' (among all pairs)'
    """
    _, comma, rest = setting.partition(", ")
    return f" ({rest})" if comma else ""


def gains_across(
    found: Mapping[tuple[str, str], Mapping[float, Result]],
    levels: Sequence[float],
    metric: str,
    improvement: Improvement,
) -> list[list[str]]:
    """A row for every setting: the gain at each level, ours and then the published one.

    Args:
        found: cells by setting and loss, and by level.
        levels: in the order of the table.
        metric: of the gain.
        improvement: which losses.
    """
    rows = []
    for setting in sorted({setting for setting, _ in found}):
        row = [f"**Imp. %** of {improvement.title}{unusual(setting)}"]
        for level in levels:
            ours = {}
            printed = {}
            for loss in (*improvement.of, improvement.over):
                cell = found.get((setting, loss), {}).get(level)
                if cell is not None:
                    ours[loss] = cell.ours[metric]
                    if metric in cell.published:
                        printed[loss] = {"": cell.published[metric]}
            texts = [best_gain(ours, improvement)[0]]
            if texts[0]:
                texts.append(best_gain(printed, improvement)[0])
            row.append(" / ".join(filter(None, texts)))
        if any(row[1:]):
            rows.append(row)
    return rows
