"""The cells of the tables: which there are, their settings in our conventions, what was printed for them."""

from pathlib import Path

import pytest
from pslrec.reproduction.cells import identity_of
from pslrec.reproduction.grid import Choice, Grid
from pslrec.reproduction.results import Results

from pslrec.config import RunConfig
from pslrec.errors import ConfigError

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
        (cell.backbone, cell.loss, cell.dataset) for cell in cells if cell.published.where == "iid"
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
    assert all(cell.published.ndcg is not None for cell in cells)


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
    assert (tanh.settings_from, tanh.published.ndcg) == ("slatk_hyper: PSL", None)


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
    assert (cell.variant, cell.settings["loss.temperature"], cell.published.ndcg) == (
        "popularity",
        0.05,
        0.0149,
    )
    (last,) = grid.cells(
        "ood", Choice(datasets=["electronic"], losses=["psl-relu"], last_epoch=True)
    )
    assert last.setting == "ood, last epoch"
    assert last.settings["training.validate_every"] == last.settings["training.epochs"]
    assert last.identity != cell.identity


def test_noise_takes_the_settings_of_iid_and_its_interpretation(grid: Grid) -> None:
    cells = grid.cells("noise-interpretations", Choice(losses=["sl"]))
    by_setting = {
        (cell.setting, cell.settings["sampling.noise.probability"]): cell for cell in cells
    }
    assert by_setting["noise", 0.05].published.ndcg == 0.0403
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


def test_levels_of_noise_can_be_chosen(grid: Grid) -> None:
    some = Choice(datasets=["electronic"], losses=["sl"], noise=[0.5, 0.05])
    assert sorted(cell.columns()["noise"] for cell in grid.cells("noise", some)) == ["0.05", "0.5"]
    assert grid.cells("iid", some)
    with pytest.raises(
        ConfigError, match=r"`noise` must be of 0.05, 0.1, 0.2, 0.3, 0.5, .* got 0.4"
    ):
        grid.cells("noise", Choice(noise=[0.4]))


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
    assert len({cell.directory(Path("runs")) for cell in cells}) == 12
    assert {cell.columns()["negatives"] for cell in cells} == {"1000", "catalog"}


def test_distinct_negatives_and_other_epochs_are_other_cells(grid: Grid) -> None:
    plain = {"datasets": ["health"], "backbones": ["mf"], "losses": ["sl"]}
    cells = [
        grid.cells("iid", Choice(**plain, **more))[0]
        for more in ({}, {"replacement": False}, {"epochs": 3}, {"epochs": 200})
    ]
    assert [cell.columns()["negatives"] for cell in cells] == [
        "1000",
        "1000 distinct",
        "1000",
        "1000",
    ]
    assert [cell.setting for cell in cells] == ["iid", "iid", "iid, 3 epochs", "iid"]
    assert len({cell.identity for cell in cells}) == 3


def test_rows_that_are_there_are_found_again(grid: Grid) -> None:
    known = Results(DIRECTORY / "results").by_identity(["iid"])
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
        ({"datasets": ["helth"]}, "no data set `helth` in the grid; did you mean `health`"),
        ({"losses": ["xyz"]}, "no loss `xyz` in the grid; there are BPR"),
        ({"backbones": ["lightgnc"]}, "did you mean `lightgcn`"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(
    grid: Grid, choice: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        grid.cells("iid", Choice(**choice))  # type: ignore[arg-type]


def test_a_directory_without_a_grid_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"grid\.toml cannot be read"):
        Grid(tmp_path)
    (tmp_path / "grid.toml").write_text("[settings]\nx = 1\n")
    with pytest.raises(ConfigError, match="is not a grid of cells"):
        Grid(tmp_path)
