"""The verdicts on claims, from results made up for the purpose."""

from pathlib import Path

import pytest

from pslrec.errors import ConfigError
from pslrec.reporting import verdict_over_seeds
from pslrec.reproduction import Results, _claims
from pslrec.reproduction._claims import ClaimsFile, read_claims, tables
from pslrec.reproduction._published import Row

PAPER = Path(__file__).resolve().parents[3] / "reproductions" / "psl-neurips-2024"
COLUMNS = Results(PAPER / "results").columns
CLAIMS = read_claims(PAPER)
PLACE = {"dataset": "Amazon-Electronic", "backbone": "MF", "mode": "catalog", "protocol": "paper"}


def row(loss: str, seed: int, ndcg: float, recall: float = 0.1, **columns: str) -> Row:
    plain = (
        dict.fromkeys(COLUMNS, "")
        | PLACE
        | {"table": "iid", "setting": "iid", "noise": "0.0", "negatives": "catalog"}
    )
    form = "outside" if loss.startswith("PSL") else ""
    values = {
        "loss": loss,
        "seed": str(seed),
        "ours_ndcg20": str(ndcg),
        "ours_recall20": str(recall),
        "form": form,
    }
    return plain | {"seconds": "1"} | values | columns


def check(results: Results) -> list[Row]:
    assert CLAIMS is not None
    return _claims.check(CLAIMS, results)


def verdicts(results: Results) -> dict[str, str]:
    return {found["claim"]: found["verdict"] for found in check(results)}


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path)


def test_a_steady_gain_holds_and_a_loss_fails(results: Results) -> None:
    results.add("iid", [row("SL", seed, 0.050 + 0.0001 * seed) for seed in (1, 2, 3)])
    results.add(
        "iid",
        [
            row("PSL-relu", seed, 0.051 + 0.0001 * seed, published_ndcg20="0.0541")
            for seed in (1, 2, 3)
        ],
    )
    results.add("iid", [row("PSL-softplus", seed, 0.052 + 0.0001 * seed) for seed in (1, 2, 3)])
    found = verdicts(results)
    assert found["PSL-relu is above SL in NDCG@20 (IID)"] == "holds"
    assert found["SL is above PSL-softplus (IID)"] == "fails"


def test_a_gain_smaller_than_the_noise_is_inside_it(results: Results) -> None:
    results.add(
        "iid", [row("SL", seed, value) for seed, value in ((1, 0.050), (2, 0.052), (3, 0.048))]
    )
    results.add(
        "iid",
        [row("PSL-relu", seed, value) for seed, value in ((1, 0.052), (2, 0.049), (3, 0.050))],
    )
    assert verdicts(results)["PSL-relu is above SL in NDCG@20 (IID)"] == "inside noise"


def test_two_seeds_are_not_enough(results: Results) -> None:
    for loss, value in (("SL", 0.05), ("PSL-relu", 0.06)):
        results.add("iid", [row(loss, seed, value + 0.0001 * seed) for seed in (1, 2)])
    assert verdicts(results)["PSL-relu is above SL in NDCG@20 (IID)"] == "needs seeds"
    judged, unjudged = tables(check(results))
    assert (judged.rows, unjudged.rows[0][2]) == ([], "**needs seeds**")


def test_gains_are_compared_between_metrics_and_settings(results: Results) -> None:
    for seed in (1, 2, 3):
        results.add(
            "iid", [row("SL", seed, 0.05, 0.08), row("PSL-relu", seed, 0.051 + seed * 1e-5, 0.0801)]
        )
        ood = {"table": "ood", "setting": "ood"}
        results.add(
            "ood",
            [row("SL", seed, 0.014, **ood), row("PSL-relu", seed, 0.0149 + seed * 1e-6, **ood)],
        )
    found = {each["claim"]: each for each in check(results)}
    assert found["its gain in NDCG@20 is above that in Recall@20 (IID)"]["verdict"] == "holds"
    shift = found["its gain in the OOD setting is above that in the IID setting"]
    assert shift["verdict"] == "holds"
    # 0.014902 / 0.014 - 1.02 - 0.0004, in percent.
    assert float(shift["value_pct"]) == pytest.approx(
        100 * (0.014902 / 0.014 - 0.05102 / 0.05), abs=0.01
    )


def test_a_gain_of_one_seed_is_not_judged_by_how_that_of_another_setting_scatters(
    results: Results,
) -> None:
    ood = {"table": "ood", "setting": "ood"}
    for seed in (1, 2, 3):
        results.add("iid", [row("SL", seed, 0.05), row("PSL-relu", seed, 0.051 + seed * 1e-5)])
    results.add("ood", [row("SL", 1, 0.014, **ood), row("PSL-relu", 1, 0.0149, **ood)])
    assert (
        verdicts(results)["its gain in the OOD setting is above that in the IID setting"]
        == "needs seeds"
    )


def test_noise_claims_use_the_ends_of_the_range(results: Results) -> None:
    rows = []
    for seed in (1, 2, 3):
        jitter = seed * 1e-5
        for loss, first, last in (
            ("SL", 0.0403, 0.0235),
            ("PSL-relu", 0.0409, 0.0268),
            ("AdvInfoNCE", 0.04, 0.022),
        ):
            for noise, value in (("0.05", first), ("0.5", last)):
                rows.append(
                    row(loss, seed, value + jitter, table="noise", setting="noise", noise=noise)
                )
    results.add("noise", rows)
    found = verdicts(results)
    assert found["its gain grows with noise: at p = 0.5 above that at p = 0.05"] == "holds"
    assert found["its gain at p = 0.5 is above 10 %"] == "holds"
    assert found["AdvInfoNCE falls at least as fast as SL from p = 0.05 to 0.5"] == "holds"


def test_claims_about_noise_say_what_the_other_reading_of_it_gives(results: Results) -> None:
    per_user = {"table": "noise", "setting": "noise"}
    all_pairs = {"table": "noise-interpretations", "setting": "noise, among all pairs"}
    for seed in (1, 2, 3):
        jitter = seed * 1e-6
        results.add("iid", [row("SL", seed, 0.05 + jitter), row("PSL-relu", seed, 0.06 + jitter)])
        for noise, gain, other_gain in (("0.05", 0.01, 0.002), ("0.5", 0.155, 0.092)):
            for columns, share in ((per_user, gain), (all_pairs, other_gain)):
                sl = row("SL", seed, 0.02, noise=noise, **columns)
                relu = row("PSL-relu", seed, 0.02 * (1 + share) + jitter, noise=noise, **columns)
                results.add(columns["table"], [sl, relu])
    found = {each["claim"]: each for each in check(results)}
    above_ten = found["its gain at p = 0.5 is above 10 %"]
    assert (above_ten["verdict"], above_ten["value_pct"], above_ten["other_reading_pct"]) == (
        "holds",
        "5.51",
        "-0.79",
    )
    assert (
        found["its gain grows with noise: at p = 0.5 above that at p = 0.05"]["other_reading_pct"]
        == "9.00"
    )
    assert found["PSL-relu is above SL in NDCG@20 (IID)"]["other_reading_pct"] == ""
    judged_table, *_ = tables(list(found.values()), CLAIMS.note)
    assert judged_table.header[-1] == "other reading"
    assert "drawn among all pairs" in judged_table.notes[0]


def test_one_seed_of_another_loss_is_judged_by_the_noise_of_sl(results: Results) -> None:
    results.add("iid", [row("SL", seed, 0.050 + 0.0001 * seed) for seed in (1, 2, 3)])
    results.add("iid", [row("PSL-softplus", 1, 0.04)])
    found = next(
        each for each in check(results) if each["claim"] == "SL is above PSL-softplus (IID)"
    )
    assert (found["verdict"], found["seeds"]) == ("holds", "3 and 1")


def test_forms_and_other_list_lengths_are_judged(results: Results) -> None:
    for seed in (1, 2, 3):
        outside = row("PSL-tanh", seed, 0.05 + seed * 1e-5, table="forms")
        inside = row("PSL-tanh", seed, 0.04 + seed * 1e-5, table="forms", form="inside")
        results.add("forms", [outside, inside])
        at_five = [
            row(loss, seed, 0.0) | {"k": "5", "recall": "0.1", "ndcg": ndcg}
            for loss, ndcg in (("SL", "0.03"), ("PSL-relu", "0.03"))
        ]
        results.add_cutoffs(at_five)
    found = verdicts(results)
    assert found["PSL-tanh with the temperature outside is above inside"] == "holds"
    assert found["PSL-relu is above SL in NDCG@5 (IID)"] == "inside noise"


def test_tries_and_distinct_negatives_are_no_evidence(results: Results) -> None:
    for seed in (1, 2, 3):
        for loss in ("SL", "PSL-relu"):
            results.add("iid", [row(loss, seed, 0.05, setting="iid, 3 epochs")])
            results.add("iid", [row(loss, seed, 0.05, negatives="1000 distinct")])
    assert check(results) == []
    (table,) = tables([])
    assert table.notes == ["No claim has enough seeds yet."]


def test_published_numbers_go_through_the_same_arithmetic(results: Results) -> None:
    printed = {"SL": "0.0529", "PSL-relu": "0.0541"}
    for loss, value in printed.items():
        results.add("iid", [row(loss, seed, 0.05, published_ndcg20=value) for seed in (1, 2, 3)])
    (found,) = [
        each
        for each in check(results)
        if each["claim"].startswith("PSL-relu is above SL in NDCG@20")
    ]
    assert float(found["published_pct"]) == pytest.approx(100 * (0.0541 / 0.0529 - 1), abs=0.01)
    assert found["verdict"] == "inside noise"


def test_paired_seeds_make_a_steady_difference_visible() -> None:
    noisy = {seed: 0.05 + 0.01 * seed for seed in range(4)}
    better = {seed: value + 0.001 + 1e-5 * seed for seed, value in noisy.items()}
    assert verdict_over_seeds(better, noisy).verdict == "holds"
    shifted = {seed + 10: value for seed, value in better.items()}
    assert verdict_over_seeds(shifted, noisy).verdict == "inside noise"


def checked(results: Results, **claim: object) -> Row:
    (found,) = _claims.check(
        ClaimsFile.model_validate({"claims": [{"text": "x", **claim}]}), results
    )
    return found


def test_a_claim_is_two_cells_a_relation_and_a_threshold(results: Results) -> None:
    for seed in (1, 2, 3):
        jitter = seed * 1e-6
        results.add("iid", [row("SL", seed, 0.050 + jitter), row("BPR", seed, 0.045 + jitter)])
    bpr, sl = ({"loss": loss, "setting": "iid"} for loss in ("BPR", "SL"))
    above = checked(results, first=sl, second=bpr)
    assert (above["verdict"], above["value_pct"]) == ("holds", "11.11")  # 0.050 / 0.045
    assert checked(results, first=sl, second=bpr, unit="first")["value_pct"] == "10.00"
    below = checked(results, first=bpr, second=sl, relation="below")
    assert (below["verdict"], below["value_pct"]) == ("holds", "10.00")  # of SL
    assert checked(results, first=bpr, second=sl)["verdict"] == "fails"
    far = checked(results, first=sl, second=bpr, threshold=0.2)
    assert (far["verdict"], far["value_pct"]) == ("fails", "-8.89")
    gain = checked(results, first=sl, first_over=bpr, threshold=0.1)
    assert (gain["verdict"], gain["value_pct"]) == ("holds", "1.11")


def test_a_cell_may_allow_several_values_of_a_column(results: Results) -> None:
    for seed, mode in ((1, "outside"), (2, "inside")):
        results.add("iid", [row("PSL-relu", seed, 0.05, form=mode)])
    several = {"loss": "PSL-relu", "setting": "iid", "form": ["outside", "inside"]}
    assert checked(results, first=several)["seeds"] == "2"
    assert checked(results, first=several | {"form": "inside"})["seeds"] == "1"


def test_a_file_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    assert read_claims(tmp_path) is None
    (tmp_path / "claims.toml").write_text("[[claims]]\ntext = 'x'\nfirts = { loss = 'SL' }\n")
    with pytest.raises(ConfigError, match="does not hold claims"):
        read_claims(tmp_path)


@pytest.mark.parametrize("name", ["psl-neurips-2024", "slatk-kdd-2025", "lightgcn-splits"])
def test_the_committed_claims_are_what_the_committed_results_give(name: str) -> None:
    folder = PAPER.parent / name
    claims = read_claims(folder)
    assert claims is not None
    results = Results(folder / "results")
    found = _claims.check(claims, results)
    recorded = results.rows("claims")
    assert [{**dict.fromkeys(_claims.COLUMNS, ""), **each} for each in found] == recorded
