"""What a model is worth: on validation while it trains, on the test part at the end, and again later."""

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pslrec.artifacts import ArtifactError, RunDirectory, check_format, model_tensors
from pslrec.backbones import Backbone
from pslrec.config import RunConfig
from pslrec.data import Dataset, SealedInteractions
from pslrec.errors import ConfigError
from pslrec.evaluation import EmbeddingScorer, EvaluationResult, evaluate
from pslrec.experiment._assembly import scored_vectors
from pslrec.experiment._inputs import load_training_data, with_validation
from pslrec.experiment._warm_start import learnt_before
from pslrec.losses import LOSSES, Loss
from pslrec.training import Progress

logger = logging.getLogger(__name__)
SELECTION_K = 20
# What to do where a part holds pairs that a warm start has learnt already.
INSTEAD = {
    "validation": "set `data.validation` to none, and a small number of epochs",
    "test": "divide both logs by time",
}


def is_selected_on_test(config: RunConfig, dataset: Dataset) -> bool:
    """Whether the epoch is chosen on the test part: the published way where there is no validation part."""
    return dataset.validation is None and config.evaluation.protocol == "paper"


def validation_of(
    config: RunConfig, dataset: Dataset, backbone: Backbone, loss: Loss
) -> Callable[[], float] | None:
    """Gives the value of the backbone as it is now, by which epochs are chosen; `None` if there is nothing to choose by."""
    if is_selected_on_test(config, dataset):
        _unseal(
            dataset,
            "the paper protocol chooses the epoch on the test part where there is no validation part",
        )
        logger.info(
            "there is no validation part, so the epoch is chosen on the test part, as the paper does"
        )
    elif dataset.validation is None:
        logger.info("there is no validation part, so the last epoch is taken")
        return None
    split = "test" if dataset.validation is None else "validation"
    k = loss.selection_k or SELECTION_K

    def validate() -> float:
        scorer = EmbeddingScorer(*scored_vectors(model_tensors(backbone), loss.similarity))
        result = _evaluate(config, scorer, dataset, split=split, k=(k,), metrics=("ndcg",))
        return result[f"ndcg@{k}"]

    return validate


def _evaluate(
    config: RunConfig, scorer: EmbeddingScorer, dataset: Dataset, **options: Any
) -> EvaluationResult:
    section = config.evaluation
    options = {"k": tuple(sorted({*section.k, SELECTION_K})), **options}
    return evaluate(
        scorer,
        dataset,
        protocol=section.protocol,
        memory_budget=section.memory_megabytes * 2**20,
        **options,
    )


def judge(
    config: RunConfig, dataset: Dataset, scorer: EmbeddingScorer, progress: Progress
) -> tuple[dict[str, Any], EvaluationResult]:
    """What `metrics.json` holds, and the judgement on the test part with the values of single users."""
    _unseal(dataset, "training has ended")
    test = _evaluate(config, scorer, dataset, split="test")
    _tell_few(test)
    found = {"test": test.metrics, **judge_on_validation(config, dataset, scorer, progress)}
    found["evaluated"] = {"test": test.evaluated.record(), **found["evaluated"]}
    if config.training.warm_start is not None:
        found["learnt_before"] |= _learnt_before(config, dataset, "test")
    return found, test


def judge_on_validation(
    config: RunConfig, dataset: Dataset, scorer: EmbeddingScorer, progress: Progress
) -> dict[str, Any]:
    """What is known of a model without the test part, which stays sealed."""
    metrics: dict[str, float] = {}
    evaluated: dict[str, Any] = {}
    if dataset.validation is not None:
        validation = _evaluate(config, scorer, dataset, split="validation")
        _tell_few(validation)
        metrics = validation.metrics
        evaluated["validation"] = validation.evaluated.record()
    found = {
        "validation": metrics,
        "evaluated": evaluated,
        "protocol": config.evaluation.protocol,
        "selected_on_test": is_selected_on_test(config, dataset),
        "best_epoch": progress.best_epoch,
        "trained_epochs": progress.epoch,
        "seed": config.training.seed,
        "seconds_per_epoch": progress.total_seconds / max(progress.epoch, 1),
    }
    is_warm = config.training.warm_start is not None
    return (
        {**found, "learnt_before": _learnt_before(config, dataset, "validation")}
        if is_warm
        else found
    )


def _tell_few(result: EvaluationResult) -> None:
    if result.evaluated.is_few:
        logger.warning(
            "the model was %s: too few to tell models apart by some per cent; take more data or another split",
            result.evaluated.sentence(result.split),
        )


def _learnt_before(config: RunConfig, dataset: Dataset, name: str) -> dict[str, float]:
    """Of a warm start: which share of a part was training data of the run it started from."""
    part = dataset.parts().get(name)
    if config.training.warm_start is None or part is None:
        return {}
    share = learnt_before(part, Path(config.training.warm_start))
    if share > 0:
        logger.warning(
            "%.1f %% of the %s pairs were training data of the run that this one started from, so what they say is too good; %s",
            100 * share,
            name,
            INSTEAD[name],
        )
    return {name: share}


def judge_refit(
    config: RunConfig, whole: Dataset, scorer: EmbeddingScorer, chosen: dict[str, Any]
) -> tuple[dict[str, Any], EvaluationResult]:
    """As `judge`, for a model trained again on training and validation data, both of which its lists then hide.

    Args:
        config: of the run.
        whole: training and validation part as one; the test part is open.
        scorer: of the model trained again.
        chosen: what `judge` found of the model by which the epoch was chosen; its validation metrics stay.
    """
    test = _evaluate(config, scorer, whole, split="test")
    refit = {
        "epochs": chosen["best_epoch"],
        "pairs": len(whole.train),
        "test_before": chosen["test"],
    }
    evaluated = {**chosen["evaluated"], "test": test.evaluated.record()}
    return {**chosen, "test": test.metrics, "evaluated": evaluated, "refit": refit}, test


def evaluate_run(
    path: Path,
    *,
    k: Sequence[int] = (5, 20, 50),
    protocol: str | None = None,
    metrics: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Judge a finished run again.

    Args:
        path: its directory.
        k: lengths of the ranked lists.
        protocol: `paper` or `strict`; that of the run if not given.
        metrics: names from `pslrec.evaluation.METRICS`; by default all but those that need the rank of every item.
    """
    check_format(path)
    directory = RunDirectory(path)
    if not (path / "metrics.json").exists():
        raise ArtifactError(
            f"the run in {path} is not finished; go on with `pslrec train --out {path} --resume`"
        )
    if min(k, default=0) < 1:
        raise ConfigError(f"`k` must hold list lengths of at least 1, got {list(k)}")
    before = json.loads((path / "metrics.json").read_text(encoding="utf-8"))
    config = RunConfig.from_toml(path / "config.toml")
    if protocol is not None:
        config = RunConfig.from_settings({"evaluation.protocol": protocol}, base=config)
    data = load_training_data(config)
    directory.check_data(data.dataset)
    # One that was trained on its validation part as well can not be judged by it.
    dataset = (with_validation(data) if "refit" in before else data).dataset
    _unseal(dataset, "the run is finished")
    scorer = EmbeddingScorer(
        *scored_vectors(directory.read_model(), LOSSES[config.loss.name].similarity)
    )
    options: dict[str, Any] = {"k": tuple(k)} | (
        {} if metrics is None else {"metrics": tuple(metrics)}
    )
    found: dict[str, Any] = {"test": {}, "validation": {}, "evaluated": {}}
    for split in ("test", "validation"):
        if dataset.parts().get(split) is None:
            continue
        result = _evaluate(config, scorer, dataset, split=split, **options)
        _tell_few(result)
        found[split] = result.metrics
        found["evaluated"][split] = result.evaluated.record()
    return {**before, **found, "protocol": config.evaluation.protocol}


def _unseal(dataset: Dataset, reason: str) -> None:
    if isinstance(dataset.test, SealedInteractions):
        dataset.test.unseal(reason)
