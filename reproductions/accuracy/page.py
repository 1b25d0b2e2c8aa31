"""`python reproductions/accuracy/page.py`: the tables of the page beside this file, from its rows.

`results.csv` holds what `measure.py` measured, `published.csv` what others printed. A row of ours is the
mean over its seeds, with the standard deviation where there are several.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from _records import publish, read, table  # noqa: E402

PAGE = HERE / "README.md"
WIDE = "auto, d = 256"
WIDEST = "auto, d = 512"
# Vectors alone.
ALONE = ", without walks"
# Trained on all of training, as published rows of LightGCN-Gowalla are.
REFITTED = ", refitted"
ON_TEST = ", epoch on test"
# What belongs to walks and to a regression among the settings of a row.
SETTINGS_OF = {
    "walks": ("popularity_exponent", "transition_exponent"),
    "regression": ("regression_l1", "regression_l2", "regularization"),
}


def ours() -> dict[str, dict[str, list[dict[str, str]]]]:
    """Measured rows by data set and contestant."""
    found: dict[str, dict[str, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for row in read(HERE / "results.csv"):
        found[row["data"]][row["contestant"]].append(row)
    return found


def published() -> dict[str, list[dict[str, str]]]:
    """Published rows by data set, the best first."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in read(HERE / "published.csv"):
        found[row["data"]].append(row)
    for rows in found.values():
        rows.sort(key=lambda row: -float(row["ndcg20"]))
    return found


def spread(rows: list[dict[str, str]], column: str) -> str:
    """The mean of a column, with its deviation where there are several rows."""
    values = [float(row[column]) for row in rows]
    if len(values) == 1:
        return f"{values[0]:.4f}"
    return f"{mean(values):.4f} ± {stdev(values):.4f}"


def value(rows: list[dict[str, str]]) -> float:
    """Mean NDCG@20."""
    return mean(float(row["ndcg20"]) for row in rows)


def beside(rows: list[dict[str, str]], published: list[dict[str, str]]) -> str:
    """A value of ours, and by how much it is ahead of the best published one."""
    if not rows:
        return ""
    said = spread(rows, "ndcg20")
    if published:
        gain = value(rows) / float(published[0]["ndcg20"]) - 1
        said += f", {100 * gain:+.1f} %"
    return said


def with_dimension(
    rows: list[dict[str, str]], published: list[dict[str, str]], remark: str = ""
) -> str:
    """The same with the dimension, and perhaps a remark; empty if nothing was measured."""
    if not rows:
        return ""
    return f"{beside(rows, published)} (d = {rows[0]['dimension']}{remark})"


def preferred(choices: list[list[dict[str, str]]]) -> list[dict[str, str]]:
    """Which of several contestants validation prefers, of those that were measured."""
    measured = [rows for rows in choices if rows]
    if not measured:
        return []
    return max(measured, key=lambda rows: float(rows[0]["validation"]))


def summary() -> str:
    """One line per data set: ours beside the best published row and the best tuned baseline."""
    headings = {
        "data": "---",
        "auto, d = 64": "---:",
        "the same without walks": "---:",
        "fast, d = 64": "---:",
        "auto, more dimensions": "---:",
        "best": "---:",
        "best published": "---:",
        "best tuned baseline": "---:",
    }
    lines = []
    for name, contestants in ours().items():
        # Where published models were trained on all of training, ours is too.
        kind = REFITTED if f"auto{REFITTED}{ALONE}" in contestants else ""
        own = contestants.get(f"auto{kind}", [])
        alone = contestants.get(f"auto{kind}{ALONE}", [])
        short = contestants.get(f"fast{kind}", [])
        wide = preferred([contestants.get(f"{width}{kind}", []) for width in (WIDE, WIDEST)])
        others = published().get(name, [])
        best = contestants.get("best") or contestants.get(f"best{ALONE}", [])
        remark = ALONE if "best" not in contestants else ""
        printed = ""
        if others:
            first = others[0]
            printed = f"{float(first['ndcg20']):.4f} ({first['model']}, {first['loss']})"
        baselines = {}
        for key, rows in contestants.items():
            if not key.startswith(("auto", "best", "fast")):
                baselines[key] = value(rows)
        rival = ""
        if baselines:
            strongest = max(baselines, key=lambda key: baselines[key])
            rival = f"{baselines[strongest]:.4f} ({strongest})"
        ours_said = [beside(rows, others) for rows in (own, alone, short)]
        ours_said.append(with_dimension(wide, others))
        ours_said.append(with_dimension(best, others, remark))
        lines.append([name, *ours_said, printed, rival])
    return table(headings, lines)


def goals() -> str:
    """What `auto` was to reach, and what it has."""
    headings = {
        "data": "---",
        "64 dimensions: SL@20 with MF, as published": "---:",
        "any dimension: 5 % above the best published": "---:",
        "any dimension: the best tuned baseline": "---:",
    }
    lines = []
    for name, contestants in ours().items():
        if name == "LightGCN-Gowalla":
            # Its test part is not exchangeable with the others; it has a table of its own.
            continue
        others = published().get(name, [])
        small = contestants["auto"]
        widths = [contestants.get(key, []) for key in ("auto", WIDE, WIDEST, "best")]
        chosen = preferred(widths)
        rivals = []
        for key, rows in contestants.items():
            if not key.startswith(("auto", "best", "fast")):
                rivals.append(value(rows))
        above = reached(chosen, 1.05 * float(others[0]["ndcg20"])) if others else ""
        lines.append([name, reached(small, target(others)), above, reached(chosen, max(rivals))])
    return table(headings, lines)


def target(others: list[dict[str, str]]) -> float | None:
    """SL@20 with MF; where it was not published, the best published value."""
    for row in others:
        if (row["loss"], row["model"]) == ("SL@20", "MF"):
            return float(row["ndcg20"])
    return float(others[0]["ndcg20"]) if others else None


def reached(rows: list[dict[str, str]], wanted: float | None) -> str:
    """Whether a value was reached, and by how much."""
    if wanted is None:
        return ""
    share = 100 * (value(rows) / wanted - 1)
    answer = "yes" if share >= 0 else "**no**"
    return f"{answer}, {value(rows):.4f} of {wanted:.4f} ({share:+.1f} %)"


def lightgcn() -> str:
    """Our two columns of LightGCN-Gowalla."""
    headings = {
        "NDCG@20": "---",
        "chosen on validation, trained again on all": "---:",
        "**epoch selected on test**": "---:",
    }
    measured = ours()["LightGCN-Gowalla"]
    others = published()["LightGCN-Gowalla"]
    lines = []
    for said, start, end in (
        ("`auto`, d = 64", "auto", ""),
        ("`auto`, d = 64, without walks", "auto", ALONE),
        ("`auto`, d = 256", WIDE, ""),
        ("`auto`, d = 256, without walks", WIDE, ALONE),
        ("`auto`, d = 512", WIDEST, ""),
        ("`auto`, d = 512, without walks", WIDEST, ALONE),
    ):
        cells = [
            beside(measured.get(f"{start}{kind}{end}", []), others) for kind in (REFITTED, ON_TEST)
        ]
        if any(cells):
            lines.append([said, *cells])
    return table(headings, lines)


def told(chosen: str) -> str:
    """What was chosen, without the settings of what was left out.

    Args:
        chosen: as the rows have it.

    >>> told('{"temperature": 0.0625, "walks": 0.0, "popularity_exponent": 0.2}')
    'temperature 1/16, no walks'
    """
    settings = json.loads(chosen)
    for part, details in SETTINGS_OF.items():
        if settings.get(part) == 0:
            for name in (part, *details):
                settings.pop(name, None)
            settings[f"no {part}"] = ""
    said = []
    for name, setting in settings.items():
        words = name.replace("_", " ")
        if name == "temperature":
            said.append(f"{words} 1/{1 / setting:g}")
        elif isinstance(setting, float):
            said.append(f"{words} {setting:g}")
        else:
            said.append(f"{words} {setting}".strip())
    return ", ".join(said)


def details() -> str:
    """All rows of every data set, the best first."""
    headings = {
        "data": "---",
        "contestant": "---",
        "d": "---:",
        "seeds": "---:",
        "Recall@20": "---:",
        "NDCG@20": "---:",
        "chosen": "---",
    }
    lines = []
    for name, contestants in ours().items():
        found = []
        for contestant, rows in contestants.items():
            chosen = told(rows[0]["chosen"])
            if rows[0]["selected_on_test"] == "True":
                chosen += "; **epoch selected on test**"
            cells = [
                name,
                contestant,
                rows[0]["dimension"],
                len(rows),
                spread(rows, "recall20"),
                spread(rows, "ndcg20"),
                chosen,
            ]
            found.append((value(rows), cells))
        for row in published().get(name, []):
            contestant = f"{row['loss']}, {row['model']}, published ({row['source']})"
            recall, ndcg = float(row["recall20"]), float(row["ndcg20"])
            cells = [name, contestant, "", "", f"{recall:.4f}", f"{ndcg:.4f}", ""]
            found.append((ndcg, cells))
        found.sort(key=lambda pair: -pair[0])
        lines += [cells for _, cells in found]
    return table(headings, lines)


def main() -> None:
    """Write the tables."""
    publish("goals", goals(), PAGE)
    publish("lightgcn", lightgcn(), PAGE)
    publish("summary", summary(), PAGE)
    publish("all", details(), PAGE)


if __name__ == "__main__":
    main()
