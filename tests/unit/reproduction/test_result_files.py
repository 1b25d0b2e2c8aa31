"""Result files: exact columns, merging by several processes, summaries over seeds, rendering."""

import csv
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pslrec.files import exclusive
from pslrec.reporting import Result, results_of
from pslrec.reproduction import Choice, Grid, Places, Reproduction, Results, TextTable
from pslrec.reproduction._layouts import Layout, compared_value, percent, value_of
from pslrec.reproduction._page import filled, tables_of
from pslrec.reproduction._published import Row
from pslrec.reproduction._results import row_of

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


METRICS = ("recall20", "ndcg20")


def laid_out(grid: Grid, table: str, rows: list[Row]) -> list[TextTable]:
    return Layout(grid, table).tables(results_of(rows))


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
            row_of(
                cell,
                grid.paper.metrics,
                metrics(2 * ndcgs[cell.seed - 2024], ndcgs[cell.seed - 2024]),
                "abc1234",
            )
            for cell in cells
        ]
    return rows


def test_rows_have_the_columns_of_the_tables(grid: Grid, tmp_path: Path) -> None:
    results = Results(tmp_path / "results")
    assert ", ".join(results.columns) == ISSUE_COLUMNS
    results.add(
        "iid",
        rows_of(grid, "iid", {"psl-relu": [0.0535]}, datasets=["electronic"], backbones=["mf"]),
    )
    with results.path("iid").open(newline="") as file:
        header, values = list(csv.reader(file))
    assert tuple(header) == results.columns
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
    softmax, bpr = results_of(rows)
    assert (softmax["loss"], softmax.n_runs) == ("SL", 3)
    assert softmax.mean("ndcg20") == pytest.approx(0.06)
    assert value_of(softmax, "ndcg20") == "0.0600 ± 0.0100"
    assert softmax.published == {"recall20": 0.0821, "ndcg20": 0.0529}
    assert (bpr["loss"], value_of(bpr, "ndcg20")) == ("BPR", "0.0500")


def test_a_printed_number_far_from_all_seeds_is_outside() -> None:
    # Three seeds: 4.30 standard deviations times sqrt(4/3), and half a digit of the fourth decimal.
    reach = 4.3027 * 0.0001 * (4 / 3) ** 0.5 + 5e-5
    three = [0.0500, 0.0501, 0.0502]
    assert shown_beside(three, 0.0501 + reach - 1e-7).endswith(", inside")
    assert shown_beside(three, 0.0501 + reach + 1e-7).endswith(", outside")
    assert shown_beside([0.05, 0.06], 0.5) == "0.0550 ± 0.0071, -89.0 %"


def shown_beside(values: list[float], published: float) -> str:
    by_seed = {str(seed): value for seed, value in enumerate(values)}
    return compared_value(Result({}, {"ndcg20": by_seed}, {"ndcg20": published}), "ndcg20")


def test_a_table_shows_ours_beside_the_published_numbers(grid: Grid) -> None:
    values = {"psl-relu": [0.0535], "sl": [0.0522, 0.0523, 0.0524], "psl-tanh": [0.0520]}
    rows = rows_of(grid, "iid", values, datasets=["electronic"], backbones=["mf"])
    (table,) = laid_out(grid, "iid", rows)
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
    tables = laid_out(grid, "softplus", rows)
    assert [table.title for table in tables] == [
        "Amazon-Electronic, MF (IID)",
        "Amazon-Electronic, MF (OOD)",
    ]


def test_modes_and_protocols_stand_side_by_side(grid: Grid) -> None:
    both = {"modes": ["sampled", "catalog"], "protocols": ["paper", "strict"]}
    rows = rows_of(grid, "iid", {"sl": [0.05]}, datasets=["health"], backbones=["mf"], **both)
    (table,) = laid_out(grid, "iid", rows)
    assert list(table.header[3::2]) == [
        "Recall@20, sampled, paper",
        "Recall@20, sampled, strict",
        "Recall@20, whole catalogue, paper",
        "Recall@20, whole catalogue, strict",
    ]


def test_noise_tables_have_the_gain_below(grid: Grid) -> None:
    rows = rows_of(grid, "noise", {"sl": [0.02], "psl-relu": [0.022]}, datasets=["electronic"])
    ndcg, recall = laid_out(grid, "noise", rows)
    assert (ndcg.header, recall.title[:9]) == (
        ["p", "0.05", "0.1", "0.2", "0.3", "0.5"],
        "Recall@20",
    )
    assert list(ndcg.rows[0][:2]) == ["SL", "0.0200 / 0.0403"]
    assert ndcg.rows[-1][-1] == "+10.0 % / +14.0 %"


def paper_in(folder: Path) -> Reproduction:
    """The paper with other results."""
    for name in ("published", "settings"):
        (folder / name).symlink_to(DIRECTORY / name)
    (folder / "paper.toml").write_text((DIRECTORY / "paper.toml").read_text())
    return Reproduction(Places(folder, folder / "runs"), Choice(["health"], ["mf"]))


def test_the_page_is_filled_between_its_markers_only(grid: Grid, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(
        "before\n<!-- results: iid -->\nold\n<!-- end of results -->\nafter\n<!-- results: ood -->\n<!-- end of results -->\n"
    )
    results = Results(tmp_path / "results")
    results.add("iid", rows_of(grid, "iid", {"sl": [0.05]}, datasets=["health"], backbones=["mf"]))
    reproduction = paper_in(tmp_path)
    reproduction._write_page("iid")
    text = page.read_text()
    assert text.startswith("before\n<!-- results: iid -->\n\n### Amazon-Health, MF")
    assert "old" not in text
    assert text.endswith("after\n<!-- results: ood -->\n<!-- end of results -->\n")
    reproduction._write_page("iid")
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
    (tmp_path / "README.md").write_text("<!-- results: iid -->\n<!-- end of results -->\n")
    reproduction = paper_in(tmp_path)
    for dataset in ("health", "electronic"):
        reproduction.results.add(
            "iid", rows_of(grid, "iid", {"sl": [0.05]}, datasets=[dataset], backbones=["mf"])
        )
    (shown,) = reproduction.render("iid")
    assert shown.title == "Amazon-Health, MF"
    assert (tmp_path / "README.md").read_text().count("### Amazon-") == 2


@pytest.mark.parametrize("name", ["psl-neurips-2024", "slatk-kdd-2025", "lightgcn-splits"])
def test_the_committed_page_is_what_the_committed_results_give(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    shutil.copytree(DIRECTORY.parent / name, folder)
    Reproduction(Places(folder, tmp_path / "runs")).write_pages()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != ".lock":
            recorded = DIRECTORY.parent / name / path.relative_to(folder)
            assert path.read_bytes() == recorded.read_bytes(), (
                f"run `pslrec reproduce reproductions/{name} --render` to write {path.name} anew"
            )


def test_rows_of_a_paper_that_comes_with_pslrec_stay_and_new_ones_go_beside(
    grid: Grid, tmp_path: Path
) -> None:
    below = Results(tmp_path / "below")
    health = {"datasets": ["health"], "backbones": ["mf"]}
    below.add("iid", rows_of(grid, "iid", {"sl": [0.05], "bpr": [0.04]}, **health))
    before = below.path("iid").read_bytes()
    results = Results(tmp_path / "own", below=below)
    results.add("iid", rows_of(grid, "iid", {"sl": [0.06]}, **health))
    values = {row["loss"]: row["ours_ndcg20"] for row in results.rows("iid")}
    assert values == {"BPR": "0.04", "SL": "0.06"}
    assert below.path("iid").read_bytes() == before
    assert len(Results(tmp_path / "own").rows("iid")) == 1
    assert len(results.rows_of_runs()) == 2


def test_a_leaderboard_has_all_backbones_in_one_table_and_what_was_not_run() -> None:
    folder = DIRECTORY.parent / "lightgcn-splits"
    grid = Grid(folder)
    (table,) = tables_of(grid, Results(folder / "results"), "leaderboard")
    assert table.rows[0][:3] == ["BSPM-EM, training-free", "0.1920", "0.1597"]
    assert table.rows[-1][0] == "auto, PSL-relu"
    printed = [float(row[2]) for row in table.rows if row[2]]
    assert printed == sorted(printed, reverse=True)
    assert table.notes[-1] == "Rows without a number of ours have not been run."


def test_what_was_printed_for_a_form_that_was_run_stands_in_its_row(tmp_path: Path) -> None:
    (tmp_path / "published").mkdir()
    printed = "dataset,backbone,loss,form,ndcg20\nOwn,MF,PSL,outside,0.2\nOwn,MF,PSL,inside,0.1\n"
    (tmp_path / "published" / "one.csv").write_text(printed)
    (tmp_path / "paper.toml").write_text("""
title = "A paper"
metrics = ["ndcg@20"]
datasets = { Own = "synthetic" }
backbones = { MF = { name = "mf" } }
losses = { PSL = { name = "psl-relu" } }
[tables.one]
title = "Table 1"
show_unrun = true
[[tables.one.parts]]
setting = "iid"
datasets = ["Own"]
backbones = ["MF"]
losses = ["PSL"]
published = ["one"]
""")
    run = {"dataset": "Own", "backbone": "MF", "loss": "PSL", "form": "outside", "setting": "iid"}
    run |= {"mode": "sampled", "protocol": "paper", "seed": "1", "ours_ndcg20": "0.22"}
    (table,) = laid_out(Grid(tmp_path), "one", [run])
    assert table.rows == [
        ["PSL, inside", "0.1000", ""],
        ["PSL, outside", "0.2000", "0.2200, +10.0 %"],
    ]


def test_gains_are_of_the_best_loss_and_name_it_where_there_are_several(grid: Grid) -> None:
    at_k = Grid(DIRECTORY.parent / "slatk-kdd-2025")
    choice = {"datasets": ["health"], "backbones": ["mf"]}
    rows = rows_of(at_k, "table2", {"sl": [0.1], "sl@k": [0.11]}, **choice)
    table = laid_out(at_k, "table2", rows)[0]
    assert table.rows[-1][0] == "**Imp. %** of SL@20 over SL"
    assert table.rows[-1][-1] == "+10.0 %"


def test_small_negative_differences_lose_their_sign() -> None:
    assert (percent(-0.0001), percent(-0.001)) == ("+0.0 %", "-0.1 %")
