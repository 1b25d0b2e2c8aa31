"""What speaks against a choice of settings, in sentences."""

from collections.abc import Sequence

from pslrec.reporting import settings_in_words, verdict_over_seeds
from pslrec.studies._cells import Trial
from pslrec.studies._space import Space, is_at_edge


def edge_warnings(best: Trial, space: Space) -> list[str]:
    """Settings whose best value is among the outermost, so that a better one may lie beyond."""
    found = []
    for name, values in space.items():
        if is_at_edge(best.settings[name], values):
            value = best.settings[name]
            found.append(
                f"`{name}` = {value} is at the edge of its search space; try values beyond it"
            )
    return found


def epoch_warnings(best: Trial, epochs: int) -> list[str]:
    """Whether training ended while it was still getting better."""
    last = best.settings.get("training.epochs", epochs)
    if best.found.get("best_epoch") != last or last == 1:
        return []
    return [
        f"the best epoch, {last}, is the last one; training may not have been long enough: raise "
        "`training.epochs`"
    ]


def seed_warnings(groups: Sequence[Sequence[Trial]], metric: str) -> list[str]:
    """Whether the noise from seed to seed hides which of the two best is better.

    Args:
        groups: trials of the best settings with several seeds, and of the second best.
        metric: of validation.
    """
    if len(groups) < 2:
        return []
    by_seed = []
    for trials in groups:
        by_seed.append({trial.found["seed"]: trial.value or 0.0 for trial in trials})
    first, second = by_seed
    verdict = verdict_over_seeds(first, second)
    if verdict.verdict == "holds":
        return []
    runner_up = settings_in_words(groups[1][0].settings)
    n_seeds = min(len(first), len(second))
    means = []
    for values in by_seed:
        means.append(f"{sum(values.values()) / len(values):.4f}")
    sentence = (
        f"{n_seeds} seeds cannot tell the best settings from the second best ({runner_up}): "
        f"validation {metric} {means[0]} and {means[1]} on average"
    )
    if verdict.verdict == "fails":
        sentence += "; with other seeds the second best is better"
    return [sentence]
