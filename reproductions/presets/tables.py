"""`python reproductions/presets/tables.py --data-dir DIR --runs DIR`: how good exact training gets, and how that was found.

Temperature and learning rate of PSL-relu on MF are chosen on the paper protocol's validation part, for each number of
dimensions; EASE and iALS are tuned on the same part. The test part is opened for the chosen cell alone. Cells that are finished
under `--runs` are not trained again. Writes `results.csv`, `grid.csv` and the table of `README.md` beside this file.
"""

import argparse
import csv
import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from pslrec.backbones import initial_tables
from pslrec.baselines import BASELINES
from pslrec.config import RunConfig
from pslrec.data import Dataset, read_published
from pslrec.data.splits import paper_validation
from pslrec.evaluation import EmbeddingScorer, evaluate
from pslrec.files import make_directory, write_text
from pslrec.studies import TuningResult, tune

HERE = Path(__file__).resolve().parent
DATASETS = {"Amazon-Electronic": "amazon2014-electronic", "Amazon-Health": "amazon2014-health"}
COMMON = {
    "loss.name": "psl-relu",
    "backbone.name": "mf",
    "evaluation.protocol": "paper",
    "sampling.negatives": "catalog",
}
# Two ways to train: from a start that ranks already, and as the paper does.
SHORT: dict[str, Any] = {
    "training.schedule": "cosine",
    "training.epochs": 10,
    "training.validate_every": 1,
}
LONG: dict[str, Any] = {
    "backbone.initialization": "normal",
    "training.schedule": "constant",
    "training.epochs": 200,
}
TEMPERATURES, RATES, START = "loss.temperature", "training.learning_rate", "backbone.initialization"
WIDE = {
    START: ("spectral:2", "spectral:2.5", "spectral:3"),
    TEMPERATURES: (1 / 16, 1 / 12, 1 / 10, 1 / 8),
    RATES: (0.003, 0.001, 0.0003),
}
# With more dimensions fewer cells, as they cost more: those around the best of fewer dimensions.
NARROW = {
    START: ("spectral:2.5", "spectral:3"),
    TEMPERATURES: (1 / 16, 1 / 12, 1 / 10),
    RATES: (0.001,),
}
UNTRAINED = "spectral:3"
Grid = dict[str, tuple[Any, ...]]
GRIDS: dict[tuple[str, int], Grid] = {
    **{(dataset, 64): WIDE for dataset in DATASETS},
    **{("Amazon-Electronic", dimension): NARROW for dimension in (128, 256, 512)},
    # An epoch of Health has a fifth of the steps.
    **{
        ("Amazon-Health", dimension): {**NARROW, RATES: (0.003, 0.001)}
        for dimension in (128, 256, 512)
    },
}
LONG_GRIDS: dict[tuple[str, int], Grid] = {
    ("Amazon-Electronic", 64): {TEMPERATURES: (1 / 10, 1 / 8), RATES: (0.01,)},
    ("Amazon-Health", 64): {TEMPERATURES: (1 / 10, 1 / 8), RATES: (0.1, 0.01)},
}
BASELINE_GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "ease": {"regularization": (50.0, 100.0, 200.0, 400.0, 800.0)},
    "ials": {
        "dimension": (64, 256),
        "unobserved_weight": (0.03, 0.1, 0.3),
        "regularization": (0.1, 0.3, 1.0),
    },
}
MARKER = "<!-- table -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":", 1)[1].strip().splitlines()[0])
    parser.add_argument(
        "--data-dir", type=Path, required=True, help="where the published data sets lie"
    )
    parser.add_argument(
        "--runs", type=Path, required=True, help="where the cells of the search live"
    )
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--baselines", choices=("all", "kept"), default="all", help="kept: only those found before"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows, cells = [], []
    for name, file in DATASETS.items():
        path = options.data_dir / "iid" / f"{file}.zip"
        kinds = [
            k
            for k in BASELINE_GRIDS
            if options.baselines == "all" or _kept(k, path, options.runs).exists()
        ]
        rows += [_baseline(kind, name, path, options.runs) for kind in kinds]
        for dimension in sorted(dimension for dataset, dimension in GRIDS if dataset == name):
            rows.append(_untrained(name, path, dimension))
            searches = list(_searches(name, path, dimension, options.runs))
            rows.append(_row(name, dimension, max(searches, key=lambda search: search.quality)))
            cells += [
                {"dataset": name, "dimension": dimension, **cell}
                for search in searches
                for cell in _cells(search)
            ]
        _write(HERE / "results.csv", rows)
        _write(HERE / "grid.csv", cells)
    _render(rows)


class Search(NamedTuple):
    """A grid, and for how many epochs its cells were trained."""

    epochs: int
    result: TuningResult

    @property
    def quality(self) -> float:
        """What the best cell reached on validation."""
        best = self.result.best
        return -1.0 if best is None else best.value or 0.0


def _searches(name: str, path: Path, dimension: int, runs: Path) -> Iterator[Search]:
    for way, grids, ending in ((SHORT, GRIDS, ""), (LONG, LONG_GRIDS, "-long")):
        if (name, dimension) in grids:
            settings = {**COMMON, **way, "data.source": str(path), "backbone.dimension": dimension}
            out = runs / f"{path.stem}-{dimension}{ending}"
            yield Search(
                settings["training.epochs"],
                tune(RunConfig.from_settings(settings), grids[name, dimension], out=out),
            )


def _untrained(name: str, path: Path, dimension: int) -> dict[str, Any]:
    """What the start is worth without any training."""
    dataset, generator = paper_validation(read_published(path)), torch.Generator().manual_seed(0)
    scorer = EmbeddingScorer(
        *initial_tables(UNTRAINED, dataset.train, dimension=dimension, generator=generator)
    )
    test = _judge(scorer, dataset, "test")
    return {
        "dataset": name,
        "model": "start, untrained",
        "dimension": dimension,
        "settings": json.dumps({START: UNTRAINED}),
        "validation_ndcg20": round(_judge(scorer, dataset, "validation")["ndcg@20"], 5),
        "test_recall20": round(test["recall@20"], 5),
        "test_ndcg20": round(test["ndcg@20"], 5),
        "best_epoch": 0,
    }


def _row(dataset: str, dimension: int, search: Search) -> dict[str, Any]:
    result, best = search.result, search.result.best
    if best is None:
        raise RuntimeError(f"no cell of {result.directory} was finished")
    return {
        "dataset": dataset,
        "model": "PSL-relu, MF, exact",
        "dimension": dimension,
        "settings": json.dumps({**best.settings, "training.epochs": search.epochs}),
        "validation_ndcg20": round(search.quality, 5),
        "test_recall20": round(result.metrics["test"]["recall@20"], 5),
        "test_ndcg20": round(result.metrics["test"]["ndcg@20"], 5),
        "best_epoch": result.metrics["best_epoch"],
    }


def _cells(search: Search) -> Iterator[dict[str, Any]]:
    for outcome in search.result.trials:
        yield {
            **outcome.settings,
            "training.epochs": search.epochs,
            "validation_ndcg20": outcome.value,
        }


def _kept(kind: str, path: Path, runs: Path) -> Path:
    return runs / f"{path.stem}-{kind}.json"


def _baseline(kind: str, name: str, path: Path, runs: Path) -> dict[str, Any]:
    """The best of a baseline's grid on validation, from a file under `runs` if it was found before."""
    kept = _kept(kind, path, runs)
    if kept.exists():
        return dict(json.loads(kept.read_text()))
    dataset, grid = paper_validation(read_published(path)), BASELINE_GRIDS[kind]
    tried = []
    for values in itertools.product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        scorer = BASELINES[kind](**settings).fit(dataset.train)
        tried.append((_judge(scorer, dataset, "validation")["ndcg@20"], settings))
    value, settings = max(tried, key=lambda pair: pair[0])
    test = _judge(BASELINES[kind](**settings).fit(dataset.train), dataset, "test")
    row = {
        "dataset": name,
        "model": {"ease": "EASE", "ials": "iALS"}[kind],
        "dimension": settings.get("dimension", ""),
        "settings": json.dumps(settings),
        "validation_ndcg20": round(value, 5),
        "test_recall20": round(test["recall@20"], 5),
        "test_ndcg20": round(test["ndcg@20"], 5),
        "best_epoch": "",
    }
    make_directory(kept.parent)
    write_text(kept, json.dumps(row))
    return row


def _judge(scorer: Any, dataset: Dataset, split: Any) -> dict[str, float]:
    metrics = ("recall", "ndcg")
    return evaluate(
        scorer, dataset, k=(20,), protocol="paper", split=split, metrics=metrics
    ).metrics


def _published() -> list[dict[str, Any]]:
    directory = HERE.parent / "psl-neurips-2024" / "published"
    rows = []
    for dataset, file in (("Amazon-Electronic", "iid.csv"), ("Amazon-Health", "slatk_iid.csv")):
        with (directory / file).open(newline="") as opened:
            published = [
                row
                for row in csv.DictReader(opened)
                if (row["model"], row["dataset"]) == ("MF", dataset)
            ]
        shown = [row for row in published if row["loss"] in ("SL", "PSL", "PSL-relu")]
        rows += [
            {
                "dataset": dataset,
                "model": f"{row['loss']}, MF, published",
                "dimension": 64,
                "settings": "",
                "validation_ndcg20": "",
                "test_recall20": float(row["recall20"]),
                "test_ndcg20": float(row["ndcg20"]),
                "best_epoch": "",
            }
            for row in shown
        ]
    return rows


def _render(rows: list[dict[str, Any]]) -> None:
    readme = HERE / "README.md"
    everything = sorted(_published() + rows, key=lambda row: (row["dataset"], row["test_ndcg20"]))
    lines = [
        "| data | model | d | chosen on validation | Recall@20 | NDCG@20 |",
        "| --- | --- | ---: | --- | ---: | ---: |",
    ]
    for row in everything:
        settings = json.loads(row["settings"]) if row["settings"] else {}
        chosen = ", ".join(
            _said(key, value) for key, value in settings.items() if key != "dimension"
        )
        cells = [row["dataset"], row["model"], str(row["dimension"]), chosen]
        lines.append(
            f"| {' | '.join(cells)} | {row['test_recall20']:.4f} | {row['test_ndcg20']:.4f} |"
        )
    before, _, after = readme.read_text().split(MARKER)
    write_text(readme, MARKER.join([before, "\n" + "\n".join(lines) + "\n", after]))


def _said(key: str, value: Any) -> str:
    return (
        str(value)
        if isinstance(value, str)
        else f"{key.rpartition('.')[2].replace('_', ' ')} {value:.4g}"
    )


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    if rows:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(path, text.getvalue())


if __name__ == "__main__":
    main()
