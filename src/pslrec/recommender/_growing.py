"""More interactions for a fitted model: what it is trained on next, and how."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from pslrec.config import RunConfig
from pslrec.data import Dataset, Interactions, Preparation, cast_ids, concatenate, prepare
from pslrec.errors import DataError
from pslrec.inference import TrainedModel
from pslrec.recommender._frames import onto


def grown_data(
    model: TrainedModel, new: Interactions | Dataset, *, minimum_rating: float | None
) -> Dataset:
    """The data of a model and new interactions together.

    What was held out for validation stays held out, also where the new interactions repeat it. A
    model that was trained on its validation data again has none to hold out.

    Args:
        model: knows its users, its items and its pairs.
        new: may hold new users, new items and pairs that the model knows.
        minimum_rating: new interactions rated lower are left out; `None` keeps all.
    """
    if isinstance(new, Dataset):
        new = new.whole()
    disliked = [model.disliked_pairs]
    if minimum_rating is not None:
        if new.ratings is not None:
            disliked.append(new.select(new.ratings < minimum_rating))
        new = prepare(new, Preparation(minimum_rating))
    train = model.training_pairs.to_frame().select("user", "item")
    validation = model.validation_pairs
    if "refit" in model.metrics and validation is not None:
        train = pl.concat([train, validation.to_frame().select("user", "item")])
        validation = None
    more = new.to_frame().select(
        _as_before(new.to_frame()["user"], train["user"]),
        _as_before(new.to_frame()["item"], train["item"]),
    )
    if validation is not None:
        held_out = validation.to_frame().select("user", "item")
        more = more.join(held_out, on=["user", "item"], how="anti", maintain_order="left")
    pairs = pl.concat([train, more]).unique(maintain_order=True)
    grown = Interactions.from_ids(pairs["user"], pairs["item"])
    nothing = grown.select(np.zeros(0, dtype=np.int64))
    vocabularies = (grown.user_vocabulary, grown.item_vocabulary)
    low = concatenate([onto(pairs, *vocabularies) for pairs in disliked])
    dataset = Dataset(grown, nothing, name="memory", disliked=low)
    if validation is None:
        return dataset
    return replace(dataset, validation=onto(validation, *vocabularies))


def _as_before(ids: pl.Series, known: pl.Series) -> pl.Series:
    """New ids in the type of the known ones: a number where numbers were, a text where texts were."""
    same_kind = cast_ids(ids, known.dtype)
    if same_kind.null_count():
        odd = ids.filter(same_kind.is_null())[0]
        raise DataError(
            f"`interactions` has the {ids.name} `{odd}`, and ids of the {ids.name}s in the "
            "training data are whole numbers; call `fit` with all interactions instead, and ids that "
            "are all texts"
        )
    return same_kind


def grown_settings(config: RunConfig, metrics: Any, *, has_validation: bool) -> dict[str, Any]:
    """Settings for training on with more data, by dotted name, over those of the last training.

    Args:
        config: of the last training; what `auto` has found for it is kept.
        metrics: of the last training.
        has_validation: whether the new data have pairs to choose the epoch by.
    """
    # The data are prepared and divided already.
    settings: dict[str, Any] = {
        "data.minimum_rating": None,
        "data.k_core": 0,
        "data.split": "iid",
        "data.train_fraction": None,
        "data.split_seed": 0,
    }
    if not has_validation:
        # As long as was best the last time, where nothing can tell what is best now.
        settings |= {
            "data.validation": "none",
            "training.refit": False,
            "training.epochs": int(metrics["best_epoch"]),
        }
    elif config.training.refit:
        settings["training.refit"] = False
    return settings
