"""From a run to lists on the command line: `pslrec recommend`, `similar`, `export`, and `train --refit --warm-start`."""

import json
from pathlib import Path

import polars as pl
import pytest
from command_line import Command

from pslrec import Recommender
from pslrec.cli import recommend as recommend_module
from pslrec.data._synthetic import TasteModel, planted_tastes

SMALL = ("--set", "backbone.dimension=8", "--set", "training.epochs=2", "--threads", "1")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "log.csv"
    frame = planted_tastes(60, 40, model=TasteModel(n_topics=3), seed=2).interactions.to_frame()
    # Whole numbers as ids, which arrive as text on the command line.
    frame.with_columns(pl.col("user").rank("dense").cast(pl.Int64) + 1000).write_csv(path)
    return path


@pytest.fixture(scope="module")
def run_path(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    Recommender("sl", epochs=2, dimension=8, negatives="catalog").fit(log).save(path)
    return path


def read(path: Path) -> pl.DataFrame:
    readers = {".parquet": pl.read_parquet, ".csv": pl.read_csv, ".jsonl": pl.read_ndjson}
    return readers[path.suffix](path)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
def test_all_users_go_to_a_file_block_by_block(
    pslrec: Command, run_path: Path, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommend_module, "USERS_AT_ONCE", 7)
    out = tmp_path / f"recs{suffix}"
    done = pslrec("recommend", run_path, "--all", "-k", 4, "--out", out)
    assert done.code == 0, done.err
    assert "wrote 240 recommendations for 60 users to" in done.err
    expected = Recommender.load(run_path).recommend(k=4)
    found = read(out)
    assert found.columns == ["user", "item", "score", "rank"]
    assert found.select("user", "item").equals(expected.select("user", "item"))
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_some_users_are_shown_as_a_table(pslrec: Command, run_path: Path) -> None:
    done = pslrec("recommend", run_path, "--user", 1003, "--user", 1001, "-k", 2)
    assert done.code == 0, done.err
    expected = Recommender.load(run_path).recommend([1003, 1001], k=2)
    lines = done.out.splitlines()[1:]
    assert [line.split()[-2] for line in lines] == expected["item"].to_list()
    assert lines[0].split()[0] == "1003"
    many = pslrec("recommend", run_path, "--all", "-k", 1)
    assert "showing the first 20 of 60 users; write all to a file with --out" in many.err
    assert len(many.out.splitlines()) == 21


def test_users_come_from_a_file(pslrec: Command, run_path: Path, tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_text("1002\n\n77\n1004\n")
    out = tmp_path / "recs.csv"
    refused = pslrec("recommend", run_path, "--users", tmp_path / "users.txt", "--out", out)
    assert (refused.code, out.exists()) == (2, False)
    assert (
        "unknown user `77`; recommend to new users with --history, or skip unknown ids with --skip-unknown"
        in refused.err
    )
    done = pslrec(
        "recommend", run_path, "--users", tmp_path / "users.txt", "--skip-unknown", "--out", out
    )
    assert done.code == 0, done.err
    assert "skipped 1 of 3 ids, which are unknown" in done.err
    assert read(out)["user"].unique(maintain_order=True).to_list() == [1002, 1004]
    pl.DataFrame({"user": [1005]}).write_parquet(tmp_path / "users.parquet")
    pslrec("recommend", run_path, "--users", tmp_path / "users.parquet", "--out", out)
    assert read(out)["user"].unique().to_list() == [1005]
    pl.DataFrame({"who": [1005]}).write_csv(tmp_path / "users.csv")
    assert (
        "has no column `user`"
        in pslrec("recommend", run_path, "--users", tmp_path / "users.csv").err
    )


def test_somebody_new_is_recommended_to_by_their_history(pslrec: Command, run_path: Path) -> None:
    recommender = Recommender.load(run_path)
    items = recommender.items_[:2].to_list()
    done = pslrec("recommend", run_path, "--history", items[0], "--history", items[1], "-k", 3)
    assert done.code == 0, done.err
    expected = recommender.recommend_for(items, k=3)["item"].to_list()
    assert [line.split()[-2] for line in done.out.splitlines()[1:]] == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "`--all`, `--history ITEM` and `--histories FILE`"),
        ((), "give users, as in `pslrec recommend RUN USER`, or exactly one of `--users FILE`"),
        (("--all", "--user", "1001"), "give users, as in `pslrec recommend RUN USER`"),
        (("1001", "--history", "x"), "give users, as in `pslrec recommend RUN USER`"),
        (
            ("--all", "--out", "recs.xlsx"),
            "`--out` must end in .parquet, .csv, .jsonl, got recs.xlsx",
        ),
        (("--all", "--out", "no/such/recs.csv"), "cannot be written"),
        (("--users", "no-such-file"), "cannot be read"),
        (("--history", "gone"), "unknown item `gone`; it is not in the training data"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    pslrec: Command, run_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = pslrec("recommend", run_path, *arguments)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_a_directory_without_a_run_is_one_sentence(pslrec: Command, tmp_path: Path) -> None:
    for command in (
        ("recommend", tmp_path, "--all"),
        ("similar", tmp_path, "--item", "x"),
        ("export", tmp_path, "--to", "npz"),
    ):
        done = pslrec(*command)
        assert (done.code, done.err.startswith("error: ")) == (2, True)
        assert "is not a run directory" in done.err


def test_similar_items_and_users_are_shown(pslrec: Command, run_path: Path) -> None:
    recommender = Recommender.load(run_path)
    item = recommender.items_[3]
    done = pslrec("similar", run_path, "--item", item, "-k", 3, "--json")
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [record["similar"] for record in records] == recommender.similar_items(item, k=3)[
        "similar"
    ].to_list()
    table = pslrec("similar", run_path, "--user", 1001, "-k", 2)
    assert "users similar to 1001" in table.out
    assert len(table.out.splitlines()) == 3
    for options in ((), (item, "--user", 1001), (item, "--item", item)):
        failed = pslrec("similar", run_path, *options)
        assert failed.code == 2
        assert "give one item, as in `pslrec similar RUN ITEM`" in failed.err


def test_ids_need_no_option(pslrec: Command, run_path: Path) -> None:
    item = Recommender.load(run_path).items_[3]
    plain = pslrec("similar", run_path, item, "-k", 3)
    assert plain.code == 0, plain.err
    assert plain.out == pslrec("similar", run_path, "--item", item, "-k", 3).out
    plain = pslrec("recommend", run_path, 1001, 1002, "-k", 3)
    assert plain.code == 0, plain.err
    options = ("--user", 1001, "--user", 1002, "-k", 3)
    assert plain.out == pslrec("recommend", run_path, *options).out


def test_export_says_what_it_wrote_and_what_an_index_finds(
    pslrec: Command, run_path: Path, tmp_path: Path
) -> None:
    done = pslrec("export", run_path, "--to", "npz", "--out", tmp_path / "npz")
    assert f"wrote model.npz and export.json to {tmp_path / 'npz'}" in done.out
    again = pslrec("export", run_path, "--to", "npz", "--out", tmp_path / "npz")
    assert (again.code, "is not empty" in again.err) == (2, True)
    assert "unknown export `pickle`" in pslrec("export", run_path, "--to", "pickle").err
    pytest.importorskip("faiss")
    flat = pslrec(
        "export", run_path, "--to", "faiss", "--out", tmp_path / "faiss", "-k", 5, "--json"
    )
    assert json.loads(flat.out)["recall"] == 1.0


def test_train_refits_and_starts_warm(pslrec: Command, log: Path, tmp_path: Path) -> None:
    first = pslrec("train", log, "--loss", "sl", *SMALL, "--refit", "--out", tmp_path / "first")
    assert first.code == 0, first.err
    assert "training again on training and validation data" in first.err
    assert "refit" in json.loads((tmp_path / "first" / "metrics.json").read_text())
    warm = ("--warm-start", tmp_path / "first", "--out", tmp_path / "second")
    second = pslrec("train", log, "--loss", "sl", *SMALL, *warm)
    assert second.code == 0, second.err
    assert "warm start: 60 of 60 users" in second.err
    assert "warm_start" in (tmp_path / "second" / "config.toml").read_text()
    nothing = pslrec("train", log, *SMALL, "--warm-start", tmp_path / "nothing")
    assert (nothing.code, "is not a run directory" in nothing.err) == (2, True)


def test_users_without_training_items_get_no_list_and_it_is_said(
    pslrec: Command, tmp_path: Path
) -> None:
    lines = ["user,item,timestamp"]
    for user in range(30):
        lines += [f"{user},{(user + step) % 20},{100 + step}" for step in range(8)]
    # They come last, so a split by time leaves them to the test.
    lines += ["late,3,900", "later,4,901"]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    for backbone in ("mf", "history"):
        out = tmp_path / backbone
        trained = pslrec(
            *("train", tmp_path / "log.csv", "--split", "temporal", "--preset", "fixed"),
            *("--backbone", backbone, "--out", out, *SMALL),
        )
        assert trained.code == 0, trained.err
        assert "interactions were held out of training" in trained.out
        assert "train on everything: --split none" in trained.out
        done = pslrec("recommend", out, "late", "7", "-k", 2)
        assert "1 of 2 users have no list, as none of their items are in the training" in done.err
        assert done.out.splitlines()[1].split()[0] == "7"
        assert "late" not in done.out
        written = pslrec("recommend", out, "--all", "-k", 2, "--out", tmp_path / f"{backbone}.csv")
        n_listed = read(tmp_path / f"{backbone}.csv")["user"].n_unique()
        assert f"recommendations for {n_listed} users to" in written.err
        assert written.err.count(f"{32 - n_listed} of 32 users have no list") == 1
        similar = pslrec("similar", out, "--user", "late", "-k", 2)
        assert similar.code == 0
        assert len(similar.out.splitlines()) == 1
        assert "none of this user's items are in the training part" in similar.err
        assert "late" not in pslrec("similar", out, "--user", "7", "-k", 40).out
