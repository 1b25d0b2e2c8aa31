"""Reports of reproductions: seeds put together, published values beside ours, curves under noise."""

import csv
from pathlib import Path

import pytest

from pslrec.artifacts import ArtifactError
from pslrec.reporting import Gain, Presentation, reproduction_report
from pslrec.reporting._claims import claims_blocks
from pslrec.reporting._document import MISSING, Table
from pslrec.reporting._reproduction import reproduction_document
from pslrec.reporting._results import read_results, results_of

REPOSITORY = Path(__file__).resolve().parents[3]
RESULTS = REPOSITORY / "reproductions" / "psl-neurips-2024" / "results"
PAPER = Presentation(
    tables={"iid": "IID (Table 1)", "noise": "Noise"},
    losses=("BPR", "SL", "PSL-relu", "PSL-softplus"),
    gain=Gain(("PSL-tanh", "PSL-relu"), "SL"),
    other_reading="the value if they are drawn among all pairs",
)


def row(
    loss: str, seed: int, ndcg: float, *, noise: float = 0.0, published: str = "0.2"
) -> dict[str, str]:
    names = "table dataset backbone loss form setting noise mode protocol seed temperature ours_recall20 ours_ndcg20"
    values = [
        "iid",
        "Toys",
        "MF",
        loss,
        "",
        "iid",
        noise,
        "sampled",
        "paper",
        seed,
        0.1,
        ndcg * 2,
        ndcg,
    ]
    found = dict(zip(names.split(), map(str, values), strict=True))
    rest = {"published_recall20": "", "published_ndcg20": published, "selected_on_test": "False"}
    return {**found, **rest, "seconds": "60", "commit": "abc"}


def write(directory: Path, name: str, rows: list[dict[str, str]]) -> None:
    directory.mkdir(exist_ok=True)
    with (directory / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_seeds_of_a_cell_are_put_together():
    (result,) = results_of([row("SL", 1, 0.19), row("SL", 2, 0.20), row("SL", 3, 0.21)])
    assert result.mean("ndcg20") == pytest.approx(0.2)
    assert result.deviation("ndcg20") == pytest.approx(0.01)
    assert result.difference("ndcg20") == pytest.approx(0.0)
    assert result.is_inside_noise("ndcg20") is True
    assert result.difference("recall20") is None


def test_difference_outside_the_seeds_is_told_apart():
    (result,) = results_of(
        [
            row("SL", 1, 0.199),
            row("SL", 2, 0.2),
            row("SL", 3, 0.201),
        ]
    )
    assert result.is_inside_noise("ndcg20") is True
    (result,) = results_of([row("SL", seed, 0.25 + seed / 10_000) for seed in range(3)])
    assert result.is_inside_noise("ndcg20") is False
    (result,) = results_of([row("SL", 1, 0.25)])
    assert result.is_inside_noise("ndcg20") is None


def test_report_shows_published_ours_difference_and_gain(tmp_path):
    rows = [
        row("SL", 1, 0.2),
        row("PSL-relu", 1, 0.22, published="0.21"),
        row("PSL-softplus", 1, 0.26, published="0.24"),
    ]
    write(tmp_path / "results", "iid", rows)
    out = tmp_path / "r.html"
    page = reproduction_report(tmp_path / "results", out, presentation=PAPER).read_text()
    assert "IID (Table 1)" in page
    assert "+4.8 %" in page  # 0.22 / 0.21
    assert "+10.0 %" in page  # 0.22 / 0.2, ours
    assert "+5.0 %" in page  # 0.21 / 0.2, published
    assert "+30.0 %" not in page, "PSL-softplus is none of those the paper proposes"


def test_a_run_that_two_tables_show_is_counted_once(tmp_path):
    for name in ("iid", "softplus"):
        write(
            tmp_path / "results",
            name,
            [{**row("SL", 1, 0.2), "table": name}, {**row("SL", 2, 0.2), "table": name}],
        )
    page = reproduction_report(tmp_path / "results", tmp_path / "r.html").read_text()
    assert "2 runs compared with the published numbers" in page


def test_noise_is_drawn_for_ours_and_published(tmp_path):
    curves = {
        "SL": {0.1: 0.2, 0.3: 0.15, 0.5: 0.1},
        "PSL-relu": {0.1: 0.21, 0.3: 0.16, 0.5: 0.12},
    }
    rows = [
        row(loss, 1, value, noise=p, published=str(value))
        for loss, curve in curves.items()
        for p, value in curve.items()
    ]
    write(tmp_path / "results", "noise", rows)
    out = tmp_path / "r.html"
    page = reproduction_report(tmp_path / "results", out, presentation=PAPER).read_text()
    assert "MF on Toys, iid, sampled, paper: ours" in page
    assert "MF on Toys, iid, sampled, paper: published" in page
    assert "+20.0 % at p = 0.5" in page
    write(tmp_path / "results", "noise", [each for each in rows if each["noise"] != "0.3"])
    page = reproduction_report(tmp_path / "results", out, presentation=PAPER).read_text()
    assert "paper: ours" not in page, "two levels make no curve"


def test_without_a_presentation_nothing_is_compared_and_losses_stay_in_order(tmp_path):
    rows = [row("PSL-relu", 1, 0.22), row("SL", 1, 0.2)]
    document = reproduction_document({"iid": rows})
    (section,) = (each for each in document.sections if each.title == "Iid")
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    assert [cells[0].text for cells in table.rows] == ["PSL-relu", "SL"]


def test_metrics_are_those_that_the_columns_name():
    other = {
        name.replace("ndcg20", "map10"): value
        for name, value in row("SL", 1, 0.2).items()
        if "recall" not in name
    }
    document = reproduction_document({"iid": [other]})
    (section,) = (each for each in document.sections if each.title == "Iid")
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    assert table.columns[2:4] == ["MAP@10", "published"]


def test_tables_of_other_kinds_and_empty_ones_are_no_error(tmp_path):
    write(tmp_path / "results", "claims", [{"claim": "<b>PSL</b> is above SL", "verdict": "holds"}])
    (tmp_path / "results" / "ood.csv").write_text("table,dataset\n")
    page = reproduction_report(tmp_path / "results", tmp_path / "r.html").read_text()
    assert "&lt;b&gt;PSL&lt;/b&gt; is above SL" in page
    assert "No table holds runs" in page


def test_every_backbone_and_data_set_has_a_table_of_its_own_in_the_order_of_the_paper():
    rows = [
        row("PSL-relu", 1, 0.2),
        row("New", 1, 0.3),
        row("BPR", 1, 0.1),
        {**row("SL", 1, 0.2), "backbone": "LightGCN"},
    ]
    (section,) = (
        each
        for each in reproduction_document({"iid": rows}, PAPER).sections
        if each.title == "IID (Table 1)"
    )
    tables = [block for block in section.blocks if isinstance(block, Table)]
    assert [table.caption.partition(":")[0] for table in tables[:2]] == [
        "LightGCN on Toys",
        "MF on Toys",
    ]
    assert [cells[0].text for cells in tables[1].rows] == ["BPR", "PSL-relu", "New"]
    assert tables[1].columns[:2] == ["loss", "seeds"]


def test_claims_are_counted_and_shown_with_their_intervals_those_without_a_verdict_folded():
    claim = dict.fromkeys(
        ("claim", "dataset", "backbone", "mode", "protocol", "published_pct"), "x"
    )
    judged = {
        **claim,
        "verdict": "holds",
        "value_pct": "1.5",
        "low_pct": "0.5",
        "high_pct": "2.5",
        "seeds": "3",
    }
    unjudged = {**judged, "verdict": "needs seeds", "low_pct": "", "high_pct": "", "seeds": "1"}
    tiles, table, folded = claims_blocks([unjudged, judged, unjudged])
    assert [(tile.label, tile.value) for tile in tiles.tiles] == [
        ("Holds", "1"),
        ("Needs seeds", "2"),
    ]
    assert [cells[3].text for cells in table.rows] == ["+0.50 to +2.50"]
    assert folded.summary.startswith("2 more that need")
    assert [cells[3].text for cells in folded.blocks[0].rows] == [MISSING, MISSING]
    assert claims_blocks([{"claim": "x"}]) == []


def test_claims_that_can_be_read_in_two_ways_have_both_values():
    claim = {
        "claim": "its gain at p = 0.5 is above 10 %",
        "dataset": "Toys",
        "backbone": "MF",
        "mode": "catalog",
        "protocol": "paper",
        "verdict": "holds",
        "value_pct": "5.45",
        "low_pct": "3.53",
        "high_pct": "7.36",
        "seeds": "3",
        "published_pct": "4.03",
        "other_reading_pct": "-0.82",
    }
    plain = {**claim, "claim": "PSL-relu is above SL", "other_reading_pct": ""}
    undecided = {**claim, "verdict": "needs seeds"}
    _, table, note, folded = claims_blocks([claim, plain, undecided], PAPER.other_reading)
    assert table.columns[5:] == ["published", "other reading", "where"]
    assert [cells[6].text for cells in table.rows] == ["-0.82", MISSING]
    assert [cells[6].value for cells in folded.blocks[0].rows] == [-0.82]
    assert "drawn among all pairs" in note.text
    (_, without) = claims_blocks([plain])
    assert "other reading" not in without.columns


def test_the_committed_claims_show_the_other_reading_of_the_noise():
    page = reproduction_document({"claims": read_results(RESULTS / "claims.csv")})
    (section,) = (each for each in page.sections if each.title == "Claims of the paper")
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    column = list(table.columns).index("other reading")
    by_claim = {cells[0].text: cells for cells in table.rows}
    gain = by_claim["its gain at p = 0.5 is above 10 %"]
    assert (gain[2].text, gain[column].text) == ("+5.45", "-0.82")


def test_other_readings_of_a_setting_do_not_count_as_misses():
    usual = row("SL", 1, 0.2) | {"published_ndcg20": "0.2"}
    reading = usual | {"setting": "noise, among all pairs", "ours_ndcg20": "0.3"}
    (tiles, *_) = reproduction_document({"iid": [usual, reading]}).sections[0].blocks
    assert [tile.value for tile in tiles.tiles[:3]] == ["2", "1 of 1", "+0.0 %"]


def test_long_tables_are_cut_to_keep_the_file_small(tmp_path):
    write(tmp_path / "results", "iid", [row("SL", seed, 0.2) for seed in range(800)])
    page = reproduction_report(tmp_path / "results", tmp_path / "r.html").read_text()
    assert "the first 300 of 800" in page
    assert len(page) < 1_000_000


def test_directory_without_results_is_refused(tmp_path):
    with pytest.raises(ArtifactError, match="must hold CSV files"):
        reproduction_report(tmp_path, tmp_path / "r.html")
    (tmp_path / "bad.csv").write_bytes(b"\xff\xfe,\n\x00")
    with pytest.raises(ArtifactError, match="cannot be read as CSV"):
        reproduction_report(tmp_path, tmp_path / "r.html")


def test_committed_results_make_a_report(tmp_path):
    page = reproduction_report(RESULTS, tmp_path / "r.html").read_text()
    assert "Amazon-Electronic" in page
    assert len(page) < 1_000_000
