"""What the best of some losses gains over another: the Imp.% of a paper."""

import itertools
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TypeVar

from pslrec.reporting._document import Block, Table, percent, words
from pslrec.reporting._grouping import grouped
from pslrec.reporting._results import Gain, Result, differing_columns, metric_title

Seed = TypeVar("Seed", str, int)
# What losses must have in common to be compared. Hyper-parameters are each loss's own.
ALWAYS_NAMED = ("dataset", "backbone")
NAMED_IF_DIFFERENT = ("setting", "noise", "mode", "protocol")
SHARED = (*ALWAYS_NAMED, *NAMED_IF_DIFFERENT)


def improvement_blocks(results: Sequence[Result], gain: Gain | None) -> list[Block]:
    """Make the table of gains, ours beside the published ones.

    Args:
        results: the cells of one table; nothing comes out where one side of the gain is missing.
        gain: which losses are compared.
    """
    if gain is None:
        return []
    rows = []
    shown = [*ALWAYS_NAMED, *differing_columns(results, NAMED_IF_DIFFERENT)]
    for members in grouped(results, lambda result: result.named(SHARED)).values():
        row = list(map(words, members[0].named(shown)))
        gains = []
        for metric in results[0].ours:
            ours, _ = best_gain(members, metric, gain)
            published, _ = best_gain(members, metric, gain, is_published=True)
            row += [percent(ours), percent(published)]
            gains.append(ours)
        # A published gain alone is no result of ours.
        if any(ours is not None for ours in gains):
            rows.append(row)
    if not rows:
        return []
    columns = shown
    for metric in results[0].ours:
        columns += [f"{metric_title(metric)}, ours", "published"]
    return [Table(f"Imp.% of {gain.title}", columns, rows)]


def best_gain(
    cells: Sequence[Result], metric: str, gain: Gain, *, is_published: bool = False
) -> tuple[float | None, str]:
    """What the best of the losses gains over the other, and which loss that is.

    Args:
        cells: of one place; there may be several of one loss, with different hyper-parameters.
        metric: of the gain.
        gain: which losses are compared.
        is_published: take the published values rather than ours.
    """
    best: float | None = None
    name = ""
    bases = [cell for cell in cells if cell["loss"] == gain.over]
    for cell, base in itertools.product(cells, bases):
        if cell["loss"] in gain.of:
            sides = [side.by_seed(metric, is_published=is_published) for side in (cell, base)]
            share = gain_over(*sides)
            if share is not None and (best is None or share > best):
                best = share
                name = cell["loss"]
    return best, name


def gain_over(over: Mapping[Seed, float], base: Mapping[Seed, float]) -> float | None:
    """Relative gain of the mean over the seeds that both have.

    Other seeds are left out: what they give says nothing about the difference, but adds its noise.

    Args:
        over: values by seed.
        base: what they are compared with; `None` comes out where no seed is in both, or the mean
            is 0.

    >>> gain_over({1: 0.75}, {1: 0.5, 2: 0.7})
    0.5
    """
    common = over.keys() & base.keys()
    if not common:
        return None
    mean = fmean(base[seed] for seed in common)
    if not mean:
        return None
    return fmean(over[seed] for seed in common) / mean - 1
