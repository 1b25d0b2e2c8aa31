"""Collect finished runs into a table of our numbers beside the published ones.

    python reproductions/collect.py RUN... --commit HASH

adds a row per run to `psl-neurips-2024/results/iid.csv` (a run that is there already is replaced) and writes the table in
`psl-neurips-2024/README.md` anew, between its markers.
"""

import argparse
import csv
import json
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent / "psl-neurips-2024"
RESULTS = HERE / "results" / "iid.csv"
BEGIN, END = "<!-- results: iid -->", "<!-- end of results -->"
COLUMNS = [
    "table",
    "dataset",
    "backbone",
    "loss",
    "form",
    "setting",
    "noise",
    "mode",
    "protocol",
    "seed",
    "temperature",
    "learning_rate",
    "weight_decay",
    "dimension",
    "negatives",
    "ours_recall20",
    "ours_ndcg20",
    "published_recall20",
    "published_ndcg20",
    "published_in",
    "selected_on_test",
    "best_epoch",
    "seconds",
    "commit",
]
KEY = ("table", "dataset", "backbone", "loss", "form", "setting", "noise", "mode", "protocol", "seed", "temperature")
DATASETS = {"amazon2014-electronic": "Amazon-Electronic", "amazon2014-health": "Amazon-Health", "gowalla": "Gowalla"}
BACKBONES = {"mf": "MF", "lightgcn": "LightGCN", "xsimgcl": "XSimGCL"}
LOSSES = {"bpr": "BPR", "sl": "SL", "llpauc": "LLPAUC", "adv-infonce": "AdvInfoNCE", "bsl": "BSL"}
LOSSES |= {f"psl-{surrogate}": f"PSL-{surrogate}" for surrogate in ("tanh", "atan", "relu", "softplus")}


def published(dataset, backbone, loss):
    """Recall@20, NDCG@20 and where they were printed: the PSL paper first, then the SL@K paper, whose PSL is PSL-relu."""
    for file, name in (("iid.csv", loss), ("slatk_iid.csv", "PSL" if loss == "PSL-relu" else loss)):
        with (HERE / "published" / file).open() as table:
            for row in csv.DictReader(table):
                if (row["model"], row["loss"], row["dataset"]) == (backbone, name, dataset):
                    return float(row["recall20"]), float(row["ndcg20"]), file.removesuffix(".csv")
    return "", "", ""


def row_of(run, commit):
    config = tomllib.loads((run / "config.toml").read_text())
    metrics = json.loads((run / "metrics.json").read_text())
    loss, training, sampling = config["loss"], config["training"], config["sampling"]
    dataset = DATASETS[Path(config["data"]["source"]).stem]
    backbone = BACKBONES[config["backbone"]["name"]]
    name = f"SL@{loss['k']}" if loss["name"] == "sl@k" else LOSSES[loss["name"]]
    recall, ndcg, where = published(dataset, backbone, name)
    negatives = sampling["negatives"]
    values = {
        "table": "iid",
        "dataset": dataset,
        "backbone": backbone,
        "loss": name,
        "form": loss.get("form", ""),
        "setting": "iid",
        "noise": sampling["noise"]["probability"],
        "mode": "catalog" if negatives == "catalog" else "sampled",
        "protocol": metrics["protocol"],
        "seed": training["seed"],
        "temperature": loss.get("temperature", loss.get("negative_temperature", "")),
        "learning_rate": training["learning_rate"],
        "weight_decay": training["weight_decay"],
        "dimension": config["backbone"]["dimension"],
        "negatives": negatives,
        "ours_recall20": round(metrics["test"]["recall@20"], 5),
        "ours_ndcg20": round(metrics["test"]["ndcg@20"], 5),
        "published_recall20": recall,
        "published_ndcg20": ndcg,
        "published_in": where,
        "selected_on_test": metrics["selected_on_test"],
        "best_epoch": metrics["best_epoch"],
        "seconds": round(metrics["seconds_per_epoch"] * metrics["trained_epochs"]),
        "commit": commit,
    }
    return {column: str(values[column]) for column in COLUMNS}


def read_results():
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        return list(csv.DictReader(file))


def write_results(rows):
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: [row[name] for name in KEY]))


def difference(ours, theirs):
    return f"{100 * (float(ours) / float(theirs) - 1):+.1f} %" if theirs else ""


def rendered(rows):
    lines = [
        "| data | backbone | loss | negatives | seed | Recall@20 | published | | NDCG@20 | published | | epoch |",
        "| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        cells = [row["dataset"], row["backbone"], row["loss"], row["negatives"], row["seed"]]
        for metric in ("recall20", "ndcg20"):
            ours, theirs = row[f"ours_{metric}"], row[f"published_{metric}"]
            cells += [f"{float(ours):.4f}", f"{float(theirs):.4f}" if theirs else "", difference(ours, theirs)]
        lines.append("| " + " | ".join([*cells, row["best_epoch"]]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--commit", default="", help="of the code that made the runs")
    options = parser.parse_args()
    rows = {tuple(row[name] for name in KEY): row for row in read_results()}
    for run in options.runs:
        row = row_of(run, options.commit)
        rows[tuple(row[name] for name in KEY)] = row
    write_results(list(rows.values()))
    page = HERE / "README.md"
    text = page.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    page.write_text(f"{before}\n{rendered(read_results())}\n{after}")


if __name__ == "__main__":
    main()
