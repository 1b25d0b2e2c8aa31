"""Rules, titles and reasons on the command line: `pslrec recommend` and `similar`."""

import json
from pathlib import Path

import polars as pl
import pytest
from command_line import Command

from pslrec import Recommender
from pslrec.data._synthetic import TasteModel, planted_tastes

N_ITEMS = 40
COMEDIES = {item for item in range(10, N_ITEMS) if item % 3 == 0}
WHERE = 'genre == "Comedy" and year >= 1990'


@pytest.fixture(scope="module")
def items_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("items") / "items.csv"
    lines = ["movieId,title,genre,year"]
    for item in range(N_ITEMS):
        genre = ("Comedy", "Drama", "War")[item % 3]
        lines.append(f"{item},Film [{item}],{genre},{1980 + item}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module", params=["mf", "history"])
def run_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = planted_tastes(60, N_ITEMS, model=TasteModel(n_topics=3), seed=2).interactions
    frame = pl.DataFrame({"user": log.users + 1000, "item": log.items})
    path = tmp_path_factory.mktemp("runs") / request.param
    options = {"epochs": 2, "dimension": 8, "negatives": "catalog", "preset": "fixed"}
    Recommender("sl", request.param, **options).fit(frame).save(path)
    return path


@pytest.fixture
def recommended(pslrec: Command, run_path: Path, items_path: Path, tmp_path: Path):
    """The lists that the command writes with these options."""

    def recommend(*options: object) -> pl.DataFrame:
        out = tmp_path / "lists.jsonl"
        done = pslrec(
            "recommend", run_path, "--item-table", items_path, *options, "-k", N_ITEMS, "-o", out
        )
        assert done.code == 0, done.err
        return pl.read_ndjson(out)

    return recommend


def test_conditions_choose_items_for_all_and_for_somebody_new(recommended) -> None:
    everybody = recommended("--all", "--where", WHERE, "--include-seen")
    assert set(everybody["item"]) == COMEDIES
    assert everybody["title"].to_list() == [f"Film [{item}]" for item in everybody["item"]]
    new = recommended("--history", 1, "--history", 2, "--where", WHERE)
    assert set(new["item"]) == COMEDIES
    limited = recommended("--all", "--at-most", "genre=2", "--at-most", "year=1")
    counts = limited.with_columns(genre=pl.col("item") % 3).group_by("user", "genre").len()
    assert counts["len"].max() == 2


def test_items_are_allowed_and_left_out_by_options_and_files(recommended, tmp_path: Path) -> None:
    (tmp_path / "only.txt").write_text("1\n2\n")
    some = recommended(
        "--user", 1003, "--include-seen", "--only-file", tmp_path / "only.txt", "--only", 5
    )
    assert set(some["item"]) == {1, 2, 5}
    (tmp_path / "without.txt").write_text("3\n4\n")
    rest = recommended(
        "--user", 1003, "--include-seen", "--exclude-file", tmp_path / "without.txt", "--exclude", 7
    )
    assert set(rest["item"]) == set(range(N_ITEMS)) - {3, 4, 7}
    (tmp_path / "pairs.csv").write_text("user,item\n1003,8\n1004,9\n1003,10\n")
    both = recommended(
        *(
            "--user",
            1003,
            "--user",
            1004,
            "--include-seen",
            "--exclude-file",
            tmp_path / "pairs.csv",
        )
    )
    missing = {}
    for user in (1003, 1004):
        missing[user] = set(range(N_ITEMS)) - set(both.filter(user=user)["item"])
    assert missing == {1003: {8, 10}, 1004: {9}}


def test_titles_and_reasons_are_shown(pslrec: Command, run_path: Path, items_path: Path) -> None:
    shown = pslrec(
        "recommend", run_path, "--user", 1003, "-k", 2, "--explain", 2, "--titles", items_path
    )
    assert shown.code == 0, shown.err
    expected = Recommender.load(run_path).recommend(1003, k=2, explain=2)
    line = shown.out.splitlines()[1]
    assert f"Film [{expected['item'][0]}] ({expected['item'][0]})" in line
    assert f"Film [{expected['because'][0][0]}], Film [{expected['because'][0][1]}]" in line
    plain = pslrec("recommend", run_path, "--user", 1003, "-k", 2, "--explain", 1)
    assert plain.out.splitlines()[1].split()[-1] == str(expected["because"][0][0])
    new = pslrec("recommend", run_path, "--history", 3, "--history", 4, "-k", 1, "--explain", 2)
    assert set(new.out.splitlines()[1].split(maxsplit=4)[-1].strip().split(", ")) == {"3", "4"}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_reasons_go_to_files(
    pslrec: Command, run_path: Path, items_path: Path, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"lists{suffix}"
    done = pslrec(
        *(
            "recommend",
            run_path,
            "--all",
            "-k",
            2,
            "--explain",
            2,
            "--item-table",
            items_path,
            "-o",
            out,
        )
    )
    assert done.code == 0, done.err
    expected = Recommender.load(run_path).use_item_table(items_path).recommend(k=2, explain=2)
    if suffix == ".parquet":
        assert pl.read_parquet(out)["because"].equals(expected["because"])
    else:
        first = pl.read_csv(out)["because_titles"][0]
        assert first == "|".join(expected["because_titles"][0])


def test_similar_items_have_titles_and_rules(
    pslrec: Command, run_path: Path, items_path: Path
) -> None:
    done = pslrec(
        *("similar", run_path, "--item", 0, "-k", N_ITEMS, "--item-table", items_path, "--json"),
        *("--where", WHERE, "--exclude", 12, "--at-most", "year=1"),
    )
    assert done.code == 0, done.err
    records = [json.loads(line) for line in done.out.splitlines()]
    assert {record["similar"] for record in records} == COMEDIES - {12}
    assert records[0]["title"] == f"Film [{records[0]['similar']}]"
    shown = pslrec("similar", run_path, "--item", 0, "-k", 1, "--item-table", items_path)
    assert "items similar to Film [0]" in shown.out
    assert "Film [" in shown.out.splitlines()[1]


def test_unknown_ids_are_skipped_if_asked(pslrec: Command, run_path: Path) -> None:
    history = ("recommend", run_path, "--history", 1, "--history", "gone", "--exclude", "lost")
    refused = pslrec(*history)
    assert (refused.code, "unknown item `gone`" in refused.err) == (2, True)
    done = pslrec(*history, "--skip-unknown", "-k", 3)
    assert done.code == 0, done.err
    assert "skipped 1 of 2 ids, which are unknown" in done.err
    assert len(done.out.splitlines()) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--where", "year >"), "`where` needs a number, text in quotes"),
        (("--where", "yaer > 3"), "did you mean `year`?"),
        (("--where", "__import__('os')"), "`where` needs a comparison"),
        (("--at-most", "genre"), "`--at-most` must be COLUMN=N such as genre=2, got genre"),
        (("--at-most", "genre=0"), "`at_most` must be a whole number of at least 1, got 0"),
        (("--at-most", "gnre=1"), "did you mean `genre`?"),
        (("--exclude", "gone"), "unknown item `gone`"),
        (("--only-file", "no-such-file"), "cannot be read"),
    ],
)
def test_wrong_rules_are_one_sentence(
    pslrec: Command, run_path: Path, items_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = pslrec("recommend", run_path, "--user", 1003, "--item-table", items_path, *arguments)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_rules_need_a_table_and_are_about_items(pslrec: Command, run_path: Path) -> None:
    done = pslrec("recommend", run_path, "--user", 1003, "--where", "year > 3")
    assert (done.code, "`--item-table FILE` on the command line" in done.err) == (2, True)
    users = pslrec("similar", run_path, "--user", 1003, "--where", "year > 3")
    assert (users.code, "are about items; give `--item`" in users.err) == (2, True)


def test_a_table_given_to_train_serves_every_later_command(
    pslrec: Command, items_path: Path, tmp_path: Path
) -> None:
    log = planted_tastes(60, N_ITEMS, model=TasteModel(n_topics=3), seed=2).interactions
    data = tmp_path / "log.csv"
    pl.DataFrame({"user": log.users + 1000, "item": log.items}).write_csv(data)
    out = tmp_path / "run"
    settings = ("--preset", "fixed", "--epochs", 2, "--dimension", 8, "--item-table", items_path)
    done = pslrec("train", data, *settings)
    assert done.code == 2
    assert "`--item-table` is saved with the model, so it needs `--out DIRECTORY`" in done.err
    others = tmp_path / "others.csv"
    others.write_text("item,title\nx,Nothing\n")
    done = pslrec("train", data, *settings[:-1], others, "--out", out)
    assert done.code == 2
    assert "no id in column `item` is an item of the model" in done.err
    assert not (out / "format").exists()
    done = pslrec("train", data, *settings, "--out", out)
    assert done.code == 0, done.err
    lists = tmp_path / "lists.jsonl"
    done = pslrec("recommend", out, "--user", 1003, "--where", WHERE, "-o", lists)
    assert done.code == 0, done.err
    frame = pl.read_ndjson(lists)
    assert set(frame["item"]) <= COMEDIES
    assert frame["title"].to_list() == [f"Film [{item}]" for item in frame["item"]]
    done = pslrec("similar", out, "--item", 3, "--where", WHERE)
    assert "items similar to Film [3]" in done.out
    done = pslrec("report", out, "--out", tmp_path / "report.html")
    assert done.code == 0, done.err
    assert "Film [" in (tmp_path / "report.html").read_text()


def test_a_title_in_the_place_of_an_id_is_answered_with_ids(
    pslrec: Command, run_path: Path, items_path: Path
) -> None:
    for command in (
        ("similar", run_path, "film [7]"),
        ("recommend", run_path, "--history", "film [7]"),
    ):
        failed = pslrec(*command, "--item-table", items_path)
        assert failed.code == 2
        assert "unknown item `film [7]`; give an id, such as 7 (Film [7])" in failed.err
    failed = pslrec("similar", run_path, "opera", "--item-table", items_path)
    assert failed.err == (
        "error: unknown item `opera`; it is not in the training data, whose items have ids such as "
        "0, 1, 2\n"
    )


def test_rules_that_leave_nothing_are_told(
    pslrec: Command, run_path: Path, items_path: Path
) -> None:
    done = pslrec("recommend", run_path, 1003, "--item-table", items_path, "--where", "year > 9000")
    assert done.code == 0
    assert "no item is left to recommend" in done.err


def test_a_warm_start_inherits_the_item_table_unless_another_is_given(
    pslrec: Command, items_path: Path, run_path: Path, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    Recommender.load(run_path).use_item_table(items_path).save(first)
    log = planted_tastes(60, N_ITEMS, model=TasteModel(n_topics=3), seed=2).interactions
    data = tmp_path / "log.csv"
    pl.DataFrame({"user": log.users + 1000, "item": log.items}).write_csv(data)
    quick = ("--config", first / "config.toml", "--epochs", 1, "--warm-start", first)
    done = pslrec("train", data, *quick, "--out", tmp_path / "second")
    assert done.code == 0, done.err
    assert "Film [" in pslrec("recommend", tmp_path / "second", "1003").out
    other = tmp_path / "other.csv"
    other.write_text("item,title\n" + "".join(f"{item},Buch {item}\n" for item in range(N_ITEMS)))
    done = pslrec("train", data, *quick, "--item-table", other, "--out", tmp_path / "third")
    assert done.code == 0, done.err
    assert "Buch " in pslrec("recommend", tmp_path / "third", "1003").out


def test_a_table_in_latin_1_is_refused_or_read_but_never_garbled(
    pslrec: Command, run_path: Path, tmp_path: Path
) -> None:
    table = tmp_path / "ware.csv"
    lines = ["Nummer;Titel", *(f"{item};Käse {item}" for item in range(N_ITEMS))]
    table.write_bytes("\n".join(lines).encode("latin-1"))
    for command in (("recommend", run_path, 1003), ("similar", run_path, 3)):
        failed = pslrec(*command, "--item-table", table)
        assert failed.code == 2
        assert "name the encoding with" in failed.err
        assert "`--item-table-encoding cp1252`" in failed.err
        done = pslrec(*command, "--item-table", table, "--item-table-encoding", "latin-1")
        assert "Käse " in done.out
    alone = pslrec("recommend", run_path, 1003, "--item-table-encoding", "latin-1")
    assert (alone.code, "give `--item-table FILE`, too" in alone.err) == (2, True)
