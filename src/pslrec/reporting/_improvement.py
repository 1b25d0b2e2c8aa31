"""What the best of some losses gains over another: the Imp.% of a paper."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TypeVar

from pslrec.reporting._document import Block, Table, percent, words
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
    metrics = list(results[0].ours)
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        groups.setdefault(result.named(SHARED), []).append(result)

    rows = []
    shown = [*ALWAYS_NAMED, *differing_columns(results, NAMED_IF_DIFFERENT)]
    for members in groups.values():
        row = list(map(words, members[0].named(shown)))
        is_known = False
        for metric in metrics:
            ours = _best_gain(members, metric, gain, is_published=False)
            published = _best_gain(members, metric, gain, is_published=True)
            row += [percent(ours), percent(published)]
            if ours is not None:
                is_known = True
        # A published gain alone is no result of ours.
        if is_known:
            rows.append(row)
    if not rows:
        return []
    columns = shown
    for metric in metrics:
        columns += [f"{metric_title(metric)}, ours", "published"]
    name = gain.of[0]
    if len(gain.of) > 1:
        name = f"the best of {', '.join(gain.of[:-1])} and {gain.of[-1]}"
    return [Table(f"What {name} gains over {gain.over} (Imp.%)", columns, rows)]


def _best_gain(
    members: Sequence[Result], metric: str, gain: Gain, *, is_published: bool
) -> float | None:
    bases = []
    proposed = []
    for result in members:
        values = result.ours[metric]
        if is_published:
            values = {}
            if metric in result.published:
                # A printed value has no seed; any name will do, as long as all have the same.
                values = {"": result.published[metric]}
        if result["loss"] == gain.over:
            bases.append(values)
        elif result["loss"] in gain.of:
            proposed.append(values)

    gains = []
    for over in proposed:
        # There may be several cells of one loss, with different hyper-parameters.
        for base in bases:
            share = gain_over(over, base)
            if share is not None:
                gains.append(share)
    # Papers print the gain of the best of their losses.
    return max(gains, default=None)


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
    above = []
    below = []
    for seed in common:
        above.append(over[seed])
        below.append(base[seed])
    mean = fmean(below)
    if not mean:
        return None
    return fmean(above) / mean - 1
