import csv
import gzip
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pslrec.cli.data_fetch import fetch_command, preparation
from pslrec.data import Interactions
from pslrec.data.sources import SOURCES, fetch, find, find_raw, find_split, read_source
from pslrec.errors import DataError, DownloadError, UnknownNameError

Row = tuple[object, object, float | None, int]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("PSLREC_DATA_DIR", raising=False)
    monkeypatch.setenv("PSLREC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def rows(log: Interactions) -> list[Row]:
    frame = log.to_frame()
    ratings = frame["rating"] if "rating" in frame.columns else [None] * len(frame)
    return list(zip(frame["user"], frame["item"], ratings, frame["timestamp"], strict=True))


def read_text(name: str, path: Path, text: str) -> list[Row]:
    path.write_text(text, encoding="utf-8", newline="")
    return rows(SOURCES[name].read_raw(path))


def test_amazon_ids_stay_text_with_their_zeros(tmp_path: Path) -> None:
    text = "A2,0000031887,5.0,1369699200\nA1,B00ABC,0.0,855446400\nA2,0000031887,1.0,1369699201\n"

    assert read_text("amazon-book", tmp_path / "ratings_Books.csv", text) == [
        ("A2", "0000031887", 5.0, 1369699200),
        ("A1", "B00ABC", 0.0, 855446400),
        ("A2", "0000031887", 1.0, 1369699201),
    ]


def test_amazon_quotes_are_ordinary_characters(tmp_path: Path) -> None:
    text = 'A"1,B"2,5.0,1369699200\n"A2,B3,4.0,1369699200\n'

    assert [row[:2] for row in read_text("amazon-cd", tmp_path / "ratings.csv", text)] == [
        ('A"1', 'B"2'),
        ('"A2', "B3"),
    ]


def test_gzipped_amazon_file_is_read_like_the_plain_one(tmp_path: Path) -> None:
    path = tmp_path / "ratings_Beauty.csv.gz"
    path.write_bytes(gzip.compress(b"A1,B1,5.0,1369699200\n"))

    assert rows(SOURCES["amazon-beauty"].read_raw(path)) == [("A1", "B1", 5.0, 1369699200)]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("A1,B1,five,10", "line 2: `rating` must be a finite number, got `five`"),
        ("A1,B1,nan,10", "line 2: `rating` must be a finite number, got `nan`"),
        ("A1,B1,inf,10", "line 2: `rating` must be a finite number, got `inf`"),
        ("A1,B1,5.0,", "line 2: `timestamp` is empty; fill it in or remove the row"),
        ("A1,B1,5.0,1.5", "line 2: `timestamp` must be a whole number, got `1.5`"),
        (",B1,5.0,10", "line 2: `user` is empty; fill it in or remove the row"),
        ("A1,B1,5.0", "line 2 has 3 fields where 4 were expected; fill in those that are missing"),
        ("A1,B1,5.0,10,11", "line 2 has 5 fields where 4 were expected; no field may have ','"),
        ("A1\tB1\t5.0\t10", "line 2 has 1 field where 4 were expected"),
    ],
)
def test_amazon_complaint_names_line_and_column(tmp_path: Path, line: str, complaint: str) -> None:
    with pytest.raises(DataError) as caught:
        read_text("amazon-movie", tmp_path / "ratings.csv", f"A0,B0,5.0,10\n{line}\nA2,B2,5.0,10\n")

    assert complaint in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "ratings.csv"))


def test_header_line_is_a_complaint_about_line_one(tmp_path: Path) -> None:
    complaint = "line 1: `timestamp` must be a whole number, got `timestamp`"
    with pytest.raises(DataError, match=complaint):
        read_text(
            "amazon-movie", tmp_path / "ratings.csv", "user,item,rating,timestamp\nA1,B1,5.0,10\n"
        )


def test_gowalla_check_ins_keep_repeated_visits_and_utc_seconds(tmp_path: Path) -> None:
    text = (
        "0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847\n"
        "0\t2010-10-19T23:55:28Z\t30.2359091167\t-97.7951395833\t22847\n"
        "196585\t1970-01-01T00:00:00Z\t0.0\t0\t9\n"
    )

    assert read_text("gowalla", tmp_path / "loc-gowalla_totalCheckins.txt", text) == [
        (0, 22847, None, 1287532527),
        (0, 22847, None, 1287532528),
        (196585, 9, None, 0),
    ]


@pytest.mark.parametrize(
    ("moment", "complaint"),
    [
        ("yesterday", r"must be a date as in the first row \(`2010-10-19T.*`\), got `yesterday`"),
        (
            "2010-13-01T00:00:00Z",
            r"must be a date as in the first row .*, got `2010-13-01T00:00:00Z`",
        ),
        ("", "is empty"),
    ],
)
def test_gowalla_complaint_names_the_bad_time(tmp_path: Path, moment: str, complaint: str) -> None:
    text = f"0\t2010-10-19T23:55:27Z\t1\t2\t3\n0\t{moment}\t1\t2\t3\n"
    with pytest.raises(DataError, match=rf"line 2: `timestamp` {complaint}"):
        read_text("gowalla", tmp_path / "checkins.txt", text)


def test_gowalla_with_an_identifier_that_is_no_number_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1: `item` must be a whole number, got `home`"):
        read_text("gowalla", tmp_path / "checkins.txt", "0\t2010-10-19T23:55:27Z\t1\t2\thome\n")


def review(**fields: object) -> str:
    usual = {
        "review_id": "r",
        "user_id": "u",
        "business_id": "b",
        "stars": 4,
        "date": "2016-03-09",
        "text": "fine",
    }
    return json.dumps(
        {name: value for name, value in {**usual, **fields}.items() if value is not ...}
    )


def test_yelp_texts_with_quotes_newlines_and_unicode_do_not_disturb(tmp_path: Path) -> None:
    lines = [
        review(
            user_id="ÜñΩ-_1",
            text='He said "hi",\nthen left.\r\n\t{"stars": 1} \\ \u2028 \U0001f600',
        ),
        review(business_id="-b", stars=5.0, date="2018-07-02 23:59:59", text=""),
        '{"date":"2005-02-16","stars":1,"text":"\\ud83d\\ude00 \\u00e9","business_id":"b","user_id":"\\u00dc","extra":[{}]}',
    ]

    assert read_text("yelp2018", tmp_path / "review.json", "\n".join(lines)) == [
        ("ÜñΩ-_1", "b", 4.0, 1457481600),
        ("u", "-b", 5.0, 1530575999),
        ("Ü", "b", 1.0, 1108512000),
    ]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (review(stars=...), "line 2: `stars` is empty"),
        (review(stars="many"), "line 2: `stars` must be a finite number, got `many`"),
        (review(user_id=None), "line 2: `user_id` is empty"),
        (review(business_id=""), "line 2: `business_id` is empty"),
        (
            review(date="soon"),
            "line 2: `date` must be a date as in the first row (`2016-03-09`), got `soon`",
        ),
        (review()[:40], "line 2 is not JSON"),
        ("[1, 2]", "line 2 is an array; one JSON object per line is expected"),
    ],
)
def test_yelp_complaint_names_line_and_key(tmp_path: Path, line: str, complaint: str) -> None:
    with pytest.raises(DataError) as caught:
        read_text("yelp2018", tmp_path / "review.json", f"{review()}\n{line}\n")

    assert complaint in str(caught.value)


def write_review_table(path: Path, reviews: list[list[str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                "review_id",
                "user_id",
                "business_id",
                "stars",
                "date",
                "text",
                "useful",
                "funny",
                "cool",
            ]
        )
        writer.writerows(reviews)
    return path


def test_yelp_csv_edition_is_read_over_lines_within_quotes(tmp_path: Path) -> None:
    path = write_review_table(
        tmp_path / "yelp_review.csv",
        [
            [
                "r1",
                "u1",
                "b1",
                "5",
                "2016-05-28",
                'Super "simple" place,\nbut ☃ amazing.',
                "0",
                "0",
                "0",
            ],
            ["r2", "u1", "b2", "3", "2017-12-31", "", "0", "0", "0"],
        ],
    )

    assert rows(SOURCES["yelp2018"].read_raw(path)) == [
        ("u1", "b1", 5.0, 1464393600),
        ("u1", "b2", 3.0, 1514678400),
    ]


def test_yelp_csv_complaint_names_the_line(tmp_path: Path) -> None:
    path = write_review_table(
        tmp_path / "yelp_review.csv",
        [
            ["r1", "u1", "b1", "5", "2016-05-28", "two\nlines", "0", "0", "0"],
            ["r2", "u1", "b2", "x", "2017-12-31", "", "0", "0", "0"],
        ],
    )

    with pytest.raises(DataError, match=r"line 4: `stars` must be a finite number, got `x`"):
        SOURCES["yelp2018"].read_raw(path)


def test_movielens_100k_is_read_from_tabs(tmp_path: Path) -> None:
    text = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n9\t10\t1\t878887116"

    assert read_text("movielens-100k", tmp_path / "u.data", text) == [
        (196, 242, 3.0, 881250949),
        (186, 302, 3.0, 891717742),
        (9, 10, 1.0, 878887116),
    ]


def test_movielens_1m_is_read_from_double_colons(tmp_path: Path) -> None:
    text = "1::1193::5::978300760\n6040::1::4.5::956703932\n"

    assert read_text("movielens-1m", tmp_path / "ratings.dat", text) == [
        (1, 1193, 5.0, 978300760),
        (6040, 1, 4.5, 956703932),
    ]


@pytest.mark.parametrize(
    ("line", "n_fields"),
    [
        ("1:1193:5:978300760", "1 field"),
        ("1::1193::5", "3 fields"),
        ("1::1193::5::978300760::1", "5 fields"),
        ("1:0:1193::5::9", "3 fields"),
        ("1,1193,5,978300760", "1 field"),
    ],
)
def test_movielens_1m_with_other_separators_is_said(
    tmp_path: Path, line: str, n_fields: str
) -> None:
    with pytest.raises(DataError, match=f"line 2 has {n_fields} where 4 were expected"):
        read_text("movielens-1m", tmp_path / "ratings.dat", f"1::1193::5::978300760\n{line}\n")


def test_zip_without_the_ratings_is_said(tmp_path: Path) -> None:
    path = tmp_path / "ml-1m.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ml-100k/u.data", "1\t1\t1\t1\n")

    with pytest.raises(DataError, match=r"ratings\.dat"):
        SOURCES["movielens-1m"].read_raw(path)


def put(path: Path, text: str = "A1,B1,5.0,1369699200\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_places_are_searched_from_the_directory_over_the_data_directory_to_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_cache = put(cache / "ratings_Beauty.csv")
    assert find("amazon-beauty") == in_cache

    monkeypatch.setenv("PSLREC_DATA_DIR", str(tmp_path / "shared"))
    assert find("amazon-beauty") == in_cache
    in_shared = put(tmp_path / "shared" / "raw" / "ratings_Beauty.csv")
    assert find("amazon-beauty") == in_shared

    assert find("amazon-beauty", tmp_path / "own") == in_shared
    own = put(tmp_path / "own" / "amazon-beauty" / "ratings_Beauty.csv.gz")
    assert find("amazon-beauty", tmp_path / "own") == own


def test_published_split_goes_before_the_raw_file(tmp_path: Path) -> None:
    raw = put(tmp_path / "ratings_Electronics.csv")
    split = put(tmp_path / "iid" / "amazon2014-electronic.zip")
    shifted = put(tmp_path / "ood" / "amazon2014-electronic-popularity.zip")

    assert find("amazon-electronic", tmp_path) == split
    assert find_raw("amazon-electronic", tmp_path) == raw
    assert find_split("amazon-electronic", tmp_path) == split
    assert find_split("amazon-electronic", tmp_path, variant="popularity") == shifted
    assert find_split("amazon-electronic", tmp_path, variant="temporal") is None


def test_published_splits_are_found_under_their_own_names(data_directory: Path) -> None:
    present = {path.name for path in data_directory.glob("iid/*.zip")}
    found = {path.name for name in SOURCES if (path := find_split(name, data_directory))}

    assert found
    assert found == present


def test_missing_source_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DownloadError) as caught:
        find("gowalla", tmp_path)

    assert "run `pslrec data fetch gowalla`" in str(caught.value)
    assert "https://snap.stanford.edu/data/loc-gowalla_totalCheckins.txt.gz" in str(caught.value)
    assert str(tmp_path / "loc-gowalla_totalCheckins.txt.gz") in str(caught.value)


def test_unknown_source_lists_the_known_ones() -> None:
    with pytest.raises(
        UnknownNameError, match=r"unknown source `gowala`; did you mean `gowalla`\?.*yelp2018"
    ):
        find("gowala")


def test_read_source_reads_the_raw_file_even_beside_a_split(tmp_path: Path) -> None:
    put(tmp_path / "ratings_Beauty.csv")
    put(tmp_path / "iid" / "amazon2014-beauty.zip")

    assert rows(read_source("amazon-beauty", tmp_path)) == [("A1", "B1", 5.0, 1369699200)]
    with pytest.raises(DownloadError, match="Amazon-Health"):
        read_source("amazon-health", tmp_path)


def serve(
    name: str, monkeypatch: pytest.MonkeyPatch, content: str = "A1,B1,5.0,1369699200\n"
) -> list[str]:
    """Put a function in place of the network; the list it returns gets the addresses asked for."""
    asked: list[str] = []

    def deliver(url: str, destination: Path, **options: object) -> Path:
        asked.append(url)
        report = options["on_progress"]
        if callable(report):
            report(len(content), len(content))
        return put(destination, content)

    monkeypatch.setattr("pslrec.data.sources._locate.download", deliver)
    return asked


def test_fetch_downloads_once_into_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = serve("amazon-beauty", monkeypatch)

    assert fetch("amazon-beauty") == fetch("amazon-beauty") == cache / "ratings_Beauty.csv"
    assert asked == [SOURCES["amazon-beauty"].url]


def test_fetch_into_a_directory_does_not_stop_at_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cache / "ratings_Beauty.csv")
    asked = serve("amazon-beauty", monkeypatch)

    assert fetch("amazon-beauty", tmp_path / "own") == tmp_path / "own" / "ratings_Beauty.csv"
    assert len(asked) == 1


def test_fetch_refuses_a_present_file_with_another_checksum(tmp_path: Path) -> None:
    put(tmp_path / "ml-1m.zip", "not the zip of GroupLens")

    with pytest.raises(DownloadError, match=r"ml-1m\.zip does not have the checksum md5:c4d9"):
        fetch("movielens-1m", tmp_path)


def test_fetch_does_not_blame_an_unwritable_directory_on_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "taken", "a file")
    with pytest.raises(DownloadError, match="cannot be written") as caught:
        fetch("amazon-beauty", tmp_path / "taken")

    assert "By hand" not in str(caught.value)


@pytest.fixture
def command() -> typer.Typer:
    application = typer.Typer()
    application.command()(fetch_command)
    return application


def test_command_prints_the_path_alone_and_the_rest_beside_it(
    cache: Path, command: typer.Typer, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve("amazon-beauty", monkeypatch)
    result = CliRunner().invoke(command, ["amazon-beauty"])

    assert result.exit_code == 0
    assert result.stdout == f"{cache / 'ratings_Beauty.csv'}\n"
    assert "No licence is known to us" in result.stderr
    assert "ratings_Beauty.csv" in result.stderr
    assert "ratings of at least 3, repeated pairs removed, 10-core" in result.stderr


def test_command_without_name_lists_all_sources(tmp_path: Path, command: typer.Typer) -> None:
    put(tmp_path / "iid" / "gowalla.zip")
    result = CliRunner().invoke(command, ["--directory", str(tmp_path)])

    assert result.exit_code == 0
    lines = {
        line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line.strip()
    }
    assert set(SOURCES) < set(lines)
    assert lines["gowalla"] == ["29,858", "40,988", "1,027,464", "split"]
    assert lines["yelp2018"][-1] == "-"


def test_command_stopped_by_the_user_says_how_to_go_on(
    command: typer.Typer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pslrec.data.sources._locate.download", stop)
    result = CliRunner().invoke(command, ["gowalla"])

    assert result.exit_code == 130
    assert "run `pslrec data fetch gowalla` again" in result.stderr


def test_preparation_of_data_without_ratings_names_no_threshold() -> None:
    text = preparation(SOURCES["gowalla"])

    assert "rating" not in text
    assert text.endswith("10-core; leaves 29,858 users, 40,988 items, 1,027,464 interactions")
    assert "ratings of at least 3" in preparation(replace(SOURCES["gowalla"], min_rating=3.0))


def test_the_readme_counts_the_published_data_sets_right() -> None:
    readme = Path(__file__).resolve().parents[3] / "README.md"
    assert len(list(SOURCES)) == 10
    assert "ten published data sets by name" in readme.read_text()
