"""A child of `time_to_quality`: trains one model and prints, at the start and after every epoch, seconds and quality as JSON."""

import time

STARTED = time.perf_counter()

import json  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402


class Clock:
    """Seconds since the process began, without those spent on judging."""

    def __init__(self, judge: Callable[[], tuple[float, float]]) -> None:
        self._judge, self._spent = judge, 0.0

    def mark(self) -> None:
        """Judge the model as it is now."""
        now = time.perf_counter()
        validation, test = self._judge()
        point = {"seconds": round(now - STARTED - self._spent, 3), "validation": validation, "test": test}
        sys.stdout.write(json.dumps(point) + "\n")
        sys.stdout.flush()
        self._spent += time.perf_counter() - now


def ndcg(scorer: Any, dataset: Any) -> tuple[float, float]:
    """NDCG@20 on validation and test, paper protocol."""
    from pslrec.evaluation import evaluate

    values = [
        evaluate(scorer, dataset, k=(20,), protocol="paper", split=split, metrics=("ndcg",)).metrics["ndcg@20"]
        for split in ("validation", "test")
    ]
    return values[0], values[1]


def train_pslrec(settings: dict[str, Any]) -> None:
    """Exact training with a preset."""
    from benchmarks._data import published
    from pslrec.config import RunConfig, preset_settings
    from pslrec.evaluation import EmbeddingScorer
    from pslrec.experiment import MemoryStore
    from pslrec.experiment.assembly import build_batches, build_model, scored_vectors
    from pslrec.experiment.inputs import TrainingData
    from pslrec.training import Trainer
    from pslrec.training.events import EpochFinished, Event

    dataset = published("electronic")
    config = RunConfig.from_settings(preset_settings(settings["preset"])).resolved()
    backbone, loss = build_model(config, dataset.train)
    batches = build_batches(config, TrainingData(dataset, dataset.train, None))

    def judge() -> tuple[float, float]:
        tables = {"users": backbone.user_table.detach(), "items": backbone.item_table.detach()}
        return ndcg(EmbeddingScorer(*scored_vectors(tables, loss.similarity)), dataset)

    clock = Clock(judge)
    clock.mark()

    def listen(event: Event) -> None:
        if isinstance(event, EpochFinished):
            clock.mark()

    options = config.training.trainer_options(len(batches))
    Trainer(backbone, loss, batches, options=options, store=MemoryStore(), listeners=(listen,)).fit()


def train_als(settings: dict[str, Any]) -> None:
    """`implicit`'s alternating least squares, judged after every iteration; it needs no torch, its judge does."""
    import numpy as np
    from implicit.als import AlternatingLeastSquares

    from benchmarks._data import published
    from benchmarks.time_to_quality import ALS_ITERATIONS

    dataset = published("electronic")
    matrix = dataset.train.matrix().astype(np.float32)
    model = AlternatingLeastSquares(iterations=ALS_ITERATIONS, random_state=0, **settings)

    def judge() -> tuple[float, float]:
        import torch

        from pslrec.evaluation import EmbeddingScorer

        return ndcg(EmbeddingScorer(torch.tensor(model.user_factors), torch.tensor(model.item_factors)), dataset)

    clock = Clock(judge)
    model.fit(matrix, show_progress=False, callback=lambda *_: clock.mark())


def train_ease(settings: dict[str, Any]) -> None:
    """EASE, judged once its solve is done."""
    from benchmarks._data import published
    from pslrec.baselines import EASE

    dataset = published("electronic")
    scorer = EASE(**settings).fit(dataset.train)
    Clock(lambda: ndcg(scorer, dataset)).mark()


if __name__ == "__main__":
    {"pslrec": train_pslrec, "als": train_als, "ease": train_ease}[sys.argv[1]](json.loads(sys.argv[2]))
