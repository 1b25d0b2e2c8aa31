"""Evaluation of a run: on validation while it trains, on the test part at the end, and later."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pslrec.artifacts import Model, RunDirectory, check_finished, check_format, read_metrics
from pslrec.backbones import Backbone
from pslrec.config import RunConfig
from pslrec.data import (
    Dataset,
    SealedInteractions,
    check_exchangeability,
    exchangeability_record,
)
from pslrec.distributed import Group
from pslrec.errors import ConfigError
from pslrec.evaluation import EmbeddingScorer, EvaluationResult, Scorer, Split, evaluate
from pslrec.experiment._inputs import load_training_data, stored_config, with_validation
from pslrec.experiment._warm_start import share_learnt_before
from pslrec.losses import LOSSES, Loss
from pslrec.training import Progress

logger = logging.getLogger(__name__)
# As in the published results, whose epochs are chosen by NDCG@20.
SELECTION_K = 20
# What to do instead, where a part of the data holds pairs that a warm start has already learnt.
ADVICE = {
    "validation": "set `data.validation` to none, and a small number of epochs",
    "test": "divide both logs by time",
}


def is_selected_on_test(config: RunConfig, dataset: Dataset) -> bool:
    """Whether the epoch is chosen on the test part, as the paper does without a validation part.

    Args:
        config: names the protocol.
        dataset: may have a validation part.
    """
    return dataset.validation is None and config.evaluation.protocol == "paper"


def selection_metric(
    config: RunConfig,
    dataset: Dataset,
    backbone: Backbone,
    loss: Loss,
    *,
    group: Group | None = None,
    on_values: Callable[[np.ndarray], None] | None = None,
) -> Callable[[], float] | None:
    """A function that evaluates the backbone as it is now, to choose the epoch by.

    Args:
        config: names the protocol.
        dataset: its validation part is ranked, or its test part as `is_selected_on_test` says.
        backbone: is evaluated again at every call.
        loss: gives the similarity, and may ask for a list length of its own.
        group: processes that share the users.
        on_values: is called with the values of all users in every evaluation.

    Returns:
        `None` if there is no part to choose by; the last epoch is taken then.
    """
    if is_selected_on_test(config, dataset):
        _unseal(
            dataset,
            "the paper protocol chooses the epoch on the test part "
            "where there is no validation part",
        )
        logger.info(
            "there is no validation part, so the epoch is chosen on the test part, "
            "as the paper does"
        )
        split = "test"
    elif dataset.validation is None:
        logger.info("there is no validation part, so the last epoch is taken")
        return None
    else:
        split = "validation"
    # A loss that aims at lists of one length is selected at that length.
    k = loss.selection_k or SELECTION_K

    def validate() -> float:
        scorer = Model.of(backbone, loss.similarity).scorer()
        options = {"split": split, "k": (k,), "metrics": ("ndcg",), "group": group}
        result = _evaluate(config, scorer, dataset, **options)
        if on_values is not None:
            on_values(result.per_user[f"ndcg@{k}"])
        return result[f"ndcg@{k}"]

    return validate


def values_on_validation(
    config: RunConfig, dataset: Dataset, scorer: Scorer, loss: Loss, *, group: Group | None = None
) -> np.ndarray:
    """The values by which epochs are chosen, of all users, for a finished model.

    Args:
        config: complete; names the protocol.
        dataset: must have a validation part.
        scorer: of the model.
        loss: may ask for a list length of its own.
        group: processes that share the users.
    """
    k = loss.selection_k or SELECTION_K
    options = {"split": "validation", "k": (k,), "metrics": ("ndcg",), "group": group}
    return _evaluate(config, scorer, dataset, **options).per_user[f"ndcg@{k}"]


def popularity_on_validation(config: RunConfig, dataset: Dataset) -> float:
    """NDCG on the validation part of the same list for everybody, by the number of users.

    Args:
        config: complete; names the protocol.
        dataset: must have a validation part.
    """
    return _of_popularity(config, dataset, "validation")


def popularity_on_test(config: RunConfig, dataset: Dataset) -> float:
    """The same on the test part, for the users whom a model is evaluated on.

    Args:
        config: complete; names the protocol.
        dataset: whose test part has been read.
    """
    return _of_popularity(config, dataset, "test")


def _of_popularity(config: RunConfig, dataset: Dataset, split: Split) -> float:
    counts = torch.from_numpy(dataset.train.item_counts()).float()
    scorer = EmbeddingScorer(torch.ones(dataset.n_users, 1), counts.unsqueeze(1))
    options = {"split": split, "k": (SELECTION_K,), "metrics": ("ndcg",)}
    return _evaluate(config, scorer, dataset, **options)[f"ndcg@{SELECTION_K}"]


def tell_of_sample(config: RunConfig, dataset: Dataset) -> None:
    """Say that epochs are chosen on a sample of users, if they are.

    Args:
        config: says how many users.
        dataset: may have no validation part.
    """
    if dataset.validation is None:
        return
    n_users = config.evaluation.n_validation_users(dataset.n_users)
    if n_users is not None and n_users < dataset.n_users:
        logger.info(
            "epochs are chosen on %s of %s users, the same in every epoch; "
            "set `evaluation.validation_users` to all to rank for everybody",
            f"{n_users:,}",
            f"{dataset.n_users:,}",
        )


def _evaluate(
    config: RunConfig, scorer: Scorer, dataset: Dataset, **options: Any
) -> EvaluationResult:
    section = config.evaluation
    # The length by which epochs are chosen is always reported.
    options.setdefault("k", tuple(sorted({*section.k, SELECTION_K})))
    n_users = section.n_test_users()
    if options["split"] == "validation":
        n_users = section.n_validation_users(dataset.n_users)
    return evaluate(
        scorer,
        dataset,
        n_users=n_users,
        # Of the validation part, not of training: runs that differ in the seed of training are
        # compared on the same users.
        seed=config.data.validation_seed,
        protocol=section.protocol,
        memory_budget=section.memory_megabytes * 2**20,
        **options,
    )


def evaluate_model(
    config: RunConfig,
    dataset: Dataset,
    scorer: Scorer,
    progress: Progress,
    *,
    group: Group | None = None,
) -> tuple[dict[str, Any], EvaluationResult]:
    """Evaluate a trained model on the test and validation parts.

    Args:
        config: names the protocol and the list lengths.
        dataset: its test part is unsealed.
        scorer: of the chosen epoch.
        progress: how training ended.
        group: processes that share the users.

    Returns:
        The content of `metrics.json`, and the test result with the values of single users.
    """
    # The first look at the test part: nothing is chosen any more.
    _unseal(dataset, "training has ended")
    test = _evaluate(config, scorer, dataset, split="test", group=group)
    _warn_if_few(test)
    on_validation = evaluate_on_validation(config, dataset, scorer, progress, group=group)
    metrics = {"test": test.metrics, **on_validation}
    metrics["evaluated"] = {"test": test.evaluated.record(), **on_validation["evaluated"]}
    if config.training.warm_start is not None:
        metrics["learnt_before"] |= _learnt_before(config, dataset, "test")
    checks = check_exchangeability(
        dataset, mode=config.evaluation.exchangeability, seed=config.training.seed
    )
    if checks:
        metrics["exchangeability"] = exchangeability_record(checks)
    return metrics, test


def evaluate_on_validation(
    config: RunConfig,
    dataset: Dataset,
    scorer: Scorer,
    progress: Progress,
    *,
    group: Group | None = None,
) -> dict[str, Any]:
    """Evaluate a trained model without its test part, which stays sealed.

    Args:
        config: names the protocol and the list lengths.
        dataset: may have no validation part; the metrics are then empty.
        scorer: of the best epoch so far.
        progress: how far training has come.
        group: processes that share the users.

    Returns:
        The content of `metrics.json` as far as it is known without the test part.
    """
    metrics: dict[str, Any] = {"validation": {}, "evaluated": {}}
    if dataset.validation is not None:
        validation = _evaluate(config, scorer, dataset, split="validation", group=group)
        _warn_if_few(validation)
        metrics["validation"] = validation.metrics
        metrics["evaluated"] = {"validation": validation.evaluated.record()}
    metrics |= {
        "protocol": config.evaluation.protocol,
        "selected_on_test": is_selected_on_test(config, dataset),
        "best_epoch": progress.best_epoch,
        "trained_epochs": progress.epoch,
        "seed": config.training.seed,
        # A run that was stopped in its first epoch has trained none.
        "seconds_per_epoch": progress.total_seconds / max(progress.epoch, 1),
    }
    if config.training.warm_start is not None:
        metrics["learnt_before"] = _learnt_before(config, dataset, "validation")
    return metrics


def _warn_if_few(result: EvaluationResult) -> None:
    if result.evaluated.is_few:
        logger.warning(
            "the model was %s: too few to tell models apart by some per cent; "
            "take more data or another split",
            result.evaluated.sentence(result.split),
        )


def _learnt_before(config: RunConfig, dataset: Dataset, name: str) -> dict[str, float]:
    """After a warm start: the share of a part that the earlier run was trained on, by its name."""
    part = dataset.parts().get(name)
    if config.training.warm_start is None or part is None:
        return {}
    share = share_learnt_before(part, Path(config.training.warm_start))
    if share > 0:
        logger.warning(
            "%.1f %% of the %s pairs were training data of the run that this one started from, "
            "so metrics on them are too good; %s",
            100 * share,
            name,
            ADVICE[name],
        )
    return {name: share}


def evaluate_refit(
    config: RunConfig,
    whole: Dataset,
    scorer: Scorer,
    chosen: dict[str, Any],
    *,
    group: Group | None = None,
) -> tuple[dict[str, Any], EvaluationResult]:
    """Evaluate a model that was trained again on training and validation data.

    Args:
        config: names the protocol and the list lengths.
        whole: training and validation data as one part; its test part is unsealed already.
        scorer: of the refitted model.
        chosen: metrics of the model by which the epoch was chosen; those on validation stay, as
            the refitted model has learnt the validation part.
        group: processes that share the users.

    Returns:
        The content of `metrics.json`, and the test result with the values of single users.
    """
    test = _evaluate(config, scorer, whole, split="test", group=group)
    metrics = dict(chosen)
    metrics["test"] = test.metrics
    metrics["evaluated"] = {**chosen["evaluated"], "test": test.evaluated.record()}
    metrics["refit"] = {
        "epochs": chosen["best_epoch"],
        "pairs": len(whole.train),
        "test_before": chosen["test"],
    }
    return metrics, test


def evaluate_run(
    path: Path,
    *,
    k: Sequence[int] = (5, 20, 50),
    protocol: str | None = None,
    metrics: Sequence[str] | None = None,
    group: Group | None = None,
) -> dict[str, Any]:
    """Evaluate a finished run again, at other list lengths or by the other protocol.

    Args:
        path: run directory.
        k: lengths of the ranked lists.
        protocol: `paper` or `strict`; by default that of the run.
        metrics: names from `pslrec.evaluation.METRICS`; by default all but those that need the
            rank of every item.
        group: processes that share the users, each of which calls this function.

    Returns:
        The content of `metrics.json` with the new values; nothing is written.
    """
    check_format(path)
    check_finished(path)
    if min(k, default=0) < 1:
        raise ConfigError(f"`k` must hold list lengths of at least 1, got {list(k)}")
    directory = RunDirectory(path)
    before = read_metrics(path)
    config = stored_config(directory)
    if protocol is not None:
        config = RunConfig.from_settings({"evaluation.protocol": protocol}, base=config)
    group = group or Group()
    data = load_training_data(config, is_shared=not group.is_single)
    # Before the validation part is merged, as the run was started with both.
    directory.check_data(data.dataset)
    if "refit" in before:
        # The model has learnt the validation part, so metrics on it would mean nothing.
        data = with_validation(data)
    dataset = data.dataset
    _unseal(dataset, "the run is finished")
    similarity = LOSSES[config.loss.name].similarity
    scorer = directory.read_model(similarity, data.train.rows).scorer()
    options: dict[str, Any] = {"k": tuple(k), "group": group}
    if metrics is not None:
        options["metrics"] = tuple(metrics)
    found: dict[str, Any] = {"test": {}, "validation": {}, "evaluated": {}}
    for split in ("test", "validation"):
        if dataset.parts().get(split) is None:
            continue
        result = _evaluate(config, scorer, dataset, split=split, **options)
        _warn_if_few(result)
        found[split] = result.metrics
        found["evaluated"][split] = result.evaluated.record()
    return {**before, **found, "protocol": config.evaluation.protocol}


def _unseal(dataset: Dataset, reason: str) -> None:
    if isinstance(dataset.test, SealedInteractions):
        dataset.test.unseal(reason)
