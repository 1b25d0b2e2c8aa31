"""The scripts in `reproductions`: what they measure, at a small size, and that the page shows what they recorded."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from pslrec.data import Dataset, Interactions, Vocabulary
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.data.splits import carve_validation, split_by_name
from pslrec.evaluation import EmbeddingScorer
from pslrec.experiment import run
from pslrec.inference._fold_in import PLANS, StepPlan

REPRODUCTIONS = Path(__file__).resolve().parents[2] / "reproductions"
PAGES = REPRODUCTIONS.parent / "docs" / "how-to"
PAGE = PAGES / "new-users.md"
SCRIPTS = (
    "_records",
    "agreement",
    "contrast",
    "epochs",
    "exchangeability",
    "fold_in",
    "pair_order",
    "refit",
    "saturation",
    "selection",
    "warm_start",
)


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    monkeypatch.syspath_prepend(str(REPRODUCTIONS))
    yield {name: importlib.import_module(name) for name in SCRIPTS}
    for name in SCRIPTS:
        sys.modules.pop(name, None)


@pytest.fixture
def log() -> Interactions:
    model = TasteModel(n_topics=4)
    return planted_tastes(150, 80, model=model, with_timestamps=True, seed=3).interactions


@pytest.fixture
def dataset(log: Interactions) -> Dataset:
    return split_by_name(log, "iid")


def test_people_who_choose_are_others_than_those_who_judge(
    scripts: dict[str, ModuleType], dataset: Dataset
) -> None:
    fold_in = scripts["fold_in"]
    fold_in.AT_LEAST = 20
    choosing, judging = (
        fold_in.held_out_users(dataset, fold_in.CHOSEN_BY),
        fold_in.held_out_users(dataset),
    )
    assert len(choosing) == len(judging) == 20
    assert not set(choosing) & set(judging)


def test_plans_are_tried_on_validation_items_alone(
    scripts: dict[str, ModuleType], dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold_in = scripts["fold_in"]
    fold_in.AT_LEAST, fold_in.STEPS, fold_in.TURNS = 20, (1, 3), (0.2,)
    given: list[Dataset] = []
    train = fold_in.run

    def watched(config: Any, *, data: Dataset, out: Path) -> None:
        given.append(data)
        train(config, data=data, out=out)

    monkeypatch.setattr(fold_in, "run", watched)
    rows = list(fold_in.try_plans(dataset, "mf", "sl", epochs=2))
    assert [(row["steps"], row["turn"], row["held_out"]) for row in rows] == [
        (1, 0.2, 20),
        (3, 0.2, 20),
    ]
    assert all(0 < row["validation_ndcg20"] <= 1 for row in rows)
    assert len(given[0].test) == 0
    assert not set(given[0].train.users) & set(fold_in.held_out_users(dataset, fold_in.CHOSEN_BY))


def test_the_plan_of_fewest_steps_close_to_the_best_is_chosen(
    scripts: dict[str, ModuleType],
) -> None:
    values = {("mf", "sl", 5, 0.5): 0.0998, ("mf", "sl", 10, 0.5): 0.1, ("mf", "sl", 5, 0.1): 0.05}
    values |= {
        ("mf", "psl-relu", 5, 0.5): 0.2,
        ("mf", "psl-relu", 10, 0.5): 0.2,
        ("mf", "psl-relu", 5, 0.1): 0.1999,
    }
    names = ("backbone", "loss", "steps", "turn")
    rows = [
        {
            "similarity": "half-cosine",
            **dict(zip(names, cell, strict=True)),
            "validation_ndcg20": value,
        }
        for cell, value in values.items()
    ]
    assert scripts["fold_in"].chosen_plans(rows) == {"half-cosine": StepPlan(5, 0.5)}


def test_the_library_folds_in_by_the_plans_that_were_chosen(scripts: dict[str, ModuleType]) -> None:
    rows = scripts["_records"].read(REPRODUCTIONS / "fold-in" / "choice.csv")
    grid = len(scripts["fold_in"].STEPS) * len(scripts["fold_in"].TURNS)
    assert len(rows) % grid == 0
    assert scripts["fold_in"].chosen_plans(rows) == PLANS
    cosine, product = PLANS["half-cosine"], PLANS["inner-product"]
    assert (
        f"{cosine.n_steps} long steps for losses of cosines, {product.n_steps} short ones"
        in PAGE.read_text()
    )


def test_three_procedures_are_evaluated_under_the_same_protocol(
    scripts: dict[str, ModuleType], dataset: Dataset
) -> None:
    row = scripts["refit"].measure(dataset, "strict", 1, epochs=3)
    assert (row["protocol"], row["evaluated_on"], row["horizon"]) == ("strict", "test", 3)
    assert 1 <= row["epochs"] <= 3
    assert all(0 < row[name] < 1 for name in ("plain", "kept", "squeezed"))
    # Only a schedule that was cut short can be squeezed.
    assert (row["kept"] == row["squeezed"]) == (row["epochs"] == 3)


def test_a_refit_evaluated_on_validation_never_reads_the_test_part(
    scripts: dict[str, ModuleType], dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    refit = scripts["refit"]
    given: list[Dataset] = []

    def watched(config: Any, *, data: Dataset) -> Any:
        given.append(data)
        return run(config, data=data)

    monkeypatch.setattr(refit, "run", watched)
    row = refit.measure(dataset, "strict", 1, evaluated_on="validation", epochs=2)
    assert row["evaluated_on"] == "validation"
    tested = set(dataset.test.to_frame().select("user", "item").iter_rows())
    trained_on = set(dataset.train.to_frame().select("user", "item").iter_rows())
    for data in given:
        used = set(data.whole().to_frame().select("user", "item").iter_rows())
        assert used == trained_on
        assert not used & tested
    first, shorter = given
    assert len(first.test) == len(shorter.test)
    assert len(first.train) == len(shorter.train)


def test_values_of_seeds_are_averaged(scripts: dict[str, ModuleType]) -> None:
    rows = [
        {"data": "d", "protocol": "strict", "evaluated_on": "test", "horizon": 9, "epochs": epochs}
        | {"plain": plain, "kept": kept, "squeezed": plain}
        for epochs, plain, kept in ((2, 0.1, 0.11), (3, 0.3, 0.31))
    ]
    shown = "| d | strict | test | 2 | 2, 3 of 9 | 0.2000 | 0.2100 (+5.0%) | 0.2000 (+0.0%) |"
    assert scripts["refit"].markdown(rows).splitlines()[-1] == shown


@pytest.mark.parametrize("with_times", [True, False])
def test_the_earlier_model_knows_nothing_of_validation(
    scripts: dict[str, ModuleType], log: Interactions, with_times: bool
) -> None:
    if not with_times:
        frame = log.to_frame()
        log = Interactions.from_ids(frame["user"], frame["item"])
    days = scripts["warm_start"].days_of(log)
    assert days.are_times_real == with_times
    pairs = [
        set(part.to_frame().select("user", "item").iter_rows())
        for part in (days.earlier, days.today.train, days.today.validation)
    ]
    assert pairs[0] < pairs[1]
    assert not pairs[1] & pairs[2]
    assert len(days.today.test) == 0


def test_made_up_times_let_users_and_items_arrive(
    scripts: dict[str, ModuleType], log: Interactions
) -> None:
    times = scripts["warm_start"].arrivals(log, seed=0)
    assert ((times >= 0) & (times <= 1)).all()
    late = times > np.quantile(times, 0.9)
    assert set(log.users[late]) - set(log.users[~late]) or set(log.items[late]) - set(
        log.items[~late]
    )


def test_both_starts_are_trained_for_every_number_of_epochs(
    scripts: dict[str, ModuleType], log: Interactions
) -> None:
    warm_start = scripts["warm_start"]
    warm_start.LENGTHS = (1, 2)
    rows = list(
        warm_start.measure(log, "tastes", 1, **{"training.epochs": 2, "backbone.dimension": 8})
    )
    cells = [
        (kind, start, n)
        for kind in ("preset", "random")
        for start in ("warm", "cold")
        for n in (1, 2)
    ]
    assert [(row["kind"], row["start"], row["epochs"]) for row in rows] == cells
    assert all(row["times"] == "real" and 0 < row["validation_ndcg20"] < 1 for row in rows)


def test_the_first_number_of_epochs_that_is_enough_is_named(scripts: dict[str, ModuleType]) -> None:
    values = {
        ("preset", "warm"): (0.199, 0.21),
        ("preset", "cold"): (0.19, 0.2),
        ("random", "warm"): (0.1, 0.15),
    }
    values["random", "cold"] = (0.1, 0.2)
    facts = {
        "data": "d",
        "times": "real",
        "pairs": 9,
        "earlier_pairs": 8,
        "new_users": 1,
        "new_items": 0,
    }
    rows = [
        {
            **facts,
            "seed": seed,
            "kind": kind,
            "start": start,
            "epochs": epochs,
            "validation_ndcg20": value,
        }
        for seed in (1, 2)
        for (kind, start), found in values.items()
        for epochs, value in zip((1, 30), found, strict=True)
    ]
    shown = scripts["warm_start"].markdown(rows)
    assert "1 users and 0 items new; 2 seeds." in shown
    assert shown.splitlines()[-1] == "| enough | 1 | 30 | over 30 | 30 |"


@pytest.mark.parametrize(
    ("name", "path", "page"),
    [
        ("epochs", "epochs", "training.md"),
        ("fold_in", "fold-in", "new-users.md"),
        ("refit", "refit", "new-users.md"),
        ("warm_start", "warm-start", "new-users.md"),
    ],
)
def test_the_page_shows_what_was_recorded(
    scripts: dict[str, ModuleType], name: str, path: str, page: str
) -> None:
    shown = scripts[name].markdown(scripts["_records"].read(REPRODUCTIONS / path / "results.csv"))
    assert (
        f"<!-- {path} results -->\n{shown}\n<!-- end of {path} results -->"
        in (PAGES / page).read_text()
    )


def test_few_steps_an_epoch_give_more_epochs(
    scripts: dict[str, ModuleType], dataset: Dataset
) -> None:
    row = scripts["epochs"].measure(
        dataset, "fixed", **{"sampling.batch_pairs": 16, "backbone.dimension": 4}
    )
    assert row["epochs"] == max(10, -(-1600 // row["steps"])) > 10
    assert 0 < row["after_10"] < 1
    assert 0 < row["after_all"] < 1
    assert row["after_10"] != row["after_all"]


def test_the_epoch_is_chosen_on_test_without_training_on_validation(
    scripts: dict[str, ModuleType], dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    selection = scripts["selection"]
    given: list[Dataset] = []

    def watched(config: Any, *, data: Dataset) -> Any:
        given.append(data)
        return run(config, data=data)

    monkeypatch.setattr(selection, "run", watched)
    quick = {
        "training.epochs": 2,
        "training.validate_every": 1,
        "backbone.dimension": 4,
        "evaluation.protocol": "paper",
    }
    row = selection.measure(dataset, quick)
    assert row["epoch"] in (1, 2)
    (trained,) = given
    assert trained.validation is None
    assert len(trained.train) < len(dataset.train)
    assert len(trained.test) == len(dataset.test)


def test_the_page_of_the_paper_shows_what_selection_explains(
    scripts: dict[str, ModuleType],
) -> None:
    selection, records = scripts["selection"], scripts["_records"]
    rows, chosen = (
        records.read(REPRODUCTIONS / "selection" / "results.csv"),
        records.read(selection.RESULTS),
    )
    shown = selection.markdown(rows, chosen, selection.Grid(selection.PAPER))
    page = (selection.PAPER / "README.md").read_text()
    assert f"<!-- selection results -->\n{shown}\n<!-- end of selection results -->" in page


def test_the_weight_of_the_contrast_is_what_varies(
    scripts: dict[str, ModuleType], dataset: Dataset
) -> None:
    quick = {
        "backbone.name": "xsimgcl",
        "loss.name": "bpr",
        "training.epochs": 2,
        "backbone.dimension": 4,
    }
    rows = [scripts["contrast"].measure(dataset, quick, weight) for weight in (0.05, 5.0)]
    assert [row["contrast_weight"] for row in rows] == [0.05, 5.0]
    assert rows[0]["validation_ndcg20"] != rows[1]["validation_ndcg20"]


def test_the_page_of_the_paper_shows_what_the_contrast_explains(
    scripts: dict[str, ModuleType],
) -> None:
    contrast, records = scripts["contrast"], scripts["_records"]
    (cell,) = contrast.Grid(contrast.PAPER).cells("iid", contrast.CELL)
    shown = contrast.markdown(
        records.read(REPRODUCTIONS / "contrast" / "results.csv"), cell.published
    )
    page = (contrast.PAPER / "README.md").read_text()
    assert f"<!-- contrast results -->\n{shown}\n<!-- end of contrast results -->" in page


def test_the_page_of_exchangeability_shows_what_was_recorded(
    scripts: dict[str, ModuleType],
) -> None:
    script, records = scripts["exchangeability"], scripts["_records"]
    page = script.PAGE.read_text()
    rows = records.read(script.RESULTS)
    alarms = script.alarm_table(records.read(script.FALSE_ALARMS))
    shown = {
        "exchangeability": script.markdown(rows),
        "exchangeability sentences": script.sentences(rows),
        "false alarms": alarms,
    }
    for name, text in shown.items():
        assert f"<!-- {name} results -->\n{text}\n<!-- end of {name} results -->" in page


def test_exchangeability_is_measured_for_the_test_part(
    scripts: dict[str, ModuleType], dataset: Dataset, log: Interactions
) -> None:
    row = scripts["exchangeability"].measure("planted", "iid", dataset)
    assert row["test_pairs"] == len(dataset.test)
    assert row["verdict"] in {"alike", "slight", "unknown"}
    alarms = scripts["exchangeability"].count_alarms("planted", log, n_splits=3)
    assert alarms["splits"] == 3


# implicit advises on threads, which change its speed alone.
@pytest.mark.filterwarnings("ignore:OpenBLAS is configured:RuntimeWarning")
def test_our_baselines_agree_with_those_of_other_libraries(
    scripts: dict[str, ModuleType], dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    agreement = scripts["agreement"]
    pytest.importorskip("irspack")
    pytest.importorskip("implicit")
    monkeypatch.setattr(agreement, "EPOCHS", 2)
    divided = carve_validation(dataset, "paper")
    by_library = {}
    for case in agreement.cases_of("Amazon-Health", divided.train):
        row = agreement.measure("planted", divided, case, case.seeds[0])
        by_library[case.library] = row["ours"] / row["theirs"] - 1
    differ = {"irspack, Cholesky, own start", "irspack, iALS++"}
    for library, difference in by_library.items():
        if library not in differ:
            assert difference == pytest.approx(0, abs=1e-3), library


def test_agreement_is_that_of_the_means_over_seeds(scripts: dict[str, ModuleType]) -> None:
    facts = {"data": "d", "baseline": "ials", "library": "other"}
    rows = []
    for ours, theirs in ((0.1, 0.3), (0.3, 0.2)):
        rows.append({**facts, "ours": ours, "theirs": theirs})
    shown = scripts["agreement"].markdown(rows)
    assert shown.splitlines()[-1] == "| `ials` | other | 0.2000 / 0.2500 (-20.00 %) |"


def test_the_page_of_baselines_shows_what_was_recorded(scripts: dict[str, ModuleType]) -> None:
    agreement = scripts["agreement"]
    shown = agreement.markdown(scripts["_records"].read(agreement.RESULTS))
    page = agreement.PAGE.read_text()
    assert f"<!-- agreement results -->\n{shown}\n<!-- end of agreement results -->" in page


def test_pairs_in_random_order_are_each_trained_on_once(
    scripts: dict[str, ModuleType], dataset: Dataset
) -> None:
    train = dataset.train
    blocks = scripts["pair_order"].PairBlocks(train, batch_pairs=64, seed=3)
    seen = []
    for block in blocks.epoch(1):
        assert block.n_pairs <= 64
        users, items = block.step_pairs()
        seen.append(users.numpy() * train.n_items + items.numpy())
        # What is not in the block is not a negative either.
        assert block.pool.taken is blocks._pool.taken
    assert len(seen) == len(blocks)
    assert np.array_equal(np.sort(np.concatenate(seen)), np.sort(train.pair_keys()))
    again = [np.concatenate(block.step_pairs()) for block in blocks.epoch(1)]
    other = [np.concatenate(block.step_pairs()) for block in blocks.epoch(2)]
    first = next(iter(blocks.epoch(1, first_batch=1))).step_pairs()
    assert np.array_equal(again[1], np.concatenate(first))
    assert not np.array_equal(again[0], other[0])


def test_a_sigmoid_in_single_precision_forgets_the_order_of_high_scores(
    scripts: dict[str, ModuleType],
) -> None:
    high = np.linspace(18, 40, 50)
    low = np.linspace(-3, 9.9, 50)
    scores = torch.tensor(np.concatenate([low, [10.5, 11.0], high])[None], dtype=torch.float32)
    saturated = scripts["saturation"].Saturated(EmbeddingScorer(torch.ones(1, 1), scores.T))
    ranked = saturated.score(np.array([0]))[0]
    # As in single precision: all of these sigmoids are 1, and none of the lower ones are equal.
    assert len(torch.unique(torch.sigmoid(scores[0, 52:]))) == 1
    assert torch.equal(ranked[:50], scores[0, :50])
    assert torch.all(torch.diff(ranked[:52]) > 0)
    assert ranked[52:].min() > ranked[51]
    assert float(ranked[52:].max() - ranked[52:].min()) < scripts["saturation"].TIE_BREAKER
    assert not torch.all(torch.diff(ranked[52:]) > 0)
    assert (saturated.saturated, saturated.scored) == (1, 1)


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(REPRODUCTIONS / "lightgcn-splits" / "scripts"))
    yield importlib.import_module("order")
    sys.modules.pop("order", None)


def divided(walks: list[np.ndarray], n_test: int) -> Dataset:
    """Each user's items in order; the last ones are the test part."""
    n_items = 1 + max(int(walk.max()) for walk in walks)
    vocabularies = (
        Vocabulary(np.arange(len(walks)), kind="user"),
        Vocabulary(np.arange(n_items), kind="item"),
    )
    parts = []
    for piece in (slice(None, -n_test), slice(-n_test, None)):
        items = [walk[piece] for walk in walks]
        users = np.repeat(np.arange(len(walks)), [len(each) for each in items])
        parts.append(Interactions(users, np.concatenate(items), *vocabularies))
    return Dataset(train=parts[0], test=parts[1], name="walks")


def test_the_end_of_a_list_is_nearer_to_what_follows_it(order: ModuleType) -> None:
    n_items = 600
    random = np.random.default_rng(0)
    # Thirty users find all items, twenty each, after five that are known; the others walk anywhere.
    starts = [*range(-5, n_items - 5, 20), *random.integers(n_items, size=150).tolist()]
    walks = [(start + np.arange(31)) % n_items for start in starts]
    walks[0] = np.arange(26)
    found = order.measure(divided(walks, n_test=6))
    place = found["place"].mean(axis=0)
    distance = found["distance"].mean(axis=0)
    control = found["control"].mean(axis=0)
    assert place[-1] > 2 * place[0]
    assert distance[0] > 2 * distance[-1]
    assert control[0] > control[-1]


def test_numbers_out_of_order_are_refused(order: ModuleType) -> None:
    walks = [np.array([1, 2, 0])]
    with pytest.raises(ValueError, match="not numbered in the order"):
        order.measure(divided(walks, n_test=1))


def test_the_page_of_accuracy_shows_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPRODUCTIONS / "accuracy"))
    page = importlib.import_module("page")
    sys.modules.pop("page")
    text = page.PAGE.read_text()
    tables = {"summary": page.summary(), "lightgcn": page.lightgcn(), "all": page.details()}
    for name, shown in tables.items():
        assert f"<!-- {name} results -->\n{shown}\n<!-- end of {name} results -->" in text
