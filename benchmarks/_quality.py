"""NDCG@20 of one data set against seconds from a cold process: exact training, ALS, and rivals in closed form.

Every contestant is a process of its own. The clock starts before the first import and stands still while
a model is evaluated, so evaluating often costs nobody anything. All settings were chosen on validation
data: those of GF-CF and RP3beta in `reproductions/accuracy`, those of the other rivals by `--search`, which
writes the file that is read here. The seconds of a search are not counted, but all that a preset of ours
tries is on the clock. A test value is only shown, of the model that was best on validation so far.
"""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._data import is_published, published
from benchmarks._plots import WIDE
from benchmarks._publish import REPOSITORY, RESULTS
from benchmarks._quality_tables import Shown, quality_headline, quality_text, rows_of
from benchmarks._rivals import why_missing
from benchmarks._settings import FAMILIES, load_settings, search_settings
from pslrec.reporting import Axis, Series, line_chart, standalone_svg

# Its authors ask for this: two pools of threads would be in each other's way.
ENVIRONMENT = {"als": {"OPENBLAS_NUM_THREADS": "1"}}
# Baselines of ours whose settings are searched in `reproductions/accuracy`, and what tables call them.
TUNED_BASELINES = {"gf-cf": "GF-CF", "rp3beta": "RP3beta", "slim": "SLIM"}
ACCURACY = REPOSITORY / "reproductions" / "accuracy" / "results.csv"

Points = list[dict[str, float]]


@dataclass(frozen=True)
class QualityBySeconds:
    """The benchmark of one data set.

    Args:
        name: of the benchmark, which gives the names of its files.
        data: what the data set is called in `_data`.
        shown: what tables and pictures show.
        ours: presets and their dimensions.
        searched: kinds of rivals whose settings `--search` chooses.
    """

    name: str
    data: str
    shown: Shown
    ours: tuple[tuple[str, int], ...]
    searched: tuple[str, ...] = tuple(FAMILIES)

    @property
    def description(self) -> str:
        """One line for the list of benchmarks."""
        return (
            f"NDCG@20 on {self.shown.data} by seconds from a cold process: PSL-relu and its rivals"
        )

    @property
    def settings(self) -> Path:
        """The file of the rivals' settings."""
        return RESULTS / f"{self.name}_settings.json"

    def run(self, *, report: Callable[[str], None] | None = None) -> dict[str, Any]:
        """Run every contestant, one after the other."""
        tell = report or (lambda _: None)
        self._require_data()
        curves: dict[str, Any] = {}
        left_out = []
        for name, contestant in self.contestants().items():
            missing = why_missing(contestant["kind"])
            if missing:
                tell(missing)
                left_out.append(f"{name}: {missing}")
                continue
            tell(name)
            started, points = child(self.data, contestant["kind"], contestant["settings"])
            curves[name] = {**contestant, "fitting_from": started, "points": points}
        result: dict[str, Any] = {"rows": rows_of(curves, self.shown), "curves": curves}
        if left_out:
            result["left_out"] = "; ".join(left_out)
        return result

    def search(self, *, report: Callable[[str], None], threads: int = 1) -> Path:
        """Choose the settings of the rivals on validation data; gives the file that keeps them."""
        import torch

        self._require_data()
        torch.set_num_threads(threads)
        dataset = published(self.data)
        options: dict[str, Any] = {"kinds": self.searched, "path": self.settings}
        search_settings(dataset, tell=report, threads=threads, **options)
        return self.settings

    def contestants(self) -> dict[str, dict[str, Any]]:
        """Kind, dimension and settings of every contestant, by name."""
        found: dict[str, dict[str, Any]] = {}
        for preset, dimension in self.ours:
            found[f"pslrec, preset {preset}, d = {dimension}"] = {
                "kind": "pslrec",
                "dimension": dimension,
                "settings": {"preset": preset, "backbone.dimension": dimension},
            }
        rivals = load_settings(self.settings)
        if not rivals:
            command = f"python -m benchmarks {self.name} --search"
            raise FileNotFoundError(f"there is no {self.settings}; run `{command}`")
        for name, rival in rivals.items():
            found[name] = {key: value for key, value in rival.items() if key != "tried"}
            found[name]["n_tried"] = len(rival["tried"])
        return found | tuned_baselines(self.shown.data)

    def plots(self, record: dict[str, Any]) -> dict[str, str]:
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
        lowest = self.shown.lowest
        chart = line_chart(
            f"Test NDCG@20 on {self.shown.data}",
            "Test NDCG@20 by seconds from a cold process, one line for each contestant.",
            curves,
            x=Axis("seconds from a cold process", is_log=True),
            # All end close together: on an axis from 0 their lines would cover each other.
            y=Axis(f"test NDCG@20, from {lowest}", floor=lowest),
            size=WIDE,
            # Contestants share hardly any x: thinning could remove the only point of one of them.
            is_thinned=False,
        )
        return {self.name.replace("_", "-"): standalone_svg(chart)}

    def markdown(self, record: dict[str, Any]) -> str:
        """Sentences and tables for the documentation."""
        return quality_text(record, self.shown)

    def headline(self, record: dict[str, Any]) -> str:
        """A table that fits a screen."""
        return quality_headline(record, self.shown)

    def _require_data(self) -> None:
        if not is_published(self.data):
            # On made-up data the settings mean nothing, and the tables would carry a false name.
            raise FileNotFoundError(
                f"the published {self.shown.data} is not here; set PSLREC_DATA_DIR to where it lies"
            )


def tuned_baselines(data: str, path: Path = ACCURACY) -> dict[str, dict[str, Any]]:
    """Our own baselines with the settings that were searched for the page of accuracy.

    Args:
        data: the data set, as it is called there.
        path: the rows of that page.
    """
    found: dict[str, dict[str, Any]] = {}
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        kind = row["contestant"]
        if row["data"] != data or kind not in TUNED_BASELINES:
            continue
        settings = json.loads(row["chosen"])
        n_tried = settings.pop("tries")
        found[TUNED_BASELINES[kind]] = {
            "kind": kind,
            "dimension": int(settings.get("dimension", 0)),
            "settings": settings,
            "n_tried": n_tried,
        }
    return found


def child(data: str, kind: str, settings: dict[str, Any]) -> tuple[float, Points]:
    """When fitting began, and what there was after each epoch."""
    command = [sys.executable, "-m", "benchmarks._contestant", data, kind, json.dumps(settings)]
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
