import asyncio
import re
import threading
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from pslrec.data import Vocabulary
from pslrec.errors import DataError, PslrecError, UnknownNameError
from pslrec.serving import ServiceOptions
from pslrec.serving.batching import Batcher
from pslrec.serving.description import describe
from pslrec.serving.identifiers import Identifiers, shortened
from pslrec.serving.pages import page
from pslrec.serving.titles import read_titles


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
        rest = [asyncio.create_task(batcher.answer(kind, job)) for kind, job in zip("aabaa", range(1, 6), strict=True)]
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
    pl.DataFrame({"movieId": [1, 3], "title": [" One\n two", None]}).write_parquet(tmp_path / "titles.parquet")
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


def test_missing_table_is_an_error(tmp_path: Path):
    with pytest.raises(DataError, match="absent"):
        read_titles(tmp_path / "absent.csv", ITEMS)


def test_description_names_every_address_and_resolves_every_reference():
    document = describe(ServiceOptions(token="secret"))
    assert set(document["paths"]) == {
        "/recommend", "/recommend-for-history", "/similar/{item}", "/health", "/version", "/reload",
    }  # fmt: skip
    references = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert references <= set(document["components"]["schemas"])
    for address, methods in document["paths"].items():
        for operation in methods.values():
            assert ("401" in operation["responses"]) == ("security" in operation) == (address != "/health")


def test_description_without_a_token_has_no_reload():
    assert "/reload" not in describe(ServiceOptions())["paths"]


@pytest.mark.parametrize("name", ["page.html", "docs.html"])
def test_pages_fetch_nothing_from_elsewhere(name: str):
    content, headers = page(name)
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert policy.count("sha256-") == 2
    assert not re.search(rb"https?://|//[a-z]", content.replace(b'"//', b""))
    # A policy of hashes blocks attributes like these.
    assert not re.search(rb'\s(style|on\w+)="', content)


def test_pages_write_no_html_from_data():
    for name in ("page.html", "docs.html"):
        assert not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write", page(name)[0])
