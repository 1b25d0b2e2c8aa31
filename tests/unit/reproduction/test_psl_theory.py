"""The theory measured on a trained model, against loops and autograd; Figures 1a and 1b."""

import math
import re
import shutil
import sys
from pathlib import Path

import polars as pl
import pytest
import torch

from pslrec.artifacts import ArtifactError
from pslrec.config import RunConfig
from pslrec.errors import ConfigError
from pslrec.experiment import run
from pslrec.losses import SURROGATES, PairwiseSoftmaxLoss, SoftmaxLoss
from pslrec.reporting import standalone_svg
from pslrec.reporting._axes import Axis
from pslrec.reporting._charts import bar_chart

SCRIPTS = Path(__file__).resolve().parents[3] / "reproductions" / "psl-neurips-2024" / "scripts"
sys.path.insert(0, str(SCRIPTS))
import figures  # noqa: E402 - scripts of the paper's folder
import theory  # noqa: E402
from model_scores import (  # noqa: E402
    HELD_OUT,
    PLANTED,
    SYNTHETIC_SETTINGS,
    TRUTH,
    UserScores,
    read_scores,
    run_names,
)
from theory_measures import (  # noqa: E402
    ABOVE,
    HARDEST,
    SHOWN,
    bounds,
    gradient_weights,
    hardest,
    robustness,
    weight_shares,
)

sys.path.remove(str(SCRIPTS))
FAMILY = ("tanh", "atan", "relu")


@pytest.fixture(scope="module")
def user():
    generator = torch.Generator().manual_seed(3)
    scores = torch.rand(150, generator=generator, dtype=torch.float64) - 0.5
    positives = torch.tensor([4, 17, 90, 149])
    weights = torch.ones(150, dtype=torch.float64)
    weights[positives] = 0.0
    return UserScores(0, scores, positives, weights, {PLANTED: torch.tensor([0, 5])})


def small_run(directory, **settings):
    small = {"backbone.dimension": 8, "training.epochs": 2, "training.validate_every": 2}
    run(RunConfig.from_settings({**SYNTHETIC_SETTINGS, **small, **settings}), out=directory)
    return directory


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("runs") / "small")


@pytest.fixture(scope="module")
def model(path):
    return read_scores(path, most_users=20)


def test_bounds_are_those_of_a_loop(user):
    found = bounds(user, 0.1)
    scores, positives = user.scores.tolist(), user.positives.tolist()
    ranks = [sum(other >= scores[item] for other in scores) for item in positives]
    assert found["dcg"] == pytest.approx(
        -math.log(sum(1 / math.log2(1 + r) for r in ranks)) + math.log(4)
    )
    assert found["mrr"] == pytest.approx(-math.log(sum(1 / r for r in ranks) / 4))
    assert found["mean_log_rank"] == pytest.approx(sum(math.log(r) for r in ranks) / 4)
    softmax = (
        sum(
            math.log(sum(math.exp((other - scores[i]) / 0.1) for other in scores))
            for i in positives
        )
        / 4
    )
    relu = (
        sum(math.log(sum((1 + other - scores[i]) ** 10 for other in scores)) for i in positives) / 4
    )
    assert found["SL"] == pytest.approx(softmax)
    assert found["PSL-relu"] == pytest.approx(relu)


@pytest.mark.parametrize("temperature", [0.005, 0.1, 0.25])
def test_bounds_of_a_trained_model_are_in_the_order_of_the_paper(model, temperature):
    for user in model.users:
        found = bounds(user, temperature)
        assert found["dcg"] <= found["mrr"] <= found["mean_log_rank"] + 1e-9
        for name in FAMILY:
            assert found["mean_log_rank"] <= found[f"PSL-{name}"] + 1e-9
            assert found[f"PSL-{name}"] <= found["SL"] + 1e-9
        assert found["SL"] < min(found["PSL-softplus"], found["PSL-exp-exp"])


def test_differences_do_not_depend_on_how_many_are_made_at_a_time(user):
    assert torch.equal(torch.cat(list(user.differences(3))), torch.cat(list(user.differences())))


@pytest.mark.parametrize("surrogate", SHOWN)
def test_gradient_weights_are_the_gradient_of_the_loss(user, surrogate):
    negatives = user.scores[user.weights > 0].clone().requires_grad_()
    loss = SoftmaxLoss(0.1) if surrogate == "exp" else PairwiseSoftmaxLoss(surrogate, 0.1)
    loss(user.scores[user.positives], negatives.expand(4, -1)).backward()
    differences = next(user.differences())
    found = gradient_weights(SURROGATES[surrogate](), differences, 0.1, user.weights).mean(dim=0)
    torch.testing.assert_close(found[user.weights > 0], negatives.grad)
    assert float(found[user.positives].abs().max()) == 0.0


def test_gradient_weights_stay_finite_at_the_lowest_temperature(user):
    for surrogate in SHOWN:
        found = gradient_weights(
            SURROGATES[surrogate](), next(user.differences()), 0.005, user.weights
        )
        assert bool(torch.isfinite(found).all())


def test_shares_of_groups_add_up(user):
    shares = weight_shares(user, "relu", 0.1)
    differences = next(user.differences())
    weights = gradient_weights(SURROGATES["relu"](), differences, 0.1, user.weights)
    assert shares[PLANTED].share == pytest.approx(float(weights[:, [0, 5]].sum() / weights.sum()))
    assert shares[PLANTED].share_by_number == pytest.approx(2 / 146)
    assert shares[ABOVE].share == pytest.approx(
        float(weights[differences >= 0].sum() / weights.sum())
    )
    assert shares[HARDEST].share_by_number == pytest.approx(1 / 146)
    both = shares[HARDEST].plus(shares[HARDEST])
    assert both.share == pytest.approx(shares[HARDEST].share)


def test_hardest_negatives_are_no_positives(user):
    (found,) = hardest(user).tolist()
    allowed = [place for place in range(150) if place not in user.positives.tolist()]
    assert found == max(allowed, key=lambda place: float(user.scores[place]))


def test_less_weight_goes_above_the_positive_with_psl_than_with_softmax(model):
    for user in model.users:
        softmax = weight_shares(user, "exp", 0.1)[ABOVE].share
        assert all(
            weight_shares(user, name, 0.1)[ABOVE].share <= softmax + 1e-12 for name in FAMILY
        )


@pytest.mark.parametrize("surrogate", SHOWN)
@pytest.mark.parametrize("temperature", [0.025, 0.25])
def test_robustness_finds_the_temperature_back_from_the_radius(user, surrogate, temperature):
    found = robustness(next(user.differences())[0], surrogate, temperature)
    assert 0 < found.radius < math.log(150)
    assert found.n_effective == pytest.approx(150 * math.exp(-found.radius))
    assert found.temperature == pytest.approx(temperature, rel=1e-4)
    assert found.dual == pytest.approx(found.worst_case, abs=1e-9)


def test_scores_of_a_run_know_its_false_negatives_and_their_chances(model):
    with_planted = [user for user in model.users if len(user.groups[PLANTED])]
    assert with_planted
    for user in model.users:
        assert set(user.groups) == {HELD_OUT, PLANTED, TRUTH}
        assert float(user.weights.sum()) == pytest.approx(1.0)
        assert float(user.weights[user.positives].sum()) == 0.0
        assert not set(user.positives.tolist()) & set(user.groups[TRUTH].tolist())
        assert float(user.scores.abs().max()) <= 0.5
    for user in with_planted:
        assert float(user.weights[user.groups[PLANTED]].sum()) == pytest.approx(0.1)


def test_theory_is_written_as_tables_figures_and_a_page(path, tmp_path):
    without_noise = small_run(
        tmp_path / "runs" / "plain", **{"sampling.noise.probability": 0.0, "loss.name": "sl"}
    )
    written = theory.write(tmp_path, [without_noise, path], most_users=5)
    names = {file.name for file in written}
    assert {
        "theory-bounds.csv",
        "theory-gaps.csv",
        "theory-robustness.csv",
        "theory-weights.csv",
        "theory.md",
    } <= names
    assert {
        "theory-gaps.svg",
        "theory-gaps-by-temperature.svg",
        "theory-weight-planted.svg",
    } <= names
    gaps = pl.read_csv(tmp_path / "theory-gaps.csv")
    assert gaps["below_dcg"].sum() == 0
    assert gaps.filter(pl.col("loss") == "PSL-relu")["tighter_than_sl"].min() == 1.0
    page = (tmp_path / "theory.md").read_text()
    assert "none lies below the bound" in page
    assert set(re.findall(r"\((.*?\.svg)\)", page)) == {
        name for name in names if name.endswith(".svg")
    }
    assert "| sl on synthetic | 0.1 |" in page
    assert "| psl-relu on synthetic, p = 0.1 | 0.1 |" in page


def test_runs_that_are_alike_have_the_names_of_their_directories(path, tmp_path):
    copied = shutil.copytree(path, tmp_path / "another")
    assert run_names([path, copied]) == ["small", "another"]


def test_a_long_title_takes_several_lines():
    title = "A title of words enough that one line can not hold them all, so it takes another"
    drawing = standalone_svg(bar_chart(title, "", [("a", 1.0)], axis=Axis("value")))
    lines = re.findall(r'<text [^>]*class="heading">(.*?)</text>', drawing)
    assert " ".join(lines) == title
    assert len(lines) == 2
    assert max(map(len, lines)) <= 50


def test_runs_of_the_same_name_are_refused(path, tmp_path):
    with pytest.raises(ConfigError, match="different names"):
        theory.write(tmp_path, [path, path])


def test_a_run_that_is_not_finished_is_refused(path, tmp_path):
    (tmp_path / "format").write_text((path / "format").read_text())
    with pytest.raises(ArtifactError, match="not finished"):
        read_scores(tmp_path)


def test_inner_products_are_refused(path, tmp_path):
    for name in ("format", "metrics.json"):
        (tmp_path / name).write_text((path / name).read_text())
    (tmp_path / "config.toml").write_text(RunConfig.from_settings({"loss.name": "bpr"}).to_toml())
    with pytest.raises(ConfigError, match="half cosines"):
        read_scores(tmp_path)


def test_figure_1_has_the_values_of_the_paper():
    surrogates = figures.surrogate_table().rows(named=True)
    first, last = surrogates[0], surrogates[-1]
    assert (first["step"], last["step"]) == (0.0, 1.0)
    assert last["SL"] == pytest.approx(math.e)
    assert last["PSL-relu"] == 2.0
    assert first["PSL-tanh"] == pytest.approx(1 - math.tanh(1))
    end = figures.weight_table(0.2).rows(named=True)[-1]
    expected = {"SL": 742.1, "PSL-tanh": 20.2, "PSL-atan": 25.4, "PSL-relu": 80.0}
    for name, value in expected.items():
        assert end[name] == pytest.approx(value, abs=0.05)


def test_figures_are_written_with_what_a_run_adds(path, model, tmp_path):
    names = {file.name for file in figures.write(tmp_path, path, most_users=5)}
    for name in ("figure-1a", "figure-1b", "figure-1b-measured"):
        assert {f"{name}.csv", f"{name}.svg"} <= names
    table = figures.measured_table(model)
    for column in ("pairs", "SL", "PSL-tanh", "PSL-atan", "PSL-relu"):
        assert table[column].sum() == pytest.approx(1.0)
    above = table.filter(pl.col("from") >= 0)
    assert above["PSL-relu"].sum() < above["SL"].sum()
    assert "742.1" in (tmp_path / "figures.md").read_text()


def test_figures_need_no_run(tmp_path):
    names = {file.name for file in figures.write(tmp_path)}
    assert "figure-1b.svg" in names
    assert "figure-1b-measured.csv" not in names
