"""NDCG@20 on Amazon-Electronic against seconds from a cold process: exact training, two ALS, EASE.

Every contestant is a process of its own. The clock starts before the first import and stands still while
a model is evaluated, so evaluating often costs nobody anything. All settings were chosen on validation
data: those of the preset `fast` in `reproductions/presets`, those of the rivals by `--search`, which writes
the file that is read here. The seconds of a search are not counted for anybody. A test value is only
shown, of the model that was best on validation so far.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._data import is_published, published
from benchmarks._plots import WIDE
from benchmarks._quality_tables import quality_headline, quality_text, rows_of
from benchmarks._rivals import why_missing
from benchmarks._settings import SETTINGS, load_settings, search_settings
from pslrec.reporting import Axis, Series, line_chart, standalone_svg

DESCRIPTION = "NDCG@20 on Amazon-Electronic by seconds from a cold process: PSL-relu, two ALS, EASE"
SHOWN_FROM = 0.04
REPOSITORY = Path(__file__).resolve().parent.parent
# Its authors ask for this: two pools of threads would be in each other's way.
ENVIRONMENT = {"als": {"OPENBLAS_NUM_THREADS": "1"}}


# Presets of ours and their dimensions. The race of `auto` is on the clock, the search of the rivals
# is not.
OURS = (("auto", 64), ("auto", 256), ("auto", 512), ("fast", 64))


def run(*, report: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Run every contestant, one after the other."""
    tell = report or (lambda _: None)
    _require_data()
    curves: dict[str, Any] = {}
    left_out = []
    for name, contestant in contestants().items():
        missing = why_missing(contestant["kind"])
        if missing:
            tell(missing)
            left_out.append(f"{name}: {missing}")
            continue
        tell(name)
        started, points = _child(contestant["kind"], contestant["settings"])
        curves[name] = {**contestant, "fitting_from": started, "points": points}
    result: dict[str, Any] = {"rows": rows_of(curves), "curves": curves}
    if left_out:
        result["left_out"] = "; ".join(left_out)
    return result


def search(*, report: Callable[[str], None], threads: int = 1) -> Path:
    """Choose the settings of the rivals on validation data; gives the file that keeps them."""
    import torch

    _require_data()
    torch.set_num_threads(threads)
    search_settings(published("electronic"), tell=report, threads=threads)
    return SETTINGS


def contestants() -> dict[str, dict[str, Any]]:
    """Kind, dimension and settings of every contestant, by name."""
    found: dict[str, dict[str, Any]] = {}
    for preset, dimension in OURS:
        found[f"pslrec, preset {preset}, d = {dimension}"] = {
            "kind": "pslrec",
            "dimension": dimension,
            "settings": {"preset": preset, "backbone.dimension": dimension},
        }
    rivals = load_settings()
    if not rivals:
        command = "python -m benchmarks time_to_quality --search"
        raise FileNotFoundError(f"there is no {SETTINGS}; run `{command}`")
    for name, rival in rivals.items():
        found[name] = {key: value for key, value in rival.items() if key != "tried"}
        found[name]["n_tried"] = len(rival["tried"])
    return found


def _require_data() -> None:
    if not is_published("electronic"):
        # On made-up data the settings mean nothing, and the tables would carry a false name.
        raise FileNotFoundError(
            "the published Amazon-Electronic is not here; set PSLREC_DATA_DIR to where it lies"
        )


def _child(kind: str, settings: dict[str, Any]) -> tuple[float, list[dict[str, float]]]:
    """When fitting began, and what there was after each epoch."""
    command = [sys.executable, "-m", "benchmarks._contestant", kind, json.dumps(settings)]
    environment = {**os.environ, **ENVIRONMENT.get(kind, {})}
    output = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if output.returncode != 0:
        raise RuntimeError(f"{kind} {settings} failed: {output.stderr.strip().splitlines()[-1:]}")
    lines = [json.loads(line) for line in output.stdout.splitlines() if line.startswith("{")]
    return lines[0]["fitting_from"], lines[1:]


def plots(record: dict[str, Any]) -> dict[str, str]:
    """The curves as a picture: a colour for each contestant, a mark for each dimension."""
    families: list[str] = []
    dimensions: list[str] = []
    curves = []
    for name, curve in record["result"]["curves"].items():
        family, _, dimension = name.partition(", d = ")
        if family not in families:
            families.append(family)
        if dimension not in dimensions:
            dimensions.append(dimension)
        curves.append(
            Series(
                name,
                [(point["seconds"], point["test"]) for point in curve["points"]],
                style=families.index(family),
                mark=dimensions.index(dimension),
            )
        )
    chart = line_chart(
        "Test NDCG@20 on Amazon-Electronic",
        "Test NDCG@20 by seconds from a cold process, one line for each contestant.",
        curves,
        x=Axis("seconds from a cold process", is_log=True),
        # All end close together: on an axis from 0 their lines would cover each other.
        y=Axis(f"test NDCG@20, from {SHOWN_FROM}", floor=SHOWN_FROM),
        size=WIDE,
        # Contestants share hardly any x: thinning could remove the only point of one of them.
        is_thinned=False,
    )
    return {"time-to-quality": standalone_svg(chart)}


def markdown(record: dict[str, Any]) -> str:
    """Sentences and tables for the documentation."""
    return quality_text(record)


def headline(record: dict[str, Any]) -> str:
    """A table that fits a screen."""
    return quality_headline(record)
