"""Reports with an item table: what some users have and would get, by titles."""

from pathlib import Path

import polars as pl
import pytest

from pslrec import Recommender
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.errors import DataError
from pslrec.reporting import run_report


@pytest.fixture(scope="module", params=["mf", "history"])
def fitted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    directory = tmp_path_factory.mktemp(request.param)
    log = planted_tastes(60, 40, model=TasteModel(n_topics=3), seed=2).interactions
    frame = pl.DataFrame({"user": log.users + 1000, "item": log.items})
    frame.write_csv(directory / "log.csv")
    recommender = Recommender("sl", request.param, preset="fixed", epochs=1, dimension=4)
    recommender.fit(directory / "log.csv").save(directory / "run")
    table = pl.DataFrame({"item": range(40), "title": [f"Film <{item}>" for item in range(40)]})
    table.write_csv(directory / "items.csv")
    return recommender, directory


def test_a_report_shows_titles_of_what_some_users_have_and_would_get(fitted, tmp_path: Path):
    recommender, directory = fitted
    out = tmp_path / "report.html"
    page = run_report([directory / "run"], out, item_table=directory / "items.csv").read_text()
    assert "<h2>Examples" in page or ">Examples</h2>" in page
    shown = [user for user in recommender.users_ if f">{user}<" in page]
    assert len(shown) == 5
    best = recommender.recommend(shown[0], k=5)["item"].to_list()
    assert "; ".join(f"Film &lt;{item}&gt;" for item in best) in page
    assert "Examples" not in run_report([directory / "run"], out).read_text()


def test_a_table_of_other_items_stops_the_report(fitted, tmp_path: Path):
    _, directory = fitted
    other = tmp_path / "other.csv"
    other.write_text("item,title\nnone,Nothing\n")
    with pytest.raises(DataError, match="is an item of the model"):
        run_report([directory / "run"], tmp_path / "report.html", item_table=other)
