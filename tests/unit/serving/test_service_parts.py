import asyncio
import re
import threading
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from service_support import Client

from pslrec.data import Vocabulary
from pslrec.errors import DataError, PslrecError, UnknownNameError, shortened
from pslrec.serving import Service, ServiceOptions
from pslrec.serving._batching import Batcher
from pslrec.serving._identifiers import Identifiers
from pslrec.serving._pages import page


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
        "/recommend", "/recommend-for-history", "/similar/{item}", "/search", "/random-user", "/health",
        "/version", "/reload",
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
