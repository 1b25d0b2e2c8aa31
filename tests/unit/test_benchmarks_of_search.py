"""The search of rivals' settings: it leaves the edge of its grid, has patience, and sees validation data alone."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch

REPOSITORY = Path(__file__).resolve().parents[2]
KEPT = sorted((REPOSITORY / "benchmarks" / "results").glob("*_settings.json"))


@pytest.fixture(autouse=True)
def _benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(REPOSITORY))


@pytest.fixture
def small():
    from benchmarks._data import made_up

    return made_up(60, 40, 600)


def hill(peak: dict[str, float]):
    """Cells whose value falls with the distance from a peak, counted in doublings, and the settings they were asked for."""
    from benchmarks._grid import Cell

    asked = []

    def evaluate(settings: dict[str, float]) -> Cell:
        asked.append(settings)
        distance = sum(abs(math.log2(settings[name] / value)) for name, value in peak.items())
        return Cell(settings, validation=1.0 - 0.01 * distance, epochs=1, is_settled=True)

    return evaluate, asked


@pytest.mark.parametrize(
    "peak", [{"a": 64.0, "b": 1 / 16}, {"a": 1 / 8, "b": 32.0}, {"a": 2.0, "b": 2.0}]
)
def test_search_leaves_a_grid_whose_best_cell_lies_at_its_edge(peak):
    from benchmarks._grid import Ladder, best_of, edges, search

    ladders = [Ladder("a", factor=2), Ladder("b", factor=2)]
    start = [{"a": a, "b": b} for a, b in itertools.product((1.0, 2.0, 4.0), repeat=2)]
    evaluate, _ = hill(peak)
    cells = search(start, ladders, evaluate)
    assert best_of(cells).settings == peak
    assert edges(cells, ladders) == []
    tried = [cell.settings for cell in cells]
    for name, factor in itertools.product(peak, (0.5, 2)):
        assert {**peak, name: peak[name] * factor} in tried


def test_search_follows_a_ridge_on_which_two_settings_make_up_for_each_other():
    from benchmarks._grid import Cell, Ladder, best_of, search

    def evaluate(settings: dict[str, float]) -> Cell:
        across = abs(math.log2(settings["a"] / settings["b"]))
        along = abs(math.log2(settings["a"] * settings["b"]) - 12)
        return Cell(settings, validation=1 - 0.1 * across - 0.01 * along, epochs=1, is_settled=True)

    cells = search([{"a": 1.0, "b": 1.0}], [Ladder("a", factor=2), Ladder("b", factor=2)], evaluate)
    assert best_of(cells).settings == {"a": 64.0, "b": 64.0}


def test_half_steps_find_what_lies_between_two_cells_of_the_grid():
    from benchmarks._grid import Ladder, best_of, search

    evaluate, _ = hill({"a": 4 * math.sqrt(2)})
    ladder = Ladder("a", factor=2)
    coarse = search([{"a": 1.0}], [ladder], evaluate)
    fine = search([], [ladder.finer()], evaluate, known=coarse)
    assert best_of(coarse).settings["a"] in (4.0, 8.0)
    assert best_of(fine).settings["a"] == pytest.approx(4 * math.sqrt(2), rel=1e-5)


def test_search_tries_no_cell_twice_and_none_that_is_known():
    from benchmarks._grid import Ladder, best_of, search

    evaluate, asked = hill({"a": 32.0})
    ladders = [Ladder("a", factor=2)]
    first = search([{"a": 1.0}], ladders, evaluate)
    assert sorted(settings["a"] for settings in asked) == [0.5, 1, 2, 4, 8, 16, 32, 64]
    asked.clear()
    again = search([{"a": 1.0}], ladders, evaluate, known=first)
    assert asked == []
    assert best_of(again) == best_of(first)


def test_a_search_without_a_summit_ends_and_says_that_it_stands_at_an_edge(
    monkeypatch: pytest.MonkeyPatch,
):
    from benchmarks import _grid

    monkeypatch.setattr(_grid, "MOST_CELLS", 12)
    evaluate, asked = hill({"a": 1e9})
    ladders = [_grid.Ladder("a", factor=2)]
    cells = _grid.search([{"a": 1.0}], ladders, evaluate)
    assert len(asked) == 12
    assert _grid.edges(cells, ladders) == ["a"]


def test_a_value_at_the_end_of_its_meaning_is_at_no_edge():
    from benchmarks._grid import Cell, Ladder, best_of, edges, search

    ladders = [Ladder("nu", step=0.25)]
    cells = search(
        [{"nu": 0.5}], ladders, lambda settings: Cell(settings, -settings["nu"], 1, True)
    )
    assert best_of(cells).settings == {"nu": 0.0}
    assert min(cell.settings["nu"] for cell in cells) == 0.0
    assert edges(cells, ladders) == []


def test_going_up_and_down_a_ladder_meets_the_same_cells():
    from benchmarks._grid import Ladder, search

    evaluate, asked = hill({"a": 0.1 * 3**9})
    search([{"a": 0.1}], [Ladder("a", factor=3)], evaluate)
    values = sorted(settings["a"] for settings in asked)
    assert len(values) == 12
    assert all(higher > 2.9 * lower for lower, higher in itertools.pairwise(values))


def test_patience_ends_after_epochs_without_a_rise_and_keeps_the_best():
    from benchmarks._grid import Patience

    patience = Patience(2, limit=100)
    values = [0.1, 0.3, 0.2, 0.4, 0.4, 0.39]
    assert [patience.goes_on(value) for value in values] == [True, True, True, True, True, False]
    assert (patience.best, patience.best_epoch, patience.is_settled) == (0.4, 4, True)


def test_patience_that_meets_its_limit_while_values_rise_is_not_settled():
    from benchmarks._grid import Patience

    patience = Patience(2, limit=3)
    assert [patience.goes_on(value) for value in (0.1, 0.2, 0.3)] == [True, True, False]
    assert (patience.best_epoch, patience.is_settled) == (3, False)


def noisy_scorer(dataset, noise: float):
    """The validation pairs themselves, under noise: quality on demand."""
    from pslrec.evaluation import EmbeddingScorer

    random = np.random.default_rng(0)
    truth = dataset.validation.matrix().toarray().astype(np.float32)
    scores = truth + noise * random.random(truth.shape, dtype=np.float32)
    return EmbeddingScorer(torch.from_numpy(scores), torch.eye(truth.shape[1]))


def test_a_rival_trains_until_validation_stops_rising_and_never_sees_the_test_part(
    small, monkeypatch
):
    from benchmarks import _settings

    from pslrec import evaluation

    noises = [9.0, 3.0, 0.0, 5.0, 5.0, 5.0, 0.0, 0.0]
    epochs, splits = [], []

    def train(interactions, settings, threads, after_epoch):
        assert interactions is small.train
        for noise in noises:
            epochs.append(noise)
            if not after_epoch(lambda noise=noise: noisy_scorer(small, noise)):
                return

    evaluate = evaluation.evaluate

    def watched(*arguments, split, **options):
        splits.append(split)
        return evaluate(*arguments, split=split, **options)

    monkeypatch.setattr(evaluation, "evaluate", watched)
    cell = _settings.try_settings(train, small, {"a": 1.0, "dimension": 2}, {"a": 1.0}, 1)
    assert epochs == noises[: 3 + _settings.PATIENCE]
    assert (cell.epochs, cell.is_settled, cell.settings) == (3, True, {"a": 1.0})
    assert set(splits) == {"validation"}


def test_settings_are_searched_kept_and_taken_up_again(
    small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from benchmarks import _settings

    path, told = tmp_path / "settings.json", []
    kept = _settings.search_settings(small, tell=told.append, kinds=["ease"], path=path)["EASE"]
    assert kept["edges"] == []
    assert kept["validation"] == max(cell["validation"] for cell in kept["tried"])
    assert {"regularization": kept["settings"]["regularization"]} in [
        cell["settings"] for cell in kept["tried"]
    ]
    assert len(told) == len(kept["tried"])
    monkeypatch.setitem(_settings.RIVALS, "ease", None)
    again = _settings.search_settings(small, tell=told.append, kinds=["ease"], path=path)
    assert again == {"EASE": kept}


def test_more_dimensions_start_from_the_choice_of_fewer(
    small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from benchmarks import _settings
    from benchmarks._grid import Cell

    tried = []

    def evaluate(train, dataset, settings, searched, threads):
        tried.append(settings)
        distance = abs(math.log2(settings["alpha"] / 640)) + abs(
            math.log2(settings["regularization"] / 150)
        )
        return Cell(searched, 1 - 0.01 * distance, 1, True)

    monkeypatch.setattr(_settings, "try_settings", evaluate)
    monkeypatch.setattr(_settings, "why_missing", lambda kind: "")
    path = tmp_path / "settings.json"
    kept = _settings.search_settings(small, tell=lambda _: None, kinds=["als"], path=path)
    assert list(kept) == ["implicit ALS, d = 64", "implicit ALS, d = 128", "implicit ALS, d = 256"]
    assert {name: entry["settings"]["alpha"] for name, entry in kept.items()} == dict.fromkeys(
        kept, 640.0
    )
    larger = [settings for settings in tried if settings["factors"] == 128]
    assert larger[0] == {"factors": 128, "alpha": 640.0, "regularization": 150.0}
    assert len(larger) == 9
    # Half steps: 640 times and over the square root of 2.
    assert {round(settings["alpha"]) for settings in larger} == {453, 640, 905}


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_every_kept_choice_is_the_best_of_its_cells_inside_its_grid_and_trained_to_the_end(
    path: Path,
):
    from benchmarks import _settings
    from benchmarks._grid import Cell, best_of, edges

    kept = _settings.load_settings(path)
    assert kept
    for name, entry in kept.items():
        family = _settings.FAMILIES[entry["kind"]]
        cells = [Cell(**values) for values in entry["tried"]]
        best = best_of(cells)
        assert entry["settings"] == family.settings(entry["dimension"], best.settings), name
        assert (entry["validation"], entry["epochs"]) == (best.validation, best.epochs), name
        assert edges(cells, family.half_steps()) == entry["edges"] == [], name
        assert best.is_settled, name
