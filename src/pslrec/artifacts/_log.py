"""`log.jsonl`: one line per epoch, of which a crash may have cut the last one short."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pslrec.artifacts._format import ArtifactError
from pslrec.files import LARGEST_LOG, read_text


@dataclass(frozen=True)
class Epoch:
    """One line of a run's log.

    Args:
        number: counted from 1.
        loss: mean over the batches; NaN where the log does not give it.
        seconds: training time, without validation.
        validation: the value by which epochs are compared, or `None` where it was not computed.
    """

    number: int
    loss: float
    seconds: float
    validation: float | None


def read_log(path: Path) -> list[str]:
    """Read the lines of a log; there are none if the file is absent.

    Args:
        path: the file.
    """
    if not path.exists():
        return []
    # A half-written line need not be UTF-8; the lines before it are still good.
    text = read_text(path, limit=LARGEST_LOG, damaged="replace", error=ArtifactError)
    return text.splitlines()


def parse_epoch(line: str) -> Epoch | None:
    """Read one line of a log; `None` if it was cut short or damaged.

    Args:
        line: a JSON object, as `EpochFinished` is written.

    >>> parse_epoch('{"epoch": 2, "loss": 0.5, "seconds": 1.5, "validation": null}')
    Epoch(number=2, loss=0.5, seconds=1.5, validation=None)
    >>> parse_epoch('{"epoch": 3, "lo') is None
    True
    """
    # Field by field, as a newer version may log more.
    try:
        record = json.loads(line)
        validation = None
        if record.get("validation") is not None:
            validation = float(record["validation"])
        return Epoch(
            number=int(record["epoch"]),
            loss=_number(record, "loss"),
            seconds=_number(record, "seconds"),
            validation=validation,
        )
    # Anything at all may stand in a damaged line: no JSON, a list, a text where a number belongs,
    # a number too large, brackets nested too deep.
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def read_epochs(path: Path) -> list[Epoch]:
    """Read the epochs of a log in order; damaged lines are skipped.

    Args:
        path: the file.
    """
    by_number = {}
    for line in read_log(path):
        epoch = parse_epoch(line)
        if epoch is not None:
            # Of two lines for one epoch, the later one belongs to the model that was kept.
            by_number[epoch.number] = epoch
    return [by_number[number] for number in sorted(by_number)]


def _number(record: Mapping[str, Any], name: str) -> float:
    value = record.get(name)
    if value is None:
        return math.nan
    return float(value)
