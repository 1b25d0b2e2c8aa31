import asyncio
import re
import threading
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from service_support import Client

from pslrec.data import Vocabulary
from pslrec.errors import DataError, PslrecError, UnknownNameError
from pslrec.serving import Service, ServiceOptions
from pslrec.serving._batching import Batcher
from pslrec.serving._identifiers import Identifiers, shortened
from pslrec.serving._pages import page
from pslrec.serving._titles import read_titles


def test_batcher_runs_together_what_comes_while_it_is_busy():
    go_on, batches = threading.Event(), []

    def work(kind, jobs):
        batches.append((kind, list(jobs)))
        go_on.wait(5)
        return [job * 10 for job in jobs]

    async def main():
        batcher = Batcher(work, largest_batch=3)
        first = asyncio.create_task(batcher.answer("a", 0))
        await asyncio.sleep(0.02)
        rest = [
            asyncio.create_task(batcher.answer(kind, job))
            for kind, job in zip("aabaa", range(1, 6), strict=True)
        ]
        await asyncio.sleep(0.02)
        go_on.set()
        answers = await asyncio.gather(first, *rest)
        batcher.close()
        return answers

    assert asyncio.run(main()) == [0, 10, 20, 30, 40, 50]
    assert batches == [("a", [0]), ("a", [1, 2, 4]), ("b", [3]), ("a", [5])]


def test_batcher_lets_neighbours_of_a_bad_job_alone():
    def work(_, jobs):
        if "bad" in jobs:
            raise DataError("bad job")
        return [job.upper() for job in jobs]

    async def main():
        batcher = Batcher(work, largest_batch=10)
        asked = [batcher.answer("a", job) for job in ("one", "bad", "two")]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        batcher.close()
        return answers

    one, bad, two = asyncio.run(main())
    assert (one, two) == ("ONE", "TWO")
    assert isinstance(bad, PslrecError)


def test_batcher_goes_on_after_a_failure_and_without_those_who_left():
    done = []

    def work(_, jobs):
        done.extend(jobs)
        if jobs == ["broken"]:
            raise RuntimeError("broken")
        return jobs

    async def main():
        batcher = Batcher(work, largest_batch=1)
        with pytest.raises(RuntimeError, match="broken"):
            await batcher.answer("a", "broken")
        first = asyncio.create_task(batcher.answer("a", "first"))
        left = asyncio.create_task(batcher.answer("a", "left"))
        await asyncio.sleep(0)
        left.cancel()
        answer = await first
        last = await batcher.answer("a", "last")
        batcher.close()
        return answer, last

    assert asyncio.run(main()) == ("first", "last")
    assert done == ["broken", "first", "last"]


def test_large_job_runs_alone_even_if_it_exceeds_the_batch():
    async def main():
        batcher = Batcher(lambda _, jobs: jobs, largest_batch=2)
        answer = await batcher.answer("a", "large", size=5)
        batcher.close()
        return answer

    assert asyncio.run(main()) == "large"


@pytest.mark.parametrize("given", [7, "7", " 7 "])
def test_whole_numbers_are_found_as_numbers_and_as_text(given):
    assert Identifiers(Vocabulary([5, 7], kind="item")).row(given) == 1


@pytest.mark.parametrize("given", ["7.0", "+7", "seven", "", "\u0667", "9" * 5000, 10**30])
def test_what_is_no_id_is_unknown(given):
    with pytest.raises(UnknownNameError, match="unknown item"):
        Identifiers(Vocabulary([5, 7], kind="item")).row(given)


def test_text_ids_are_found_by_their_digits_but_not_without_their_zeros():
    items = Identifiers(Vocabulary(["7", "007", " x "], kind="item"))
    assert (items.row(7), items.row("007"), items.row(" x ")) == (0, 1, 2)
    assert items.find("x") is None


def test_other_ids_travel_as_text():
    days = Identifiers(Vocabulary(pl.Series([date(2026, 1, 2), date(2026, 1, 3)]), kind="item"))
    assert days.names == ["2026-01-02", "2026-01-03"]
    assert days.row("2026-01-03") == 1


def test_what_somebody_sent_is_shown_in_one_short_line():
    assert shortened("a\nb\x1b[31m") == "a�b�[31m"
    assert len(shortened("x" * 1000)) == 83
    assert shortened(10**10000) == "a very large number"


ITEMS = Identifiers(Vocabulary([1, 2, 3], kind="item"))
TABLES = {
    "commas.csv": 'item_id,name\n1,"One, two"\n3,Three\n9,Nine\n',
    "other-order.csv": "title,id,year\nOne,1,1990\nThree,3,1991\n",
    "tabs.tsv": 'item\ttitle\n1\t"One" more\n3\tThree\n',
    "colons.dat": "1::One::Drama\n2::::\n3::Three::Comedy\n",
    "lines.jsonl": '{"asin": "1", "title": "One"}\n{"asin": "3", "title": "Three"}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_titles_are_read_from_tables_of_many_kinds(tmp_path: Path, name: str):
    (tmp_path / name).write_text(TABLES[name])
    titles = read_titles(tmp_path / name, ITEMS)
    assert titles[0] is not None
    assert "One" in titles[0]
    assert titles[1:] == [None, "Three"]


def test_titles_are_read_from_parquet(tmp_path: Path):
    pl.DataFrame({"movieId": [1, 3], "title": [" One\n two", None]}).write_parquet(
        tmp_path / "titles.parquet"
    )
    assert read_titles(tmp_path / "titles.parquet", ITEMS) == ["One two", None, None]


BAD_TABLES = {
    "others.csv": "item,title\n8,Eight\n",
    "narrow.csv": "item\n1\n",
    "empty.csv": "",
    "rows.csv": "item,title\n",
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_table_without_titles_for_the_model_is_an_error(tmp_path: Path, name: str):
    (tmp_path / name).write_text(BAD_TABLES[name])
    with pytest.raises(DataError, match=name):
        read_titles(tmp_path / name, ITEMS)


TABLES_WITH_MARKS = {
    "rating-first.csv": "item,rating,text\n1,5,One\n2,3,Two\n3,4.5,Three\n",
    "marks-before.csv": "grade,votes,item,text\n4,10,1,One\n5,20,2,Two\n3,30,3,Three\n",
    "text-before.csv": "text,item,grade\nOne,1,4\nTwo,2,5\nThree,3,3\n",
    "with-gaps.csv": "item,grade,text\n1,5,One\n2,n/a,Two\n3,,Three\n",
    "days.csv": "item,day,liked,text\n1,2024-05-01,true,One\n2,2024-05-02,false,Two\n3,2024-05-02 10:00,true,Three\n",
    "no-header.tsv": "1\t5\t881250949\tOne\n2\t3\t881250950\tTwo\n3\t4\t881250951\tThree\n",
    "labels.csv": "item,label,text\n1,0,One\n2,1,Two\n3,1,Three\n",
    "commas.csv": "item;grade;text\n1;4,5;One\n2;3,0;Two\n3;80 %;Three\n",
    "lines.jsonl": "".join(
        f'{{"asin": "{row}", "overall": {row}.0, "helpful": [1, 2], "text": "{text}"}}\n'
        for row, text in enumerate(("One", "Two", "Three"), 1)
    ),
}


@pytest.mark.parametrize("name", TABLES_WITH_MARKS)
def test_marks_are_not_taken_for_titles(tmp_path: Path, name: str):
    """The column after the ids was taken, whatever it held, so that lists showed ratings for titles."""
    (tmp_path / name).write_text(TABLES_WITH_MARKS[name])
    assert read_titles(tmp_path / name, ITEMS) == ["One", "Two", "Three"]


TABLES_OF_MARKS = {
    "ratings.csv": "userId,movieId,rating,timestamp\n7,1,4.0,964982703\n7,2,5.0,964981247\n",
    "u.data": "1\t242\t3\t881250949\n2\t302\t3\t891717742\n",
    "named.csv": "item,user,rating\n1,ann,5\n2,bob,4\n",
}


@pytest.mark.parametrize("name", TABLES_OF_MARKS)
def test_a_table_of_ratings_has_no_titles(tmp_path: Path, name: str):
    (tmp_path / name).write_text(TABLES_OF_MARKS[name])
    with pytest.raises(
        DataError, match=r"must hold a column of titles .* name the right one `title`"
    ):
        read_titles(tmp_path / name, ITEMS)


def test_numbers_of_a_binary_table_are_not_taken_for_titles(tmp_path: Path):
    path = tmp_path / "titles.parquet"
    frame = pl.DataFrame(
        {"id": [1, 2, 3], "grade": [5.0, 4.0, 3.0], "text": ["One", "Two", "Three"]}
    )
    frame.with_columns(pl.col("text").cast(pl.Categorical)).write_parquet(path)
    assert read_titles(path, ITEMS) == ["One", "Two", "Three"]
    frame.drop("text").write_parquet(path)
    with pytest.raises(DataError, match="column of titles"):
        read_titles(path, ITEMS)


def test_a_column_called_title_is_taken_though_it_holds_numbers(tmp_path: Path):
    (tmp_path / "films.csv").write_text("item,rating,title\n1,5,1984\n2,4,300\n3,3,1917\n")
    assert read_titles(tmp_path / "films.csv", ITEMS) == ["1984", "300", "1917"]


MARKS = st.one_of(
    st.integers(-5, 10**10).map(str),
    st.floats(0, 5).map("{:.2f}".format),
    st.dates().map(str),
    st.sampled_from(["true", "false", "NaN", "4/5", "70%", "3,5", "1e-3"]),
)


@given(data=st.data(), has_header=st.booleans(), n_marks=st.integers(0, 4), has_text=st.booleans())
def test_no_mix_of_marks_is_ever_taken_for_titles(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    has_header: bool,
    n_marks: int,
    has_text: bool,
):
    columns = {
        f"c{number}": data.draw(st.lists(MARKS, min_size=3, max_size=3))
        for number in range(n_marks)
    }
    if has_text:
        columns["text"] = ["One", "Two", "Three"]
    order = data.draw(st.permutations(sorted(columns)))
    rows = [["item", *order]] if has_header else []
    rows += [[str(row + 1), *(columns[name][row] for name in order)] for row in range(3)]
    path = tmp_path_factory.mktemp("marks") / "table.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    if has_text:
        assert read_titles(path, ITEMS) == ["One", "Two", "Three"]
    else:
        with pytest.raises(DataError):
            read_titles(path, ITEMS)


def test_missing_table_is_an_error(tmp_path: Path):
    with pytest.raises(DataError, match="absent"):
        read_titles(tmp_path / "absent.csv", ITEMS)


@pytest.fixture
def describe(finished_run: Path):
    """The description that a service with these options gives."""
    services = []

    def described(options: ServiceOptions) -> dict[str, Any]:
        services.append(Service(finished_run, options=options))
        return Client(services[-1]).get("/openapi.json").json()

    yield described
    for service in services:
        service.close()


def test_description_names_every_address_and_resolves_every_reference(describe):
    document = describe(ServiceOptions(token="secret"))
    assert set(document["paths"]) == {
        "/recommend", "/recommend-for-history", "/similar/{item}", "/health", "/version", "/reload",
    }  # fmt: skip
    references = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert references <= set(document["components"]["schemas"])
    for address, methods in document["paths"].items():
        for operation in methods.values():
            assert (
                ("401" in operation["responses"])
                == ("security" in operation)
                == (address != "/health")
            )


def test_description_without_a_token_has_no_reload(describe):
    assert "/reload" not in describe(ServiceOptions())["paths"]


@pytest.mark.parametrize("name", ["page.html", "docs.html"])
def test_pages_fetch_nothing_from_elsewhere(name: str):
    answer = page(name)
    content = answer.body
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert policy.count("sha256-") == 2
    assert not re.search(rb"https?://|//[a-z]", content.replace(b'"//', b""))
    # A policy of hashes blocks attributes like these.
    assert not re.search(rb'\s(style|on\w+)="', content)


def test_pages_write_no_html_from_data():
    for name in ("page.html", "docs.html"):
        assert not re.search(
            rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write", page(name).body
        )
