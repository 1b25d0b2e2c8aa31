"""The cells of a search, and how long they are trained."""

import pytest

from pslrec.config import RunConfig
from pslrec.errors import ConfigError
from pslrec.losses import LOSSES
from pslrec.tuning import default_grid, grid_cells, halving_rounds
from pslrec.tuning.schedule import epochs_ahead


@pytest.mark.parametrize("loss", [*LOSSES.names(), "psl-relu@20"])
def test_every_loss_has_a_grid_of_its_own_that_makes_cells(loss):
    config = RunConfig.from_settings({"loss.name": loss})
    grid = default_grid(config)
    assert "training.learning_rate" in grid
    ends = {name: (values[0], values[-1]) for name, values in grid.items()}
    assert len(grid_cells(config, ends)) == 2 ** len(grid)


def test_inside_form_is_searched_up_to_temperature_1():
    config = RunConfig.from_settings({"loss.name": "psl-tanh", "loss.form": "inside"})
    assert max(default_grid(config)["loss.temperature"]) == 1.0


def test_key_of_a_cell_depends_on_its_configuration_alone():
    grid = {"loss.temperature": [0.1, 0.2], "training.learning_rate": [0.1, 0.01]}
    cells = grid_cells(RunConfig(), grid)
    wider = grid_cells(
        RunConfig(), {"training.learning_rate": [1.0, 0.1, 0.01], "loss.temperature": [0.2, 0.1]}
    )
    assert len({cell.key for cell in cells}) == 4
    assert {cell.key for cell in cells} < {cell.key for cell in wider}
    spelt_out = RunConfig.from_settings({"loss.form": "outside", "backbone.dimension": 64})
    assert [cell.key for cell in grid_cells(spelt_out, grid)] == [cell.key for cell in cells]
    another_seed = RunConfig.from_settings({"training.seed": 1})
    assert {cell.key for cell in grid_cells(another_seed, grid)}.isdisjoint(
        cell.key for cell in cells
    )


def test_a_value_given_twice_is_one_cell():
    assert len(grid_cells(RunConfig(), {"loss.temperature": [0.1, 0.1]})) == 1


@pytest.mark.parametrize(
    "name", ["data.split_seed", "evaluation.protocol", "sampling.noise.probability"]
)
def test_what_changes_the_judgement_can_not_be_searched(name):
    with pytest.raises(ConfigError, match="judged on different data"):
        grid_cells(RunConfig(), {name: [0, 1]})


def test_a_bad_value_anywhere_is_refused_before_anything_is_trained():
    with pytest.raises(ConfigError, match="`temperature` must be positive"):
        grid_cells(RunConfig(), {"loss.temperature": [0.1, -1.0]})
    with pytest.raises(ConfigError, match="no value"):
        grid_cells(RunConfig(), {"loss.temperature": []})


@pytest.mark.parametrize("n_cells", [1, 2, 7, 60])
@pytest.mark.parametrize(("epochs", "every"), [(200, 5), (4, 2), (1, 1), (30, 7)])
def test_halving_ends_with_whole_runs_and_costs_less(n_cells, epochs, every):
    rounds = halving_rounds(n_cells, epochs, validate_every=every)
    lengths = [each.epochs for each in rounds]
    assert lengths == sorted(set(lengths))
    assert lengths[-1] == epochs
    assert all(length % every == 0 for length in lengths[:-1])
    assert min(each.n_kept for each in rounds) >= 1
    assert epochs_ahead(rounds, n_cells) <= n_cells * epochs
    if len(rounds) > 1:
        assert epochs_ahead(rounds, n_cells) < n_cells * epochs


def test_halving_by_one_is_refused():
    with pytest.raises(ConfigError, match="at least 2"):
        halving_rounds(3, 10, validate_every=1, factor=1)
