"""The fused step with sampled negatives beside the one that is usually written, on the same pairs and negatives.

Each runs in a process of its own, in turns. A round's ratio is that of its two medians; the median over the rounds counts.
Memory is what a process grew by from before its first step, so gradients and moments of the tables are in it on both sides.
"""

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks._child import in_child
from benchmarks._memory import MEBIBYTE
from benchmarks._publish import about_load, table

DESCRIPTION = "fused step (PSL-relu, MF, d = 64, 1,024 pairs x 1,000 negatives, Electronic) beside a naive PyTorch step"
STEPS = {"naive": 5, "fused": 40}
TARGETS = {"times_faster": 40, "times_less_memory": 20}
# The same formula in another order of additions.
LOSS_TOLERANCE = 1e-4


def run(rounds: int = 3, *, report: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Measure both steps.

    Args:
        rounds: how often each runs.
        report: is told what is being done.
    """
    tell = report or (lambda _: None)
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in STEPS}
    for turn in range(rounds):
        for name, n_steps in STEPS.items():
            tell(f"{name}, round {turn + 1} of {rounds}")
            measured[name].append(in_child("_training_step", name, n_steps))
    return _summary(measured)


def _summary(measured: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    naive, fused = measured["naive"], measured["fused"]
    for theirs, ours in zip(naive[0]["losses"], fused[0]["losses"], strict=False):
        if abs(theirs - ours) > LOSS_TOLERANCE * abs(theirs):
            raise RuntimeError(
                f"the steps do not agree: {naive[0]['losses']} and {fused[0]['losses']}"
            )
    faster = [
        _milliseconds(slow) / _milliseconds(fast) for slow, fast in zip(naive, fused, strict=True)
    ]
    less = [
        large["grown"] / max(small["grown"], 1) for large, small in zip(naive, fused, strict=True)
    ]
    found = {
        "times_faster": round(statistics.median(faster), 1),
        "times_less_memory": round(statistics.median(less), 1),
    }
    return {
        "rows": [_row(name, results) for name, results in measured.items()],
        **found,
        "range_of_times_faster": [round(min(faster), 1), round(max(faster), 1)],
        "targets": TARGETS,
        "targets_met": {name: found[name] >= target for name, target in TARGETS.items()},
    }


def _milliseconds(result: dict[str, Any]) -> float:
    return 1000 * statistics.median(result["seconds"])


def _row(name: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "step": name,
        "ms": round(statistics.median(map(_milliseconds, results)), 1),
        "fastest ms": round(1000 * min(min(result["seconds"]) for result in results), 1),
        "memory MiB": round(statistics.median(result["grown"] for result in results) / MEBIBYTE),
    }


def markdown(record: dict[str, Any]) -> str:
    """Sentences and a table for the documentation."""
    result, machine = record["result"], record["machine"]
    return (
        "A step with 1,024 pairs and 1,000 negatives each, PSL-relu, MF with 64 dimensions, Electronic. Both take the same "
        f"pairs, the same negatives and dense Adam. The fused step is **{result['times_faster']:.0f} times faster** and takes "
        f"**{result['times_less_memory']:.0f} times less memory** ({machine['processor']}, {machine['cores']} cores, "
        f"{record['measured']}; medians).{about_load(record)}\n\n{table(result['rows'])}"
    )
