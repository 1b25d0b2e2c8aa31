"""Which settings matter in a search."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pslrec.studies._cells import Trial

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

# With fewer trials the answer is noise.
FEWEST_TRIALS = 8


def importances(trials: Sequence[Trial]) -> dict[str, float]:
    """Shares of the settings in what makes a trial one of the better ones, by PED-ANOVA.

    Every value is a category of its own for settings of a grid, and a point of a range otherwise.
    Pruned trials count with their last value, as they are most of the bad ones. Nothing is said of
    few trials, or of a setting with one value.

    Args:
        trials: of one search.
    """
    valued = [trial for trial in trials if trial.value is not None]
    if len(valued) < FEWEST_TRIALS:
        return {}
    import optuna
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    distributions = {}
    for name in valued[0].settings:
        values = [trial.settings[name] for trial in valued]
        if len(set(values)) > 1:
            distributions[name] = _distribution(values)
    if not distributions or len({trial.value for trial in valued}) < 2:
        return {}
    study = optuna.create_study(direction="maximize")
    for trial in valued:
        params = {name: trial.settings[name] for name in distributions}
        known = optuna.trial.create_trial(
            params=params, distributions=distributions, value=trial.value
        )
        study.add_trial(known)
    found = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
    return {name: float(share) for name, share in found.items()}


def _distribution(values: Sequence[Any]) -> "BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    numbers = [value for value in values if isinstance(value, int | float)]
    few = len(set(values)) <= len(values) // 2
    if few or len(numbers) < len(values):
        return CategoricalDistribution(sorted(set(values), key=str))
    return FloatDistribution(min(numbers), max(numbers), log=min(numbers) > 0)
