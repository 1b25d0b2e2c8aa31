"""Every numeric setting with extreme values: refused in a sentence, or a run that begins, or ends with a sentence."""

import contextlib
import inspect
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import polars as pl
import pytest
from pydantic import BaseModel

from pslrec.backbones import BACKBONES
from pslrec.config import RunConfig
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.errors import PslrecError
from pslrec.experiment import run
from pslrec.losses import LOSSES
from pslrec.training._events import EpochFinished, Event

VALUES = (
    1e-300,
    1e-30,
    1e-9,
    1e9,
    1e300,
    0.0,
    -1.0,
    float("nan"),
    float("inf"),
    0,
    1,
    -1,
    2**31,
    2**62,
    10**30,
)
PATIENCE_SECONDS = 30
MEMORY = 3 * 2**29
MODES = (20, "catalog", "shared:16")


class FirstEpochIsOver(Exception):  # noqa: N818 - it is what a test waits for
    """Enough was seen of a run."""


def _is_numeric(kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return any(_is_numeric(part) for part in get_args(kind))
    return kind in (int, float)


def _of_section(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _of_section(kind, f"{prefix}{name}.")
        elif _is_numeric(kind) or prefix + name == "evaluation.k":
            yield prefix + name


def _of_parts() -> Iterator[tuple[str, dict[str, Any]]]:
    for section, registry in (("loss", LOSSES), ("backbone", BACKBONES)):
        for part in registry:
            hints = get_type_hints(registry[part].__init__)
            for name in inspect.signature(registry[part]).parameters:
                if name not in ("train", "seed") and _is_numeric(hints.get(name)):
                    yield f"{section}.{name}", {f"{section}.name": part}


SETTINGS: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in _of_section(RunConfig)] + list(
    _of_parts()
)
IDS = ["-".join([name, *map(str, others.values())]) for name, others in SETTINGS]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file, so that the settings of preparation and split have an effect."""
    model = TasteModel(n_topics=3, median_history=9, minimum_history=6)
    frame = planted_tastes(40, 30, model=model, seed=2).interactions.to_frame()
    path = tmp_path_factory.mktemp("data") / "log.csv"
    frame.with_columns(rating=pl.lit(4.0)).write_csv(path)
    return path


@contextmanager
def limits() -> Iterator[None]:
    """Raises in what takes too long; memory has an end."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MEMORY, hard))
    signal.alarm(PATIENCE_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[0]) * resource.getpagesize()


def stop_after_an_epoch(event: Event) -> None:
    if isinstance(event, EpochFinished):
        raise FirstEpochIsOver


def outcome_of(settings: dict[str, Any]) -> str:
    """What a run with these settings says, if it says anything."""
    listeners = [] if settings["training.epochs"] == 1 else [stop_after_an_epoch]
    try:
        with limits():
            run(RunConfig.from_settings(settings), listeners=listeners)
    except FirstEpochIsOver:
        return ""
    except PslrecError as error:
        return str(error)
    return ""


def settings_with(
    name: str, value: Any, others: dict[str, Any], mode: int | str, log: Path
) -> dict[str, Any]:
    common = {
        "training.epochs": 1,
        "sampling.negatives": mode,
        "backbone.dimension": 4,
        "sampling.batch_pairs": 64,
    }
    noise = {"sampling.noise.probability": 0.2} if name.startswith("sampling.noise.") else {}
    return {"data.source": str(log), **common, **others, **noise, name: value}


def assert_sentence_or_run(settings: dict[str, Any]) -> None:
    try:
        said = outcome_of(settings)
    except Exception as error:
        raise AssertionError(f"{settings}: {error!r}") from error
    assert "\n" not in said


@pytest.mark.slow
@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize(("name", "others"), SETTINGS, ids=IDS)
def test_an_extreme_value_is_refused_or_runs(
    name: str, others: dict[str, Any], value: Any, log: Path
) -> None:
    # Only losses and batches know how negatives are drawn.
    modes = MODES if name.startswith(("loss.", "sampling.")) else MODES[:1]
    for mode in modes:
        assert_sentence_or_run(settings_with(name, value, others, mode, log))


@pytest.mark.parametrize(("name", "others"), SETTINGS, ids=IDS)
def test_an_extreme_value_is_refused_or_accepted(
    name: str, others: dict[str, Any], log: Path
) -> None:
    for value in VALUES:
        with contextlib.suppress(PslrecError):
            RunConfig.from_settings(
                settings_with(name, value, others, 20, log)
            ).resolved().to_toml()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"loss.temperature": 1e-300}, "`temperature` must be from 1e-12 to 1e+12, got 1e-300"),
        ({"loss.temperature": 1e300}, "`temperature` must be from 1e-12 to 1e+12, got 1e+300"),
        (
            {"backbone.name": "lightgcn", "backbone.layers": 65},
            "`layers` must be a whole number of at most 64, got 65",
        ),
        (
            {"backbone.name": "xsimgcl", "backbone.layers": 2**62},
            "`layers` must be a whole number of at most 64, got 46",
        ),
        (
            {"backbone.dimension": 2**17},
            "`dimension` must be a whole number of at most 65536, got 131072",
        ),
        (
            {"training.epochs": 2**62},
            "`training.epochs` should be a number from 1 to 1,000,000, or 'auto', got 4611",
        ),
        (
            {"training.learning_rate": 1e300},
            "`training.learning_rate` should be less than or equal to 1000000000",
        ),
        (
            {"training.seed": 10**30},
            "`training.seed` should be less than 9223372036854775808, got 1000",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_values_that_no_run_can_have_are_named(
    settings: dict[str, Any], said: str, log: Path
) -> None:
    given = {"data.source": str(log), "training.epochs": 1, "sampling.negatives": 5, **settings}
    assert outcome_of(given).startswith(said)
