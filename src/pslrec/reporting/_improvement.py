"""What the best of the proposed losses gains over SL: the paper's Imp.%."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TypeVar

from pslrec.reporting._document import Block, Table, percent, words
from pslrec.reporting._results import METRICS, NAMED, PROPOSED, TITLES, Result

TITLE = f"What the best of {', '.join(PROPOSED[:-1])} and {PROPOSED[-1]} gains over SL (Imp.%)"
Seed = TypeVar("Seed", str, int)
# Hyper-parameters are each loss's own.
SHARED = tuple(name for name in NAMED if name not in ("loss", "form"))


def improvement_blocks(results: Sequence[Result]) -> list[Block]:
    """A table of gains, ours and the published ones; nothing where SL or all of the proposed losses are missing.

    Args:
        results: of one table.
    """
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        groups.setdefault(tuple(result.key[name] for name in SHARED), []).append(result)
    # Data set and backbone are always named, the others where they differ.
    shown = [
        place
        for place in range(len(SHARED))
        if place < 2 or len({key[place] for key in groups}) > 1
    ]
    rows = []
    for key, members in groups.items():
        gains = {
            m: (_gain(members, m, is_published=False), _gain(members, m, is_published=True))
            for m in METRICS
        }
        if any(ours is not None for ours, _ in gains.values()):
            cells = [percent(gain) for metric in METRICS for gain in gains[metric]]
            rows.append([*(words(key[place]) for place in shown), *cells])
    heads = [part for m in METRICS for part in (f"{TITLES[m]}, ours", "published")]
    return [Table(TITLE, [*(SHARED[place] for place in shown), *heads], rows)] if rows else []


def _gain(members: Sequence[Result], metric: str, *, is_published: bool) -> float | None:
    def values(result: Result) -> Mapping[str, float]:
        printed = result.published.get(metric)
        return result.ours[metric] if not is_published else {} if printed is None else {"": printed}

    bases, proposed = (
        [values(result) for result in members if result.key["loss"] in losses]
        for losses in (("SL",), PROPOSED)
    )
    gains = [
        gain for over in proposed for base in bases if (gain := gain_over(over, base)) is not None
    ]
    return max(gains, default=None)


def gain_over(over: Mapping[Seed, float], base: Mapping[Seed, float]) -> float | None:
    """Relative gain of the mean over the seeds that both have: what other seeds give says nothing about the difference.

    Args:
        over: values by seed.
        base: what they are compared with; `None` comes out where no seed is in both, or the mean is 0.

    >>> gain_over({1: 0.75}, {1: 0.5, 2: 0.7})
    0.5
    """
    common = over.keys() & base.keys()
    below = fmean(base[seed] for seed in common) if common else 0.0
    return fmean(over[seed] for seed in common) / below - 1 if below else None
