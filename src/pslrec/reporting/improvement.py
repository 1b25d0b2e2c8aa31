"""What the best of the proposed losses gains over SL: the paper's Imp.%."""

from collections.abc import Sequence

from pslrec.reporting.document import Block, Table, percent, words
from pslrec.reporting.results import METRICS, NAMED, PROPOSED, TITLES, Result

TITLE = f"What the best of {', '.join(PROPOSED[:-1])} and {PROPOSED[-1]} gains over SL (Imp.%)"
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
    shown = [place for place in range(len(SHARED)) if place < 2 or len({key[place] for key in groups}) > 1]
    rows = []
    for key, members in groups.items():
        gains = {m: (_gain(members, m, is_published=False), _gain(members, m, is_published=True)) for m in METRICS}
        if any(ours is not None for ours, _ in gains.values()):
            cells = [percent(gain) for metric in METRICS for gain in gains[metric]]
            rows.append([*(words(key[place]) for place in shown), *cells])
    heads = [part for m in METRICS for part in (f"{TITLES[m]}, ours", "published")]
    return [Table(TITLE, [*(SHARED[place] for place in shown), *heads], rows)] if rows else []


def _gain(members: Sequence[Result], metric: str, *, is_published: bool) -> float | None:
    def value(result: Result) -> float | None:
        return result.published.get(metric) if is_published else result.mean(metric)

    base = [v for result in members if result.key["loss"] == "SL" and (v := value(result))]
    ours = [v for result in members if result.key["loss"] in PROPOSED and (v := value(result))]
    return max(ours) / max(base) - 1 if base and ours else None
