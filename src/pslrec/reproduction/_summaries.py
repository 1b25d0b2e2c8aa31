"""Cells in words: mean and deviation over seeds, and whether a printed value is near."""

from pslrec.reporting import Result, plus_minus
from pslrec.reproduction._cells import DISTINCT


def variant_of(cell: Result) -> tuple[str, str]:
    """How it was made: negatives (`sampled`, `distinct`, `catalog`) and protocol."""
    kind = cell["mode"]
    if cell["negatives"].endswith(DISTINCT):
        kind = "distinct"
    return kind, cell["protocol"]


def value_of(cell: Result, metric: str) -> str:
    """Mean and deviation.

    >>> value_of(Result({}, {"ndcg20": {"1": 0.1, "2": 0.11, "3": 0.12}}, {}), "ndcg20")
    '0.1100 ± 0.0100'
    """
    return plus_minus(cell.mean(metric), cell.deviation(metric))


def compared_value(cell: Result, metric: str) -> str:
    """The same, with the difference to the printed value, and whether that lies in the noise.

    >>> ours = {"ndcg20": {"1": 0.1, "2": 0.11, "3": 0.12}}
    >>> compared_value(Result({}, ours, {"ndcg20": 0.121}), "ndcg20")
    '0.1100 ± 0.0100, -9.1 %, inside'
    """
    text = value_of(cell, metric)
    difference = cell.difference(metric)
    if difference is None:
        return text
    text += f", {percent(difference)}"
    is_inside = cell.is_inside_noise(metric)
    if is_inside is not None:
        text += ", inside" if is_inside else ", outside"
    return text


def percent(share: float | None) -> str:
    """With sign and one decimal; nothing where it is not known.

    >>> percent(0.0234), percent(None)
    ('+2.3 %', '')
    """
    if share is None:
        return ""
    # Adding 0 takes the sign off a negative zero.
    return f"{round(100 * share, 1) + 0.0:+.1f} %"
