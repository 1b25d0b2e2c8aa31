"""Seconds of whole epochs of training, evaluation left out."""

import time
from typing import Any

import numpy as np

from pslrec.config import RunConfig
from pslrec.data import Dataset, Interactions
from pslrec.experiment import MemoryStore, TrainingData, build_batches, build_model
from pslrec.sampling import PairBatches, UserBlocks
from pslrec.training import EpochFinished, Event, Trainer


def parts_of(
    train: Interactions, settings: dict[str, Any]
) -> tuple[RunConfig, PairBatches | UserBlocks]:
    """Configuration and batches of a run over the whole catalogue."""
    config = RunConfig.from_settings({"sampling.negatives": "catalog", **settings}).resolved()
    nothing = train.select(np.zeros(0, dtype=np.int64))
    return config, build_batches(config, TrainingData(Dataset(train, test=nothing), train))


def epoch_seconds(train: Interactions, settings: dict[str, Any], *, rounds: int) -> list[float]:
    """Wall clock of each epoch after the first, which warms up."""
    seconds: list[float] = []
    started = time.perf_counter()

    def listen(event: Event) -> None:
        nonlocal started
        if isinstance(event, EpochFinished):
            seconds.append(time.perf_counter() - started)
            started = time.perf_counter()

    config, batches = parts_of(train, {**settings, "training.epochs": 1 + rounds})
    options = config.training.trainer_options(len(batches))
    backbone, loss = build_model(config, train)
    trainer = Trainer(
        backbone, loss, batches, options=options, store=MemoryStore(), listeners=(listen,)
    )
    started = time.perf_counter()
    trainer.fit()
    return seconds[1:]
