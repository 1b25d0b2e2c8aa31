"""The paper's sentences as checks on the results, each a number that is claimed to be above 0."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from pslrec.reporting import BySeed, verdict_over_seeds
from pslrec.reproduction.results import Results, Row
from pslrec.reproduction.tabular import TextTable

NAME = "claims"
PLACE = ("dataset", "backbone", "mode", "protocol")
OTHER_READING = "other_reading_pct"
COLUMNS = (
    "claim",
    *PLACE,
    "verdict",
    "value_pct",
    "low_pct",
    "high_pct",
    "seeds",
    "published_pct",
    OTHER_READING,
)
SL, RELU = "SL", "PSL-relu"
SURROGATES = ("PSL-tanh", "PSL-atan", "PSL-relu")
SETTINGS = ("iid", "ood", "noise")
# The paper does not say how false negatives are drawn. The setting `noise` draws them for each user; this one does not.
OTHER_NOISE = "noise, among all pairs"
FIRST_P, LAST_P = 0.05, 0.5
LENGTHS = (5, 10, 50)
MINIMAL_GAIN = 0.10


class Key(NamedTuple):
    """What a value is of."""

    setting: str
    loss: str
    metric: str = "ndcg@20"
    noise: float = 0.0
    form: str = "outside"


Values = Mapping[Key, BySeed]
# A sentence, and the two sides of which the first is claimed to be larger; the second may be nothing, for 0.
Sides = tuple[str, BySeed, BySeed | None]
Claim = Callable[[Values], Iterator[Sides]]


def check(results: Results) -> list[Row]:
    """Every claim in every place that has the runs for it, as rows of `claims.csv`."""
    rows = []
    ours, printed = _evidence(results)
    otherwise = _with_the_other_noise(results)
    for place, values in ours.items():
        expected = _by_sentence(printed.get(place, {}))
        under_the_other_reading = _by_sentence(otherwise.get(place, {}))
        for sentence, first, second in _sides(values):
            found = verdict_over_seeds(first, second)
            low, high = found.interval or (None, None)
            numbers = {
                "value_pct": found.value,
                "low_pct": low,
                "high_pct": high,
                "published_pct": expected.get(sentence),
                OTHER_READING: under_the_other_reading.get(sentence),
            }
            rows.append(
                {"claim": sentence, "verdict": found.verdict, "seeds": found.seeds}
                | dict(zip(PLACE, place, strict=True))
                | {
                    name: "" if number is None else f"{100 * number:.2f}"
                    for name, number in numbers.items()
                }
            )
    return rows


def write(results: Results) -> list[Row]:
    """Check, and write `claims.csv` anew."""
    rows = check(results)
    results.replace(NAME, rows, columns=COLUMNS)
    return rows


def tables(rows: Sequence[Row]) -> list[TextTable]:
    """The checks with a verdict, and below them those that need more seeds for one."""
    open_rows = [row for row in rows if row["verdict"] == "needs seeds"]
    judged_rows = [row for row in rows if row["verdict"] != "needs seeds"]
    counts = Counter(row["verdict"] for row in judged_rows)
    note = (
        f"Of {len(judged_rows)}, {counts['holds']} hold, {counts['fails']} fail, {counts['inside noise']} are inside the noise. "
        "Every number is in percentage points and is claimed to be above 0. A claim holds if the 95 % confidence interval over "
        "seeds is above 0, fails if it is below, and is inside the noise otherwise (t-distribution; seeds paired, or, as in "
        "`3 and 1`, the deviation of the side that has three taken for both). Each is judged by itself: with so many, one or "
        "two may hold or fail by chance. The paper does not say how false negatives are drawn. Verdicts on claims about p are of "
        "draws for each user, the reading that came closest to the published curves, and depend on it: `other reading` has "
        "the value if they are drawn among all pairs."
    )
    found = [
        _table(
            "The paper's claims",
            judged_rows,
            note if judged_rows else "No claim has enough seeds yet.",
        )
    ]
    if open_rows:
        found.append(
            _table(
                "Claims that need three seeds for a verdict",
                open_rows,
                "Numbers as above, of too few runs.",
            )
        )
    return found


def _table(title: str, rows: Sequence[Row], note: str) -> TextTable:
    lines = []
    for row in rows:
        interval = f"{row['low_pct']} to {row['high_pct']}" if row["low_pct"] else ""
        where = ", ".join(row[name] for name in PLACE)
        cells = [row["claim"], where, f"**{row['verdict']}**", row["value_pct"], interval]
        lines.append([*cells, row["seeds"], row["published_pct"], row[OTHER_READING]])
    header = [
        "claim",
        "where",
        "verdict",
        "value",
        "interval",
        "seeds",
        "published",
        "other reading",
    ]
    return TextTable(title, header, lines, [note], labels=3)


def _evidence(
    results: Results,
) -> tuple[dict[tuple[str, ...], dict[Key, BySeed]], dict[tuple[str, ...], dict[Key, BySeed]]]:
    ours: dict[tuple[str, ...], dict[Key, BySeed]] = {}
    printed: dict[tuple[str, ...], dict[Key, BySeed]] = {}
    for row in filter(_is_plain, results.rows_of_runs()):
        place = tuple(row[name] for name in PLACE)
        for metric in ("recall", "ndcg"):
            key = _key(row, f"{metric}@20")
            ours.setdefault(place, {}).setdefault(key, {})[int(row["seed"])] = float(
                row[f"ours_{metric}20"]
            )
            if row[f"published_{metric}20"]:
                printed.setdefault(place, {})[key] = {0: float(row[f"published_{metric}20"])}
    for row in filter(_is_plain, results.rows("cutoffs")):
        place = tuple(row[name] for name in PLACE)
        key = _key(row, f"ndcg@{row['k']}")
        ours.setdefault(place, {}).setdefault(key, {})[int(row["seed"])] = float(row["ndcg"])
    return ours, printed


def _with_the_other_noise(results: Results) -> dict[tuple[str, ...], dict[Key, BySeed]]:
    """NDCG@20 in the noise setting if false negatives are drawn among all pairs."""
    found: dict[tuple[str, ...], dict[Key, BySeed]] = {}
    for row in results.rows_of_runs():
        if row["setting"] == OTHER_NOISE:
            place = tuple(row[name] for name in PLACE)
            key = _key(row | {"setting": "noise"}, "ndcg@20")
            found.setdefault(place, {}).setdefault(key, {})[int(row["seed"])] = float(
                row["ours_ndcg20"]
            )
    return found


def _by_sentence(values: Values) -> dict[str, float]:
    return {
        sentence: verdict_over_seeds(first, second).value
        for sentence, first, second in _sides(values)
    }


def _is_plain(row: Row) -> bool:
    return row["setting"] in SETTINGS and not row["negatives"].endswith("distinct")


def _key(row: Row, metric: str) -> Key:
    return Key(row["setting"], row["loss"], metric, float(row["noise"]), row["form"] or "outside")


def _sides(values: Values) -> Iterator[Sides]:
    for claim in CLAIMS:
        yield from claim(values)


def _shares(over: BySeed | None, base: BySeed | None) -> tuple[BySeed, BySeed] | None:
    """Both sides relative to the mean of the second, so that their difference is a gain."""
    if not over or not base:
        return None
    unit = fmean(base.values())
    first, second = ({seed: value / unit for seed, value in side.items()} for side in (over, base))
    return first, second


def _gain(values: Values, over: Key, base: Key) -> BySeed:
    """Relative gain for every seed that both have."""
    first, second = values.get(over, {}), values.get(base, {})
    return {seed: first[seed] / second[seed] - 1 for seed in first if second.get(seed)}


def _paired(first: BySeed, second: BySeed) -> tuple[BySeed, BySeed] | None:
    """Gains in two settings, of the seeds that both have: how one scatters says nothing about the other."""
    common = first.keys() & second.keys()
    of_first, of_second = (
        {seed: side[seed] for seed in sorted(common)} for side in (first, second)
    )
    return (of_first, of_second) if common else None


def _psl_above_sl(values: Values) -> Iterator[Sides]:
    for setting in ("iid", "ood"):
        sides = _shares(values.get(Key(setting, RELU)), values.get(Key(setting, SL)))
        if sides:
            yield f"PSL-relu is above SL in NDCG@20 ({setting.upper()})", *sides


def _ndcg_gains_more(values: Values) -> Iterator[Sides]:
    gains = [
        _gain(values, Key("iid", RELU, metric), Key("iid", SL, metric))
        for metric in ("ndcg@20", "recall@20")
    ]
    if all(gains):
        yield "its gain in NDCG@20 is above that in Recall@20 (IID)", gains[0], gains[1]


def _ood_gains_more(values: Values) -> Iterator[Sides]:
    shifted, ordinary = (
        _gain(values, Key(setting, RELU), Key(setting, SL)) for setting in ("ood", "iid")
    )
    if sides := _paired(shifted, ordinary):
        yield "its gain in the OOD setting is above that in the IID setting", *sides


def _noise_gain(values: Values, probability: float) -> BySeed:
    return _gain(values, Key("noise", RELU, noise=probability), Key("noise", SL, noise=probability))


def _gain_grows_with_noise(values: Values) -> Iterator[Sides]:
    first, last = (_noise_gain(values, probability) for probability in (FIRST_P, LAST_P))
    if sides := _paired(last, first):
        yield f"its gain grows with noise: at p = {LAST_P} above that at p = {FIRST_P}", *sides
    if last:
        above = {seed: gain - MINIMAL_GAIN for seed, gain in last.items()}
        yield f"its gain at p = {LAST_P} is above 10 %", above, None


def _adversary_falls_too(values: Values) -> Iterator[Sides]:
    falls = []
    for loss in ("AdvInfoNCE", SL):
        gain = _gain(values, Key("noise", loss, noise=LAST_P), Key("noise", loss, noise=FIRST_P))
        falls.append({seed: -share for seed, share in gain.items()})
    if all(falls):
        yield (
            f"AdvInfoNCE falls at least as fast as SL from p = {FIRST_P} to {LAST_P}",
            falls[0],
            falls[1],
        )


def _softplus_below_sl(values: Values) -> Iterator[Sides]:
    levels = sorted({key.noise for key in values if key.setting == "noise"})
    for setting, noise in (("iid", 0.0), ("ood", 0.0), *(("noise", level) for level in levels)):
        sides = _shares(
            values.get(Key(setting, "PSL-softplus", noise=noise)),
            values.get(Key(setting, SL, noise=noise)),
        )
        if sides:
            where = f"{setting.upper()}, p = {noise}" if noise else setting.upper()
            yield f"SL is above PSL-softplus ({where})", sides[1], sides[0]


def _outside_above_inside(values: Values) -> Iterator[Sides]:
    for loss in SURROGATES:
        sides = _shares(values.get(Key("iid", loss)), values.get(Key("iid", loss, form="inside")))
        if sides:
            yield f"{loss} with the temperature outside is above inside", *sides


def _similar_at_other_lengths(values: Values) -> Iterator[Sides]:
    for k in LENGTHS:
        sides = _shares(
            values.get(Key("iid", RELU, f"ndcg@{k}")), values.get(Key("iid", SL, f"ndcg@{k}"))
        )
        if sides:
            yield f"PSL-relu is above SL in NDCG@{k} (IID)", *sides


CLAIMS: tuple[Claim, ...] = (
    _psl_above_sl,
    _ndcg_gains_more,
    _ood_gains_more,
    _gain_grows_with_noise,
    _adversary_falls_too,
    _softplus_below_sl,
    _outside_above_inside,
    _similar_at_other_lengths,
)
