"""Which test parts are like pairs held out at random from training, and how often the check alarms by chance.

    python reproductions/exchangeability.py DIRECTORY

takes the published splits in `iid/`, `ood/` and `lightgcn/` of the directory, and our own rules on the embedded data and on
planted tastes. Writes `results.csv` and `false-alarms.csv` beside this file, in `exchangeability/`, and the tables of
`docs/explanation/exchangeability.md`. With `--tables` it only writes the tables again, from the recorded files.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _records import REPOSITORY, append, publish, read, table

from pslrec.data import Dataset, Interactions, check_exchangeability, planted_tastes, read_published
from pslrec.data.embedded import debian_packages
from pslrec.data.splits import split_by_name

HERE = REPOSITORY / "reproductions" / "exchangeability"
RESULTS = HERE / "results.csv"
FALSE_ALARMS = HERE / "false-alarms.csv"
PAGE = REPOSITORY / "docs" / "explanation" / "exchangeability.md"
# How the published splits of each directory were made.
ORIGINS = {"iid": "IID of the paper", "ood": "OOD of the paper", "lightgcn": "LightGCN"}
OWN_SPLITS = {
    "Debian": ("iid", "popularity"),
    "planted tastes": ("iid", "popularity", "temporal", "temporal-per-user", "leave-one-out"),
}
N_SPLITS = 200
SEED = 2024


def own_logs() -> dict[str, Interactions]:
    """The data that come with the package."""
    return {
        "Debian": debian_packages(),
        "planted tastes": planted_tastes(with_timestamps=True).interactions,
    }


def datasets(directory: Path) -> Iterator[tuple[str, str, Dataset]]:
    """Name, kind of split and data of everything at hand."""
    for folder, origin in ORIGINS.items():
        for path in sorted((directory / folder).glob("*.zip")):
            yield path.stem.removesuffix("-popularity"), origin, read_published(path)
    logs = own_logs()
    for name, splits in OWN_SPLITS.items():
        for split in splits:
            yield name, f"ours: {split}", split_by_name(logs[name], split)


def measure(name: str, split: str, dataset: Dataset) -> dict[str, object]:
    """What the check finds about the test part, with all users."""
    check = check_exchangeability(dataset, mode="on", seed=SEED)["test"]
    row: dict[str, object] = {
        "data": name,
        "split": split,
        "train_pairs": len(dataset.train),
        "test_pairs": len(dataset.test),
        "compared_users": check.n_users,
        "compared_pairs": check.n_pairs,
    }
    for each in check.measures:
        key = each.name.replace(" ", "_")
        row[key] = f"{each.held_out:.6g}"
        row[f"{key}_random"] = f"{each.random:.6g}"
        row[f"{key}_difference"] = round(each.difference, 5)
        row[f"{key}_margin"] = round(each.margin, 5)
        row[f"{key}_effect"] = round(each.effect, 4)
        row[f"{key}_p"] = round(each.adjusted_p, 5)
    return row | {"verdict": check.verdict, "sentence": check.sentence(), "seed": SEED}


def count_alarms(name: str, log: Interactions, n_splits: int = N_SPLITS) -> dict[str, object]:
    """How often splits at random alarm, each by a seed of its own."""
    values: dict[str, list[float]] = {"popularity": [], "affinity": []}
    n_alarms = 0
    for seed in range(n_splits):
        check = check_exchangeability(split_by_name(log, "iid", seed=seed), seed=seed)["test"]
        n_alarms += bool(check.shifts)
        for each in check.measures:
            if each.name in values:
                values[each.name].append(each.p)
    row: dict[str, object] = {"data": name, "splits": n_splits}
    for key, found in values.items():
        row[f"{key}_below_5_percent"] = round(float(np.mean(np.array(found) < 0.05)), 4)
        row[f"{key}_mean_p"] = round(float(np.mean(found)), 4)
    return row | {"alarms": round(n_alarms / n_splits, 4)}


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The results for the documentation."""
    headings = {
        "data": "---",
        "split": "---",
        "test pairs": "---:",
        "popularity": "---:",
        "random": "---:",
        "difference": "---:",
        "affinity": "---:",
        "random ": "---:",
        "difference ": "---:",
        "verdict": "---",
    }
    lines = []
    for row in rows:
        cells = [row["data"], row["split"], f"{int(row['test_pairs']):,}"]
        for key in ("popularity", "affinity"):
            difference = 100 * float(row[f"{key}_difference"])
            margin = 100 * float(row[f"{key}_margin"])
            cells.append(f"{float(row[key]):.3g}")
            cells.append(f"{float(row[f'{key}_random']):.3g}")
            cells.append(f"{difference:+.1f} ± {margin:.1f} %")
        verdict = str(row["verdict"])
        if verdict == "shifted":
            verdict = "**shifted**"
        lines.append([*cells, verdict])
    return table(headings, lines)


def sentences(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the check says of each data set."""
    return "\n".join(f"- {row['data']}, {row['split']}: *{row['sentence']}.*" for row in rows)


def alarm_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """How often the check alarms by chance, for the documentation."""
    headings = {
        "data": "---",
        "random splits": "---:",
        "popularity, p < 0.05": "---:",
        "affinity, p < 0.05": "---:",
        "any alarm": "---:",
    }
    lines = []
    for row in rows:
        shares = ("popularity_below_5_percent", "affinity_below_5_percent", "alarms")
        lines.append([row["data"], row["splits"], *(f"{float(row[key]):.1%}" for key in shares)])
    return table(headings, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?", help="has iid/, ood/ and lightgcn/")
    parser.add_argument("--tables", action="store_true", help="write the tables only")
    arguments = parser.parse_args()
    if not arguments.tables:
        if arguments.directory is None:
            parser.error("give the directory with the data, or --tables")
        RESULTS.unlink(missing_ok=True)
        FALSE_ALARMS.unlink(missing_ok=True)
        for name, split, dataset in datasets(arguments.directory):
            row = measure(name, split, dataset)
            append(RESULTS, row)
            print(name, split, row["sentence"], flush=True)
        for name, log in own_logs().items():
            found = count_alarms(name, log)
            append(FALSE_ALARMS, found)
            print(found, flush=True)
    rows = read(RESULTS)
    publish("exchangeability", markdown(rows), PAGE)
    publish("exchangeability sentences", sentences(rows), PAGE)
    publish("false alarms", alarm_table(read(FALSE_ALARMS)), PAGE)


if __name__ == "__main__":
    main()
