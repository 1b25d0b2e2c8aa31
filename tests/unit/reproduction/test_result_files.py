"""Result files: exact columns, merging by several processes, summaries over seeds, rendering."""

import csv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pslrec.reproduction.grid import Choice, Grid
from pslrec.reproduction.layouts import beside, noise_tables, percent, results_tables
from pslrec.reproduction.page import filled, tables_of, write_table
from pslrec.reproduction.reproducing import Places, Reproduction
from pslrec.reproduction.results import COLUMNS, Results, Row, exclusive, row_of
from pslrec.reproduction.summaries import Sample, summarize

DIRECTORY = Path(__file__).resolve().parents[3] / "reproductions" / "psl-neurips-2024"
ISSUE_COLUMNS = (
    "table, dataset, backbone, loss, form, setting, noise, mode, protocol, seed, temperature, learning_rate, weight_decay, "
    "dimension, negatives, ours_recall20, ours_ndcg20, published_recall20, published_ndcg20, published_in, selected_on_test, "
    "best_epoch, seconds, commit"
)


def metrics(recall: float, ndcg: float) -> dict[str, object]:
    return {
        "test": {"recall@20": recall, "ndcg@20": ndcg},
        "selected_on_test": False,
        "best_epoch": 195,
        "trained_epochs": 200,
        "seconds_per_epoch": 1.234,
    }


@pytest.fixture(scope="module")
def grid() -> Grid:
    return Grid(DIRECTORY)


def rows_of(grid: Grid, table: str, values: dict[str, list[float]], **choice: object) -> list[Row]:
    """A row per loss and seed with the NDCG that is given."""
    rows = []
    for loss, ndcgs in values.items():
        seeds = list(range(2024, 2024 + len(ndcgs)))
        cells = grid.cells(table, Choice(losses=[loss], seeds=seeds, **choice))  # type: ignore[arg-type]
        rows += [
            row_of(cell, metrics(2 * ndcgs[cell.seed - 2024], ndcgs[cell.seed - 2024]), "abc1234")
            for cell in cells
        ]
    return rows


def test_rows_have_the_columns_of_the_tables(grid: Grid, tmp_path: Path) -> None:
    assert ", ".join(COLUMNS) == ISSUE_COLUMNS
    results = Results(tmp_path / "results")
    results.add(
        "iid",
        rows_of(grid, "iid", {"psl-relu": [0.0535]}, datasets=["electronic"], backbones=["mf"]),
    )
    with results.path("iid").open(newline="") as file:
        header, values = list(csv.reader(file))
    assert tuple(header) == COLUMNS
    assert ",".join(values) == (
        "iid,Amazon-Electronic,MF,PSL-relu,outside,iid,0.0,sampled,paper,2024,0.1,0.01,0.0,64,1000,0.107,0.0535,"
        "0.0838,0.0541,iid,False,195,247,abc1234"
    )


def test_a_run_has_one_row_and_the_last_one_counts(grid: Grid, tmp_path: Path) -> None:
    results = Results(tmp_path)
    for value in (0.05, 0.06):
        results.add(
            "iid",
            rows_of(grid, "iid", {"sl": [value, value]}, datasets=["health"], backbones=["mf"]),
        )
    assert [(row["seed"], row["ours_ndcg20"]) for row in results.rows("iid")] == [
        ("2024", "0.06"),
        ("2025", "0.06"),
    ]


def test_rows_of_several_writers_are_all_kept(tmp_path: Path) -> None:
    def write(name: str) -> None:
        results = Results(tmp_path)
        for number in range(20):
            row = {"name": name, "number": str(number)}
            results.merge(
                "some",
                [row],
                columns=("name", "number"),
                key=lambda row: (row["name"], row["number"]),
            )

    # A lock belongs to whoever opened the file, so threads exclude each other as processes do.
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, "abc"))
    rows = Results(tmp_path).rows("some")
    assert [(row["name"], int(row["number"])) for row in rows] == [
        (name, n) for name in "abc" for n in range(20)
    ]


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    with (
        exclusive(tmp_path / "lock", wait=False) as first,
        exclusive(tmp_path / "lock", wait=False) as second,
    ):
        assert (first, second) == (True, False)
    with exclusive(tmp_path / "lock", wait=False) as free:
        assert free


def test_seeds_of_a_cell_are_put_together(grid: Grid) -> None:
    rows = rows_of(
        grid,
        "iid",
        {"sl": [0.05, 0.06, 0.07], "bpr": [0.05]},
        datasets=["electronic"],
        backbones=["mf"],
    )
    softmax, bpr = summarize(rows)
    assert (softmax["loss"], softmax.ndcg20.n, softmax.ndcg20.mean) == (
        "SL",
        3,
        pytest.approx(0.06),
    )
    assert softmax.ndcg20.deviation == pytest.approx(0.01)
    assert softmax.published == {"recall20": 0.0821, "ndcg20": 0.0529}
    assert (bpr["loss"], bpr.ndcg20.deviation) == ("BPR", None)


def test_a_printed_number_far_from_all_seeds_is_outside() -> None:
    # Three seeds: 4.30 standard deviations times sqrt(4/3), and half a digit of the fourth decimal.
    sample = Sample({1: 0.0500, 2: 0.0501, 3: 0.0502})
    reach = 4.3027 * 0.0001 * (4 / 3) ** 0.5 + 5e-5
    assert sample.place_of(0.0501 + reach - 1e-7) == "inside"
    assert sample.place_of(0.0501 + reach + 1e-7) == "outside"
    assert Sample({1: 0.05, 2: 0.06}).place_of(0.5) == "unknown"


def test_a_table_shows_ours_beside_the_published_numbers(grid: Grid) -> None:
    values = {"psl-relu": [0.0535], "sl": [0.0522, 0.0523, 0.0524], "psl-tanh": [0.0520]}
    rows = rows_of(grid, "iid", values, datasets=["electronic"], backbones=["mf"])
    (table,) = results_tables(summarize(rows), [], places=["Amazon-Electronic"])
    text = table.markdown()
    assert table.title == "Amazon-Electronic, MF"
    assert (
        "| SL | 0.0821 | 0.0529 | 0.1046 ± 0.0002, +27.4 %, outside | 0.0523 ± 0.0001, -1.1 %, outside |"
        in text
    )
    assert "| PSL-relu | 0.0838 | 0.0541 | 0.1070, +27.7 % | 0.0535, -1.1 % |" in text
    # Best PSL over SL, by the one seed that both have: 0.0535 / 0.0522; printed 0.0541 / 0.0529.
    assert "| **Imp. %** of the best PSL over SL |  | +2.3 % |  | +2.5 % (relu) |" in text
    assert "Imp. is of the seeds that both have" in text
    assert [row[0] for row in table.rows[:3]] == ["SL", "PSL-tanh", "PSL-relu"]
    latex = table.latex()
    assert r"-1.1 \%" in latex
    assert r"$\pm$" in latex
    assert latex.count(r"\\") == len(table.rows) + 1


def test_tables_of_several_settings_say_which_they_are_of(grid: Grid) -> None:
    rows = [
        row
        for table in ("iid", "ood")
        for row in rows_of(grid, table, {"sl": [0.05]}, datasets=["electronic"], backbones=["mf"])
    ]
    tables = results_tables(summarize(rows), [], places=[])
    assert [table.title for table in tables] == [
        "Amazon-Electronic, MF (IID)",
        "Amazon-Electronic, MF (OOD)",
    ]


def test_modes_and_protocols_stand_side_by_side(grid: Grid) -> None:
    both = {"modes": ["sampled", "catalog"], "protocols": ["paper", "strict"]}
    rows = rows_of(grid, "iid", {"sl": [0.05]}, datasets=["health"], backbones=["mf"], **both)
    (table,) = results_tables(summarize(rows), [], places=[])
    assert list(table.header[3::2]) == [
        "Recall@20, sampled, paper",
        "Recall@20, sampled, strict",
        "Recall@20, whole catalogue, paper",
        "Recall@20, whole catalogue, strict",
    ]


def test_noise_tables_have_the_gain_below(grid: Grid) -> None:
    rows = rows_of(grid, "noise", {"sl": [0.02], "psl-relu": [0.022]}, datasets=["electronic"])
    ndcg, recall = noise_tables(summarize(rows), places=[])
    assert (ndcg.header, recall.title[:9]) == (
        ["p", "0.05", "0.1", "0.2", "0.3", "0.5"],
        "Recall@20",
    )
    assert list(ndcg.rows[0][:2]) == ["SL", "0.0200 / 0.0403"]
    assert ndcg.rows[-1][-1] == "+10.0 % / +14.0 %"


def test_the_page_is_filled_between_its_markers_only(grid: Grid, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(
        "before\n<!-- results: iid -->\nold\n<!-- end of results -->\nafter\n<!-- results: ood -->\n<!-- end of results -->\n"
    )
    results = Results(tmp_path / "results")
    results.add("iid", rows_of(grid, "iid", {"sl": [0.05]}, datasets=["health"], backbones=["mf"]))
    write_table(tmp_path, grid, results, "iid")
    text = page.read_text()
    assert text.startswith("before\n<!-- results: iid -->\n\n### Amazon-Health, MF")
    assert "old" not in text
    assert text.endswith("after\n<!-- results: ood -->\n<!-- end of results -->\n")
    write_table(tmp_path, grid, results, "iid")
    assert page.read_text() == text
    assert (results.directory / "iid.tex").read_text().count(r"\begin{table}") == 1
    assert filled("no markers", "iid", "x") == "no markers"


def test_tries_are_left_out_of_the_tables(grid: Grid, tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.add(
        "iid", rows_of(grid, "iid", {"sl": [0.05]}, datasets=["health"], backbones=["mf"], epochs=3)
    )
    assert tables_of(grid, results, "iid") == []
    assert len(tables_of(grid, results, "iid", with_tries=True)) == 1


def test_a_command_shows_the_tables_that_were_chosen_and_writes_all(
    grid: Grid, tmp_path: Path
) -> None:
    (tmp_path / "published").symlink_to(DIRECTORY / "published")
    (tmp_path / "grid.toml").write_text((DIRECTORY / "grid.toml").read_text())
    (tmp_path / "README.md").write_text("<!-- results: iid -->\n<!-- end of results -->\n")
    places = Places(tmp_path, tmp_path / "runs")
    for dataset in ("health", "electronic"):
        places.results().add(
            "iid", rows_of(grid, "iid", {"sl": [0.05]}, datasets=[dataset], backbones=["mf"])
        )
    (shown,) = Reproduction(places, Choice(["health"], ["mf"])).render("iid")
    assert shown.title == "Amazon-Health, MF"
    assert (tmp_path / "README.md").read_text().count("### Amazon-") == 2


def test_the_committed_page_is_what_the_committed_results_give(grid: Grid) -> None:
    page = (DIRECTORY / "README.md").read_text()
    results = Results(DIRECTORY / "results")
    for table in grid.tables():
        body = (
            "\n\n".join(each.markdown() for each in tables_of(grid, results, table))
            or "No runs yet."
        )
        assert filled(page, table, body) == page, (
            f"run `pslrec reproduce {table}` to write the page anew"
        )


def test_small_negative_differences_lose_their_sign() -> None:
    assert (percent(-0.0001), percent(-0.001)) == ("+0.0 %", "-0.1 %")
    assert beside(Sample({1: 0.05}), None) == "0.0500"
