"""A child of quality by seconds: trains one model and prints seconds and quality of every epoch as JSON."""

import time

STARTED = time.perf_counter()

import json  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402


class Clock:
    """Seconds since the process began, without those spent on evaluation.

    Args:
        evaluate: gives validation and test value of a scorer.
        write: takes lines of JSON.
    """

    def __init__(
        self,
        evaluate: Callable[[Any], tuple[float, float]],
        write: Callable[[str], object] = sys.stdout.write,
    ) -> None:
        self._evaluate = evaluate
        self._write = write
        self._spent = 0.0

    def begin(self) -> None:
        """Tell when imports and data are done and fitting begins."""
        self._tell({"fitting_from": self._seconds()})

    def mark(self, scorer: Callable[[], Any]) -> float:
        """Evaluate the model as it is now; gives its validation value."""
        seconds = self._seconds()
        stopped = time.perf_counter()
        validation, test = self._evaluate(scorer())
        self._tell({"seconds": seconds, "validation": validation, "test": test})
        self._spent += time.perf_counter() - stopped
        return validation

    def _seconds(self) -> float:
        return round(time.perf_counter() - STARTED - self._spent, 3)

    def _tell(self, point: dict[str, float]) -> None:
        self._write(json.dumps(point) + "\n")
        sys.stdout.flush()


def ndcg(scorer: Any, dataset: Any) -> tuple[float, float]:
    """NDCG@20 on validation and test, paper protocol."""
    from pslrec.evaluation import evaluate

    options = {"k": (20,), "protocol": "paper", "metrics": ("ndcg",)}
    validation = evaluate(scorer, dataset, split="validation", **options)
    test = evaluate(scorer, dataset, split="test", **options)
    return validation.metrics["ndcg@20"], test.metrics["ndcg@20"]


def train_pslrec(dataset: Any, settings: dict[str, Any], clock: Clock) -> None:
    """Exact training with a preset, to the end of its schedule, and walks where `auto` takes them.

    All that `auto` tries is on the clock.
    """
    from pslrec.artifacts import Model, trained_tables
    from pslrec.config import RunConfig, preset_settings
    from pslrec.evaluation import Scorer
    from pslrec.experiment import MemoryStore, build_batches, build_model, prepare_run, with_walks
    from pslrec.training import EpochFinished, Event, Trainer

    clock.begin()
    asked = preset_settings(settings["preset"])
    asked["backbone.dimension"] = settings["backbone.dimension"]
    asked["evaluation.protocol"] = "paper"
    config, data, _ = prepare_run(RunConfig.from_settings(asked), None, dataset)
    backbone, loss = build_model(config, data.train)
    batches = build_batches(config, data)

    def scorer() -> Scorer:
        return Model.of(backbone, loss.similarity).scorer()

    # As in a run, the best epoch counts. Its evaluation is not on the clock.
    best = clock.mark(scorer)
    model = Model.of(backbone, loss.similarity)

    def listen(event: Event) -> None:
        nonlocal best, model
        if not isinstance(event, EpochFinished):
            return
        value = clock.mark(scorer)
        if value > best:
            best = value
            tables = trained_tables(backbone)
            kept = {name: table.clone() for name, table in tables.items()}
            model = Model(kept, loss.similarity)

    options = config.training.trainer_options(len(batches))
    store = MemoryStore()
    Trainer(backbone, loss, batches, options=options, store=store, listeners=(listen,)).fit()
    model = with_walks(config, data, model).model
    if model.walks is not None:
        clock.mark(model.scorer)


def train_rival(kind: str, dataset: Any, settings: dict[str, Any], clock: Clock) -> None:
    """A rival with its chosen settings, until validation stops rising."""
    import importlib

    from benchmarks._grid import Patience
    from benchmarks._rivals import LONG_PATIENCE, MOST_EPOCHS, PACKAGES, RIVALS
    from benchmarks.machine import usable_cores

    if kind in PACKAGES:
        importlib.import_module(PACKAGES[kind])
    patience = Patience(LONG_PATIENCE, MOST_EPOCHS)

    def after_epoch(scorer: Callable[[], Any]) -> bool:
        return patience.goes_on(clock.mark(scorer))

    clock.begin()
    RIVALS[kind](dataset.train, settings, usable_cores(), after_epoch)


def main(data: str, kind: str, settings: dict[str, Any]) -> None:
    """Read the data, train, print."""
    from benchmarks._data import published

    dataset = published(data)
    clock = Clock(lambda scorer: ndcg(scorer, dataset))
    if kind == "pslrec":
        train_pslrec(dataset, settings, clock)
    else:
        train_rival(kind, dataset, settings, clock)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
