"""How the results of a table are laid out: losses down, ways to make them across, published numbers beside ours."""

from collections.abc import Iterable, Sequence

from pslrec.reporting import ENOUGH_SEEDS, LOSS_ORDER, PROPOSED, TITLES, gain_over
from pslrec.reproduction.results import Row
from pslrec.reproduction.summaries import METRICS, Sample, Summary
from pslrec.reproduction.tabular import TextTable

ORDER = tuple(LOSS_ORDER)
VARIANT_TITLES = {
    "sampled": "sampled",
    "distinct": "sampled without replacement",
    "catalog": "whole catalogue",
}
Variant = tuple[str, str]


def results_tables(
    summaries: Iterable[Summary], significance: Sequence[Row], *, places: Sequence[str]
) -> list[TextTable]:
    """A table per data set and backbone.

    Args:
        summaries: of the cells of a table, those of tries left out.
        significance: rows of `significance.csv`.
        places: data sets in the order to show them.
    """
    groups: dict[tuple[str, str, str], list[Summary]] = {}
    for summary in summaries:
        groups.setdefault((summary["dataset"], summary["backbone"], summary["setting"]), []).append(
            summary
        )
    ordered = sorted(
        groups, key=lambda place: (_position(place[0], places), place[1] != "MF", *place[1:])
    )
    has_settings = len({setting.partition(",")[0] for _, _, setting in groups}) > 1
    return [
        _results_table(_title(*place, has_settings=has_settings), groups[place], significance)
        for place in ordered
    ]


def _title(dataset: str, backbone: str, setting: str, *, has_settings: bool) -> str:
    name, _, rest = setting.partition(",")
    said = setting if rest else name.upper() if has_settings else ""
    return f"{dataset}, {backbone}" + (f" ({said})" if said else "")


def _results_table(title: str, cells: list[Summary], significance: Sequence[Row]) -> TextTable:
    variants = sorted(
        {cell.variant for cell in cells},
        key=lambda variant: (list(VARIANT_TITLES).index(variant[0]), variant),
    )
    has_forms = any(cell["form"] == "inside" for cell in cells)
    header = ["loss", "published Recall@20", "published NDCG@20"]
    for kind, protocol in variants:
        header += [f"{TITLES[metric]}, {VARIANT_TITLES[kind]}, {protocol}" for metric in METRICS]
    rows = []
    for loss, form in sorted(
        {(cell["loss"], cell["form"]) for cell in cells},
        key=lambda name: (_position(name[0], ORDER), name),
    ):
        of_loss = [cell for cell in cells if (cell["loss"], cell["form"]) == (loss, form)]
        printed = next((cell.published for cell in of_loss if cell.published), {})
        row = [f"{loss}, {form}" if has_forms else loss]
        row += [f"{printed[metric]:.4f}" if metric in printed else "" for metric in METRICS]
        for variant in variants:
            found = next((cell for cell in of_loss if cell.variant == variant), None)
            row += (
                ["", ""]
                if found is None
                else [beside(found.ours(metric), printed.get(metric)) for metric in METRICS]
            )
        rows.append(row)
    if not has_forms:
        rows += _improvement_rows(cells, variants, significance)
    notes = [seeds_note(cells)]
    if any(cell.ndcg20.n >= ENOUGH_SEEDS and cell.published for cell in cells):
        notes[0] += (
            " Of three seeds or more, `inside` says that the printed number lies in the 95 % prediction interval of one more run."
        )
    if any(cell.is_selected_on_test for cell in cells):
        notes.append(
            "Where the protocol is `paper`, the epoch was chosen on the test part: the published way without a validation part."
        )
    return TextTable(title, header, rows, notes)


def beside(ours: Sample, printed: float | None) -> str:
    """Our value, its deviation, the difference to the printed one and where that lies.

    >>> beside(Sample({1: 0.1, 2: 0.11, 3: 0.12}), 0.121)
    '0.1100 ± 0.0100, -9.1 %, inside'
    """
    text = f"{ours.mean:.4f}" + ("" if ours.deviation is None else f" ± {ours.deviation:.4f}")
    if printed is None:
        return text
    place = ours.place_of(printed)
    return f"{text}, {percent(ours.mean / printed - 1)}" + (
        "" if place == "unknown" else f", {place}"
    )


def percent(share: float) -> str:
    """With sign and one decimal.

    >>> percent(0.0234)
    '+2.3 %'
    """
    # Adding 0 takes the sign off a negative zero.
    return f"{round(100 * share, 1) + 0.0:+.1f} %"


def seeds_note(cells: Iterable[Summary]) -> str:
    """How many seeds there are."""
    counts = sorted({cell.ndcg20.n for cell in cells})
    if counts == [1]:
        return "One seed."
    said = f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    return f"{said}; ± is the standard deviation from seed to seed." + (
        "" if len(counts) == 1 else " Imp. is of the seeds that both have."
    )


def _improvement_rows(
    cells: list[Summary], variants: list[Variant], significance: Sequence[Row]
) -> list[list[str]]:
    printed = {
        cell["loss"]: {0: cell.published["ndcg20"]} for cell in cells if "ndcg20" in cell.published
    }
    row = ["**Imp. %** of the best PSL over SL", "", _improvement(printed)[0]]
    users = ["p of Imp., paired t-test over users", "", ""]
    seeds = ["p of Imp., paired t-test over seeds", "", ""]
    for variant in variants:
        ours = {cell["loss"]: cell.ndcg20.by_seed for cell in cells if cell.variant == variant}
        text, best = _improvement(ours)
        chosen = next(
            (cell for cell in cells if cell.variant == variant and cell["loss"] == best), None
        )
        test = _tested(chosen, significance) if chosen is not None else {}
        row += ["", text and f"{text} ({best.removeprefix('PSL-')})"]
        users += ["", test.get("users_t_test", "")]
        seeds += ["", test.get("seeds_t_test", "")]
    rows = [row, users, seeds]
    return [row for row in rows if any(row[1:])]


def _improvement(values: dict[str, dict[int, float]]) -> tuple[str, str]:
    """Of the best of the three PSL over SL, and which it is."""
    gains = {
        loss: gain_over(by_seed, values.get("SL", {}))
        for loss, by_seed in values.items()
        if loss in PROPOSED
    }
    known = {loss: gain for loss, gain in gains.items() if gain is not None}
    if not known:
        return "", ""
    best = max(known, key=lambda loss: known[loss])
    return percent(known[best]), best


def _tested(cell: Summary, significance: Sequence[Row]) -> Row:
    names = ("table", "dataset", "backbone", "setting", "noise", "mode", "protocol", "negatives")
    for row in significance:
        if (
            row["metric"] == "ndcg20"
            and row["second"] == cell["loss"]
            and all(row[n] == cell[n] for n in names)
        ):
            return row
    return {}


def _position(name: str, order: Sequence[str]) -> int:
    return list(order).index(name) if name in order else len(order)


def noise_tables(summaries: Iterable[Summary], *, places: Sequence[str]) -> list[TextTable]:
    """A table per data set, metric and way to make it: losses down, probabilities across, ours and then the published value."""
    groups: dict[tuple[str, str, Variant], list[Summary]] = {}
    for summary in summaries:
        groups.setdefault((summary["dataset"], summary["backbone"], summary.variant), []).append(
            summary
        )
    ordered = sorted(groups, key=lambda place: (_position(place[0], places), place[1:]))
    return [
        _noise_table(place, groups[place], metric)
        for place in ordered
        for metric in reversed(METRICS)
    ]


def _noise_table(place: tuple[str, str, Variant], cells: list[Summary], metric: str) -> TextTable:
    dataset, backbone, (kind, protocol) = place
    levels = sorted({float(cell["noise"]) for cell in cells})
    names = sorted(
        {(cell["loss"], cell["setting"]) for cell in cells},
        key=lambda name: (_position(name[0], ORDER), name[1]),
    )
    rows = []
    found = {(cell["loss"], cell["setting"], float(cell["noise"])): cell for cell in cells}
    for loss, setting in names:
        row = [loss + (f" ({setting.partition(', ')[2]})" if "," in setting else "")]
        for level in levels:
            cell = found.get((loss, setting, level))
            row.append("" if cell is None else _pair(cell.ours(metric), cell.published.get(metric)))
        rows.append(row)
    for setting in sorted({setting for _, setting in names}):
        gains = [_gain(found, setting, level, metric) for level in levels]
        extra = f" ({setting.partition(', ')[2]})" if "," in setting else ""
        rows += [[f"**Imp. %** of PSL-relu over SL{extra}", *gains]] if any(gains) else []
    title = f"{TITLES[metric]}: {dataset}, {backbone}, {VARIANT_TITLES[kind]}, {protocol}"
    printed = "Ours, then the published value. " if any(cell.published for cell in cells) else ""
    notes = [printed + seeds_note(cells)]
    return TextTable(title, ["p", *(f"{level:g}" for level in levels)], rows, notes)


def _pair(ours: Sample, printed: float | None) -> str:
    text = f"{ours.mean:.4f}" + ("" if ours.deviation is None else f" ± {ours.deviation:.4f}")
    return text if printed is None else f"{text} / {printed:.4f}"


def _gain(
    found: dict[tuple[str, str, float], Summary], setting: str, level: float, metric: str
) -> str:
    first, second = (found.get((loss, setting, level)) for loss in ("SL", "PSL-relu"))
    if first is None or second is None:
        return ""
    gain = gain_over(second.ours(metric).by_seed, first.ours(metric).by_seed)
    if gain is None:
        return ""
    text = percent(gain)
    if metric in first.published and metric in second.published:
        text += f" / {percent(second.published[metric] / first.published[metric] - 1)}"
    return text
