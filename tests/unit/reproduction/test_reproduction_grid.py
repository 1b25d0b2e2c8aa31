"""The cells of the tables: which there are, their settings in our conventions, what was printed for them."""

from pathlib import Path

import pytest

from pslrec.config import RunConfig
from pslrec.errors import ConfigError
from pslrec.reproduction import Choice, Grid, Results, find_paper, identity_of, included_papers
from pslrec.reproduction._results import by_identity
from pslrec.reproduction._running import key_of

DIRECTORY = Path(__file__).resolve().parents[3] / "reproductions" / "psl-neurips-2024"


@pytest.fixture(scope="module")
def grid() -> Grid:
    return Grid(DIRECTORY)


def only(grid: Grid, table: str, **choice: object) -> dict[str, object]:
    """The settings of the one cell that is chosen."""
    (cell,) = grid.cells(table, Choice(**choice))  # type: ignore[arg-type]
    return dict(cell.settings)


def test_table_1_has_every_printed_row(grid: Grid) -> None:
    cells = grid.cells("iid", Choice(datasets=["book", "electronic", "movie", "gowalla"]))
    found = {
        (cell.backbone, cell.loss, cell.dataset) for cell in cells if cell.published_in == "iid"
    }
    assert len(found) == 96
    assert len({cell.identity for cell in cells}) == len(cells)


@pytest.mark.parametrize(
    ("table", "n_cells"),
    [("ood", 32), ("noise", 120), ("noise-interpretations", 24), ("softplus", 80), ("forms", 12)],
)
def test_the_other_tables_have_their_cells(grid: Grid, table: str, n_cells: int) -> None:
    cells = grid.cells(table, Choice())
    assert len(cells) == n_cells
    assert all("ndcg20" in cell.published for cell in cells)


@pytest.mark.parametrize(
    "table", ["iid", "ood", "noise", "noise-interpretations", "softplus", "forms"]
)
@pytest.mark.parametrize("mode", ["sampled", "catalog"])
def test_the_settings_of_every_cell_are_a_configuration(grid: Grid, table: str, mode: str) -> None:
    for cell in grid.cells(table, Choice(datasets=["electronic"], modes=[mode])):
        config = RunConfig.from_settings({"data.source": "debian", **cell.settings}).resolved()
        columns = cell.columns()
        assert str(config.training.learning_rate) == columns["learning_rate"]
        temperature = config.loss.options().get(
            "temperature", config.loss.options().get("negative_temperature", "")
        )
        assert str(temperature) == columns["temperature"]


def test_temperatures_are_those_for_half_cosines(grid: Grid) -> None:
    electronic = {"datasets": ["electronic"], "backbones": ["mf"]}
    assert only(grid, "iid", losses=["sl"], **electronic)["loss.temperature"] == 0.1
    assert only(grid, "iid", losses=["psl-relu"], **electronic)["loss.temperature"] == 0.1
    bilateral = only(grid, "iid", losses=["bsl"], **electronic)
    assert (bilateral["loss.positive_temperature"], bilateral["loss.negative_temperature"]) == (
        0.25,
        0.1,
    )


def test_temperatures_of_the_second_paper_are_halved_but_those_of_psl(grid: Grid) -> None:
    health = {"datasets": ["health"], "backbones": ["mf"]}
    assert only(grid, "iid", losses=["sl"], **health)["loss.temperature"] == 0.1
    assert only(grid, "iid", losses=["adv-infonce"], **health)["loss.temperature"] == 0.1
    assert only(grid, "iid", losses=["psl-relu"], **health)["loss.temperature"] == 0.1
    at_k = only(grid, "iid", losses=["sl@20"], **health)
    assert {
        name: at_k[f"loss.{name}"]
        for name in ("name", "k", "temperature", "weight_temperature", "update_every")
    } == {
        "name": "sl@k",
        "k": 20,
        "temperature": 0.1,
        "weight_temperature": 1.25,
        "update_every": 5,
    }


def test_settings_that_were_not_printed_come_from_the_loss_that_stands_in(grid: Grid) -> None:
    chosen = {"datasets": ["gowalla"], "backbones": ["mf"]}
    (softplus,) = [
        cell
        for cell in grid.cells("softplus", Choice(losses=["softplus"], **chosen))
        if cell.setting == "iid"
    ]
    assert softplus.settings_from == "hyper_iid: PSL-tanh"
    assert softplus.settings["loss.temperature"] == 0.05
    (tanh,) = grid.cells("iid", Choice(datasets=["health"], backbones=["mf"], losses=["psl-tanh"]))
    assert (tanh.settings_from, tanh.published) == ("slatk_hyper: PSL-relu", {})


def test_the_weight_of_the_contrast_is_another_on_electronic(grid: Grid) -> None:
    weights = {
        name: only(grid, "iid", datasets=[name], backbones=["xsimgcl"], losses=["sl"])[
            "backbone.contrast_weight"
        ]
        for name in ("electronic", "gowalla")
    }
    assert weights == {"electronic": 0.05, "gowalla": 0.2}


def test_ood_has_its_own_settings_and_split(grid: Grid) -> None:
    (cell,) = grid.cells("ood", Choice(datasets=["electronic"], losses=["psl-relu"]))
    assert (cell.split, cell.settings["loss.temperature"], cell.published["ndcg20"]) == (
        "popularity",
        0.05,
        0.0149,
    )
    last_epoch = {"training.validate_every": 200}
    (last,) = grid.cells(
        "ood", Choice(datasets=["electronic"], losses=["psl-relu"], settings=last_epoch)
    )
    assert last.setting == "ood, training.validate_every 200"
    assert last.settings["training.validate_every"] == last.settings["training.epochs"]
    assert last.identity != cell.identity


def test_noise_takes_the_settings_of_iid_and_its_interpretation(grid: Grid) -> None:
    cells = grid.cells("noise-interpretations", Choice(losses=["sl"]))
    by_setting = {
        (cell.setting, cell.settings["sampling.noise.probability"]): cell for cell in cells
    }
    assert by_setting["noise", 0.05].published["ndcg20"] == 0.0403
    assert (
        by_setting["noise, among all pairs, kept as positives", 0.5].settings[
            "sampling.noise.keep_positives"
        ]
        is True
    )
    assert (
        by_setting["noise, among all pairs, hidden at test", 0.5].settings[
            "sampling.noise.hide_at_test"
        ]
        is True
    )
    assert by_setting["noise", 0.5].settings["loss.temperature"] == 0.1


def test_values_of_any_column_can_be_chosen(grid: Grid) -> None:
    some = Choice(datasets=["electronic"], losses=["sl"], where={"noise": ["0.50", "0.05"]})
    assert sorted(cell.columns()["noise"] for cell in grid.cells("noise", some)) == ["0.05", "0.5"]
    with pytest.raises(ConfigError, match="has no cell of these"):
        grid.cells("iid", some)
    with pytest.raises(ConfigError, match=r"`where` must name a column .* got `noize`"):
        grid.cells("noise", Choice(where={"noize": ["0.4"]}))


def test_seeds_modes_and_protocols_multiply(grid: Grid) -> None:
    choice = Choice(
        ["health"],
        ["mf"],
        ["sl"],
        seeds=[1, 2, 3],
        modes=["sampled", "catalog"],
        protocols=["paper", "strict"],
    )
    cells = grid.cells("iid", choice)
    assert len({cell.identity for cell in cells}) == 12
    assert len({key_of(cell) for cell in cells}) == 12
    assert {cell.columns()["negatives"] for cell in cells} == {"1000", "catalog"}


def test_distinct_negatives_and_other_epochs_are_other_cells(grid: Grid) -> None:
    plain = {"datasets": ["health"], "backbones": ["mf"], "losses": ["sl"]}
    cells = [
        grid.cells("iid", Choice(**plain, **more))[0]
        for more in (
            {},
            {"settings": {"sampling.replacement": False}},
            {"epochs": 3},
            {"epochs": 200},
        )
    ]
    assert [cell.columns()["negatives"] for cell in cells] == [
        "1000",
        "1000 distinct",
        "1000",
        "1000",
    ]
    assert [cell.setting for cell in cells] == [
        "iid",
        "iid, sampling.replacement False",
        "iid, 3 epochs",
        "iid",
    ]
    assert len({cell.identity for cell in cells}) == 3


def test_rows_that_are_there_are_found_again(grid: Grid) -> None:
    known = by_identity(Results(DIRECTORY / "results").rows("iid"))
    cells = grid.cells(
        "iid", Choice(backbones=["mf"], seeds=[2024, 2025, 2026], modes=["sampled", "catalog"])
    )
    found = {cell.identity for cell in cells} & known.keys()
    sampled = {
        identity_of(row)
        for row in known.values()
        if (row["mode"], row["backbone"]) == ("sampled", "MF")
    }
    assert len(sampled) >= 15
    assert {row for row in sampled if "strict" not in row and "1000 distinct" not in row} <= found


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"datasets": ["helth"]}, "no data set `helth` in this paper; did you mean `health`"),
        ({"losses": ["xyz"]}, "no loss `xyz` in this paper; there are BPR"),
        ({"backbones": ["lightgnc"]}, "did you mean `lightgcn`"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(
    grid: Grid, choice: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        grid.cells("iid", Choice(**choice))  # type: ignore[arg-type]


def test_settings_of_the_inside_form_are_those_that_were_found(grid: Grid) -> None:
    inside = Choice(where={"form": ["inside"]}, modes=["catalog"])
    found = {cell.loss: cell.settings["loss.temperature"] for cell in grid.cells("forms", inside)}
    assert found == {"PSL-tanh": 0.1, "PSL-atan": 1.0, "PSL-relu": 0.25}
    with pytest.raises(ConfigError, match="with printed settings"):
        grid.cells("forms", Choice(where={"form": ["inside"]}, modes=["sampled"]))


@pytest.mark.parametrize("name", ["psl-neurips-2024", "slatk-kdd-2025", "lightgcn-splits"])
def test_papers_that_come_with_pslrec_are_found_and_can_be_run(name: str) -> None:
    grid = Grid(find_paper(name))
    assert included_papers()[name] == grid.folder
    for table in grid.paper.tables:
        for cell in grid.cells(table, Choice()):
            RunConfig.from_settings({"data.source": "debian", **cell.settings}).resolved()


def test_cells_of_both_papers_agree_where_their_rows_are_shared() -> None:
    psl, at_k = Grid(find_paper("psl-neurips-2024")), Grid(find_paper("slatk-kdd-2025"))
    seeds = Choice(seeds=[2024, 2025, 2026], modes=["sampled", "catalog"])
    theirs = {}
    for cell in psl.cells("iid", seeds):
        name = "PSL" if cell.loss == "PSL-relu" else cell.loss
        theirs[identity_of(cell.columns() | {"loss": name})] = cell
    ours = {cell.identity: cell for cell in at_k.cells("table2", seeds)}
    rows = by_identity(Results(at_k.folder / "results").rows("table2"))
    assert len(rows) >= 70
    for identity in rows:
        assert ours[identity].settings == theirs[identity].settings


def test_a_folder_without_a_paper_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"neither a folder with a paper\.toml nor a paper"):
        find_paper(str(tmp_path))
    with pytest.raises(ConfigError, match=r"paper\.toml cannot be read"):
        Grid(tmp_path)
    (tmp_path / "paper.toml").write_text("[settings]\nx = 1\n")
    with pytest.raises(ConfigError, match="does not describe a paper"):
        Grid(tmp_path)


def test_names_and_cells_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    text = """
title = "A paper"
datasets = { Ours = "synthetic" }
backbones = { MF = { name = "mf" } }
losses = { SL = { name = "sl" }, Other = { name = "sl" } }
[tables.one]
title = "Table 1"
[[tables.one.parts]]
setting = "iid"
datasets = ["Ours"]
backbones = ["MF"]
losses = ["SL"]
vary = { "training.batch" = [1, 2] }
"""
    (tmp_path / "paper.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"has two cells .* whose settings differ"):
        Grid(tmp_path).cells("one", Choice())
    with pytest.raises(ConfigError, match="no table `two` in this paper; there are one"):
        Grid(tmp_path).cells("two", Choice())
    (tmp_path / "paper.toml").write_text(text.replace('losses = ["SL"]', 'losses = ["BPR"]'))
    with pytest.raises(ConfigError, match="`BPR` is not in section `losses`, only SL, Other"):
        Grid(tmp_path)
