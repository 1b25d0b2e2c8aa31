"""`pslrec reproduce` on made-up data that stand in for Amazon-Health: run, stop, go on, never twice, render."""

import csv
import io
import re
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import Command, Disk, Terminal
from rich.console import Console

from pslrec.cli import _reproduce_progress as reproduce_progress
from pslrec.cli._reproduce_progress import CellsProgress
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.data._writing import write_dataset
from pslrec.data.splits import split_by_name
from pslrec.files._places import is_temporary
from pslrec.reproduction import Choice, Places, Reproduction, Task
from pslrec.reproduction._running import key_of
from pslrec.studies import BudgetSpent, _works
from pslrec.studies import Cell as StudyCell
from pslrec.training import CheckpointSaved, TrainingInterrupted

DIRECTORY = Path(__file__).resolve().parents[2] / "reproductions" / "psl-neurips-2024"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data")
    interactions = planted_tastes(n_users=80, n_items=60, model=TasteModel(n_topics=4)).interactions
    write_dataset(split_by_name(interactions, "iid"), directory / "split")
    with zipfile.ZipFile(directory / "amazon2014-health.zip", "w") as archive:
        for file in (directory / "split").iterdir():
            archive.write(file, file.name)
    return directory


@pytest.fixture
def places(tmp_path: Path, data: Path) -> Places:
    folder = tmp_path / "paper"
    for name in ("published", "settings"):
        shutil.copytree(DIRECTORY / name, folder / name)
    shutil.copy(DIRECTORY / "claims.toml", folder)
    paper = (DIRECTORY / "paper.toml").read_text()
    paper = paper.replace(
        '"backbone.dimension" = 64', '"backbone.dimension" = 8\n"sampling.batch_pairs" = 256'
    )
    (folder / "paper.toml").write_text(paper)
    (folder / "README.md").write_text("# Ours\n\n<!-- results: iid -->\n<!-- end of results -->\n")
    return Places(folder, tmp_path / "runs" / "paper", data)


@pytest.fixture
def reproduce(pslrec: Command, places: Places, monkeypatch: pytest.MonkeyPatch) -> Command:
    where = ("--runs", places.runs.parent, "--data-dir", places.data)
    monkeypatch.setenv("XDG_CACHE_HOME", str(places.runs))
    monkeypatch.delenv("PSLREC_DATA_DIR", raising=False)
    return lambda *arguments: pslrec("reproduce", places.folder, *arguments, *where)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_cells_run_once_and_are_rendered(
    reproduce: Command, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = (
        "iid",
        "--datasets",
        "health",
        "--backbones",
        "mf",
        "--losses",
        "sl,psl-relu",
        "--mode",
        "catalog",
    )
    first = reproduce(*health, "--seeds", "1,2,3", "--epochs", 2)
    assert first.code == 0, first.err
    found = rows(places.runs / "apart" / "iid.csv")
    assert [(row["loss"], row["seed"], row["negatives"]) for row in found] == [
        (loss, seed, "catalog") for loss in ("PSL-relu", "SL") for seed in "123"
    ]
    assert {row["setting"] for row in found} == {"iid, 2 epochs"}
    assert "6 cells: 6 done" in first.err
    assert "Amazon-Health, MF (iid, 2 epochs)" in first.out
    assert (places.runs / "report.html").stat().st_size > 10_000
    assert {row["k"] for row in rows(places.runs / "apart" / "cutoffs.csv")} == {
        "5",
        "10",
        "20",
        "50",
        "100",
    }
    assert not (places.folder / "results").exists()

    def never(*_arguments: object, **_options: object) -> None:
        raise AssertionError("a finished cell was run again")

    monkeypatch.setattr(_works, "run", never)
    again = reproduce(*health, "--seeds", "1,2,3", "--epochs", 2)
    assert again.code == 0
    assert rows(places.runs / "apart" / "iid.csv") == found
    # A run that is complete gives its row without being run, should the row be gone.
    (places.runs / "apart" / "iid.csv").unlink()
    assert reproduce(*health, "--seeds", "1,2,3", "--epochs", 2).code == 0
    assert rows(places.runs / "apart" / "iid.csv") == found


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.95])
def test_a_full_disk_is_one_sentence_and_the_same_command_goes_on(
    reproduce: Command, places: Places, share: float
) -> None:
    arguments = (
        "iid",
        "--datasets",
        "health",
        "--backbones",
        "mf",
        "--losses",
        "sl",
        "--mode",
        "catalog",
    )
    arguments = (*arguments, "--seeds", "1,2", "--epochs", "1")
    disk = Disk()
    with disk.used():
        assert reproduce(*arguments).code == 0
    shutil.rmtree(places.runs)
    full = Disk()
    full.room = int(disk.n_calls * share)
    with full.used():
        outcome = reproduce(*arguments)
    assert outcome.code == 2, outcome.err
    assert "Traceback" not in outcome.err
    assert "cannot be written: no space left on device; make room" in outcome.err.splitlines()[-1]
    assert not [path for path in places.runs.rglob("*") if is_temporary(path.name)]
    again = reproduce(*arguments)
    assert again.code == 0, again.err
    assert len(rows(places.runs / "apart" / "iid.csv")) == 2


def told(reproduction: Reproduction, progress: CellsProgress, text: io.StringIO) -> list[str]:
    """What stands in a log whenever a cell begins."""
    found = []

    def watch(tasks: Sequence[Task]) -> None:
        progress.show(tasks)
        if any(task.state == "running" and task.share == 0 for task in tasks):
            found.append(text.getvalue())

    with progress:
        reproduction.run("iid", watch)
    return [*found, text.getvalue()]


def test_a_log_gets_a_line_as_soon_as_a_cell_is_finished(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Colours may be forced where there is no terminal, as CI jobs do; lines stay lines.
    monkeypatch.setenv("FORCE_COLOR", "1")
    grid = places.folder / "paper.toml"
    grid.write_text(
        grid.read_text().replace('name = "llpauc"', 'name = "llpauc"\nvariant = "unheard-of"')
    )
    log = io.StringIO()
    choice = Choice(
        ["health", "movie"], ["mf"], ["sl", "bpr", "llpauc"], modes=["catalog"], epochs=1
    )
    told_at_starts = told(
        Reproduction(places, choice), CellsProgress(Console(file=log, width=40)), log
    )
    assert [text.count("\n") for text in told_at_starts] == [2, 3, 4]
    first, *lines = log.getvalue().splitlines()
    assert re.fullmatch(r"6 cells: 3 left, 3 without data; about \d+:\d\d left", first)
    number = r"0\.\d{4}"
    printed = {"SL": ("0.1719", "0.1261"), "BPR": ("0.1627", "0.1234")}
    for place, line in enumerate(lines, 1):
        what = re.match(
            rf"{place}/3 (done|failed): Amazon-Health, MF, ([\w-]+), iid, 1 epochs, catalog, paper, seed 2024: ",
            line,
        )
        assert what is not None, line
        assert (", about " in line) == (place < 3)
        if what[2] == "LLPAUC":
            assert (what[1], "`variant` must be" in line) == ("failed", True)
            continue
        recall, ndcg = printed[what[2]]
        result = (
            rf"Recall@20 {number} \(published {recall}\), NDCG@20 {number} \(published {ndcg}\)"
        )
        assert re.match(result, line[what.end() :]), line

    again = io.StringIO()
    told(Reproduction(places, choice), CellsProgress(Console(file=again)), again)
    assert again.getvalue().startswith("6 cells: 2 done, 1 left, 3 without data")
    assert again.getvalue().count("\n") == 2, "what was finished before is counted, not told again"


def test_a_log_says_now_and_then_how_far_a_long_cell_is(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduce_progress, "SECONDS_BETWEEN_LINES", -1.0)
    log = io.StringIO()
    choice = Choice(["health"], ["mf"], ["sl"], modes=["catalog"], epochs=2)
    told(Reproduction(places, choice), CellsProgress(Console(file=log)), log)
    assert (
        "Amazon-Health, MF, SL, iid, 2 epochs, catalog, paper, seed 2024: 50 %, about "
        in log.getvalue()
    )


def test_a_terminal_gets_a_table_and_no_lines(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    choice = Choice(["health"], ["mf"], ["sl"], modes=["catalog"], epochs=1)
    told(
        Reproduction(places, choice),
        CellsProgress(Console(file=screen, width=160, color_system=None)),
        screen,
    )
    assert "1 cell: 1 running" in screen.getvalue()
    assert "1/1 done" not in screen.getvalue()


def test_a_plan_says_what_would_run_and_changes_nothing(
    reproduce: Command, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    some = ("iid", "--backbones", "mf", "--mode", "catalog", "--epochs", 1)
    assert reproduce(*some, "--datasets", "health", "--losses", "sl").code == 0
    before = {path: path.stat().st_mtime_ns for path in places.runs.rglob("*")}
    plan = reproduce(*some, "--datasets", "health,movie", "--losses", "sl,bpr", "--dry-run")
    assert plan.code == 0, plan.err
    states = {line.split("  ")[0].rstrip(): line for line in plan.out.splitlines()[1:]}
    assert "done   " in states["Amazon-Health, MF, SL, iid, 1 epochs, catalog, paper, seed 2024"]
    assert re.search(
        r"left +about \d+:\d\d",
        states["Amazon-Health, MF, BPR, iid, 1 epochs, catalog, paper, seed 2024"],
    )
    assert (
        "without data" in states["Amazon-Movie, MF, SL, iid, 1 epochs, catalog, paper, seed 2024"]
    )
    assert "4 cells: 1 done, 1 left, 2 without data; about " in plan.err
    assert {path: path.stat().st_mtime_ns for path in places.runs.rglob("*")} == before


def test_a_stopped_cell_goes_on_where_it_stopped(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = Choice(["health"], ["mf"], ["sl"], modes=["catalog"], epochs=4)
    whole = Reproduction(Places(places.folder, places.runs / "whole", places.data), choice)
    (expected,) = whole.run("iid")
    real = _works.run

    def stopped(config, **options):  # type: ignore[no-untyped-def]
        config = config.from_settings({"training.checkpoint_seconds": 0.0}, base=config)
        seen = []

        def listen(event: object) -> None:
            seen.append(isinstance(event, CheckpointSaved))
            if sum(seen) == 7:
                raise TrainingInterrupted("stopped")

        return real(config, **{**options, "listeners": [*options["listeners"], listen]})

    reproduction = Reproduction(places, choice)
    monkeypatch.setattr(_works, "run", stopped)
    with pytest.raises(TrainingInterrupted):
        reproduction.run("iid")
    assert reproduction.results.rows("iid") == []
    monkeypatch.setattr(
        _works,
        "run",
        lambda config, **options: real(
            config.from_settings({"training.checkpoint_seconds": 0.0}, base=config), **options
        ),
    )
    (task,) = reproduction.run("iid")
    assert (task.state, task.message) == ("done", expected.message)


def test_a_cell_of_another_process_is_left_to_it(places: Places) -> None:
    choice = Choice(["health"], ["mf"], ["sl", "bpr"], modes=["catalog"], epochs=1)
    reproduction = Reproduction(places, choice)
    study = reproduction._study()
    cells = []
    for cell in reproduction.grid.cells("iid", choice):
        if cell.loss == "SL":
            cells.append(StudyCell(key_of(cell), cell.columns()))
    study.add(cells)
    with study.hold(0):
        states = {task.cell.loss: task.state for task in reproduction.run("iid")}
    assert states == {"SL": "busy", "BPR": "done"}


def test_what_can_not_be_run_is_told_and_does_not_stop_the_rest(
    reproduce: Command, places: Places
) -> None:
    grid = places.folder / "paper.toml"
    grid.write_text(
        grid.read_text().replace('name = "llpauc"', 'name = "llpauc"\nvariant = "unheard-of"')
    )
    done = reproduce(
        "iid",
        "--datasets",
        "health,movie",
        "--backbones",
        "mf",
        "--losses",
        "llpauc,bpr",
        "--epochs",
        1,
    )
    assert done.code == 1
    assert "4 cells: 1 done, 1 failed, 2 without data" in done.err
    assert "`variant` must be" in done.err
    assert "pslrec data fetch amazon-movie" in done.err


def test_a_table_takes_over_what_another_has(places: Places) -> None:
    choice = Choice(["health"], ["mf"], ["psl-tanh"], modes=["catalog"], epochs=1)
    reproduction = Reproduction(places, choice)
    reproduction.run("iid")
    (softplus,) = [
        task for task in reproduction.run("softplus") if task.cell.setting.startswith("iid")
    ]
    assert softplus.state == "done"
    assert [row["table"] for row in reproduction.results.rows("softplus")] == ["softplus"]
    assert not [row for row in reproduction.results.rows("cutoffs") if row["table"] == "softplus"]


def test_the_popularity_split_is_made_where_it_is_missing(places: Places) -> None:
    made = places.provision().path("amazon-health", "popularity")
    assert made == str((places.runs / "data" / "amazon2014-health-popularity").resolve())
    assert (Path(made) / "test.tsv").is_file()
    assert places.provision().path("amazon-health", "popularity") == made


def test_data_sets_and_claims_are_tables_too(reproduce: Command, places: Places) -> None:
    done = reproduce("datasets")
    assert done.code == 0
    assert "Amazon-Book (2014) is not here" in done.err
    assert [row["dataset"] for row in rows(places.folder / "results" / "datasets.csv")] == [
        "Amazon-Health"
    ]
    assert (places.folder / "results" / "datasets.tex").exists()


def test_a_finished_table_has_page_latex_significance_and_claims(
    reproduce: Command, places: Places
) -> None:
    grid = places.folder / "paper.toml"
    grid.write_text(grid.read_text().replace('"training.epochs" = 200', '"training.epochs" = 2'))
    health = (
        "--datasets",
        "health",
        "--backbones",
        "mf",
        "--losses",
        "sl,psl-relu",
        "--mode",
        "catalog",
    )
    done = reproduce("iid", *health, "--seeds", "1,2,3")
    assert done.code == 0, done.err
    results = places.folder / "results"
    assert {row["setting"] for row in rows(results / "iid.csv")} == {"iid"}
    ndcg, recall = rows(results / "significance.csv")
    assert (ndcg["metric"], recall["metric"]) == ("ndcg20", "recall20")
    for test in (ndcg, recall):
        assert (test["first"], test["second"], test["n_users"], test["n_seeds"]) == (
            "SL",
            "PSL-relu",
            "80",
            "3",
        )
        assert all(
            0 <= float(test[name]) <= 1
            for name in ("users_t_test", "users_wilcoxon", "seeds_t_test")
        )
    page = (places.folder / "README.md").read_text()
    assert f"| p of Imp., paired t-test over users |  |  |  | {ndcg['users_t_test']} |" in page
    assert r"\begin{tabular}{lrrrr}" in (results / "iid.tex").read_text()
    # Significance over users outlives the run directories.
    shutil.rmtree(places.runs)
    assert reproduce("iid", *health, "--seeds", "1,2,3").code == 0
    assert rows(results / "significance.csv") == [ndcg, recall]
    reproduction = Reproduction(places, Choice())
    assert {row["table"] for row in reproduction.results.rows_of_runs()} == {"iid"}
    (claims,) = reproduction.claims()
    assert [line[0] for line in claims.rows][:1] == ["PSL-relu is above SL in NDCG@20 (IID)"]
    assert len(claims.rows) == 5


def test_what_is_recorded_can_be_run_again_beside_the_record(
    reproduce: Command, places: Places
) -> None:
    grid = places.folder / "paper.toml"
    grid.write_text(grid.read_text().replace('"training.epochs" = 200', '"training.epochs" = 2'))
    cell = (
        "iid",
        "--datasets",
        "health",
        "--backbones",
        "mf",
        "--losses",
        "sl",
        "--mode",
        "catalog",
    )
    assert reproduce(*cell).code == 0
    shutil.rmtree(places.runs)
    record = places.folder / "results" / "iid.csv"
    before = {path: path.read_bytes() for path in (record, places.folder / "README.md")}

    known = reproduce(*cell)
    assert "1 already recorded, not run; --again runs them, too" in known.err
    assert f"results: {record}" in known.err

    again = reproduce(*cell, "--again")
    assert again.code == 0, again.err
    label = "Amazon-Health, MF, SL, iid, catalog, paper, seed 2024"
    assert f"{label}: as recorded, to the last digit" in again.err
    assert len(rows(places.runs / "apart" / "iid.csv")) == 1
    assert {path: path.read_bytes() for path in before} == before

    ours = rows(record)[0]["ours_ndcg20"]
    record.write_text(record.read_text().replace(ours, "0.90000"))
    differing = reproduce(*cell, "--again")
    assert f"NDCG@20 {ours}, recorded 0.90000" in differing.err


def test_cells_without_data_are_unfinished(reproduce: Command) -> None:
    done = reproduce("iid", "--datasets", "movie", "--backbones", "mf", "--losses", "sl")
    assert done.code == 1
    assert "amazon2014-movie.zip" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("iid", "--mode", "all"), "`--mode` must be sampled, catalog or both, got `all`"),
        (("iid", "--budget", "soon"), "`--budget` must be a time such as 90min or 2h, got `soon`"),
        (("iid", "--seeds", "one"), "`--seeds` must be whole numbers"),
        (
            ("iid", "--budget", "soon", "--dry-run"),
            "`--budget` must be a time such as 90min or 2h, got `soon`",
        ),
        (("ood", "--losses", "psl-rleu"), "did you mean `psl-relu`"),
        (
            ("ood", "--datasets", "health"),
            "its data sets are Amazon-CD, Amazon-Electronic, Gowalla, Yelp2018",
        ),
        (("noise", "--where", "noise=0.4"), "has no cell of these"),
        (("noise", "--where", "p=0.5"), "`where` must name a column of the results"),
        (("noise", "--where", "noise"), "`--where` must be COLUMN=VALUE,..., got `noise`"),
        (("table1",), "there is no table `table1` in this paper; there are iid, ood"),
        (("--losses", "psl-rleu"), "did you mean `psl-relu`"),
    ],
)
def test_wrong_options_are_one_sentence(
    reproduce: Command, arguments: tuple[str, ...], message: str
) -> None:
    done = reproduce(*arguments)
    assert (done.code, message in done.err) == (2, True)


def test_the_budget_ends_the_command_between_cells(places: Places) -> None:
    choice = Choice(["health"], ["mf"], ["bpr"], epochs=1)
    reproduction = Reproduction(places, choice, budget=0.0)
    with pytest.raises(BudgetSpent, match="the same command resumes"):
        reproduction.run("iid")
    assert reproduction.results.rows("iid") == []


def test_a_paper_that_comes_with_pslrec_is_found_by_name_and_stays_as_it_is(
    pslrec: Command, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = pslrec("reproduce")
    assert listed.code == 0
    for name in ("psl-neurips-2024", "slatk-kdd-2025", "lightgcn-splits"):
        assert name in listed.out
    before = {path: path.read_bytes() for path in DIRECTORY.rglob("*") if path.is_file()}
    monkeypatch.setattr("pslrec.reproduction._paper.COLLECTIONS", [places.folder.parent])
    shutil.copytree(DIRECTORY / "results", places.folder / "results")
    recorded = (places.folder / "results" / "iid.csv").read_bytes()
    paper = places.folder / "paper.toml"
    text = paper.read_text().replace('"backbone.dimension" = 8', '"backbone.dimension" = 64')
    paper.write_text(text.replace('"training.epochs" = 200', '"training.epochs" = 1'))
    some = ("--datasets", "health", "--backbones", "mf", "--losses", "sl,bpr", "--mode", "catalog")
    where = ("--runs", places.runs.parent, "--data-dir", places.data)
    done = pslrec("reproduce", "paper", "iid", *some, "--seeds", "2024,7", *where)
    assert done.code == 0, done.err
    assert "4 cells: 4 done" in done.err
    assert "2 already recorded, not run" in done.err
    added = rows(places.runs / "results" / "iid.csv")
    assert {(row["loss"], row["seed"]) for row in added} == {("SL", "7"), ("BPR", "7")}
    assert "2 to 4 seeds" in done.out or "seeds; ±" in done.out
    assert (places.folder / "results" / "iid.csv").read_bytes() == recorded
    assert {path: path.read_bytes() for path in before} == before
    assert pslrec("reproduce", "nothing").code == 2


def test_without_a_table_all_that_have_such_cells_are_run_and_claims_follow(
    reproduce: Command, places: Places
) -> None:
    some = ("--datasets", "health", "--losses", "psl-tanh", "--backbones", "mf")
    plan = reproduce(*some, "--dry-run")
    assert plan.code == 0, plan.err
    # Table 1 alone lists Health.
    assert "1 cell: 1 left" in plan.err
    done = reproduce(*some, "--mode", "catalog", "--epochs", 1)
    assert done.code == 0, done.err
    assert "1 cell: 1 done" in done.err
    assert "The paper's claims" in done.out


def test_two_workers_share_the_cells(reproduce: Command, places: Places) -> None:
    some = ("iid", "--datasets", "health", "--backbones", "mf", "--losses", "sl,bpr")
    done = reproduce(*some, "--mode", "catalog", "--seeds", "1,2", "--epochs", 1, "--workers", 2)
    assert done.code == 0, done.err
    assert len(rows(places.runs / "apart" / "iid.csv")) == 4


def test_the_page_is_written_anew_from_rows(reproduce: Command, places: Places) -> None:
    shutil.copytree(DIRECTORY / "results", places.folder / "results")
    assert reproduce("--render").code == 0
    assert "### Amazon-Electronic, MF" in (places.folder / "README.md").read_text()


def test_a_paper_may_have_other_metrics_and_data_of_its_own(
    pslrec: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    (folder / "published").mkdir(parents=True)
    interactions = planted_tastes(n_users=80, n_items=60, model=TasteModel(n_topics=4)).interactions
    interactions.to_frame().write_csv(folder / "log.csv")
    (folder / "published" / "one.csv").write_text("loss,recall10,ndcg10\nSL,0.2,0.1\n")
    (folder / "README.md").write_text("<!-- results: one -->\n<!-- end of results -->\n")
    (folder / "paper.toml").write_text("""
title = "Another paper"
metrics = ["recall@10", "ndcg@10"]
datasets = { Own = "log.csv" }
backbones = { MF = { name = "mf" } }
losses = { SL = { name = "sl" }, Ours = { name = "psl-relu" } }
improvement = { of = ["Ours"], over = "SL" }
[settings]
"training.epochs" = 1
"evaluation.k" = [10]
"backbone.dimension" = 8
"sampling.negatives" = "catalog"
[tables.one]
title = "Table 1"
[[tables.one.parts]]
setting = "iid"
datasets = ["Own"]
backbones = ["MF"]
losses = ["SL", "Ours"]
published = ["one"]
""")
    done = pslrec("reproduce", folder, "--runs", tmp_path / "runs", "--seeds", "1,2,3")
    assert done.code == 0, done.err
    page = (folder / "README.md").read_text()
    assert "| loss | published Recall@10 | published NDCG@10 |" in page
    assert "| SL | 0.2000 | 0.1000 | 0." in page
    metrics = {row["metric"] for row in rows(folder / "results" / "significance.csv")}
    assert metrics == {"recall10", "ndcg10"}
    assert all(row["n_users"] for row in rows(folder / "results" / "significance.csv"))
    report = pslrec("report", folder, "--out", tmp_path / "r.html")
    assert report.code == 0, report.err
    assert "NDCG@10" in (tmp_path / "r.html").read_text()
