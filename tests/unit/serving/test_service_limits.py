import asyncio
import threading
from pathlib import Path

import pytest
from service_support import Client, make_run

from pslrec.errors import ConfigError
from pslrec.serving import Service, ServiceOptions
from pslrec.serving._served import ServedModel

TOKEN = "a-token-of-some-length"


@pytest.fixture
def limited(finished_run: Path):
    services = []

    def make(**limits: object) -> Client:
        services.append(Service(finished_run, options=ServiceOptions(**limits)))
        return Client(services[-1])

    yield make
    for service in services:
        service.close()


@pytest.fixture(scope="module")
def secured(finished_run: Path):
    service = Service(finished_run, options=ServiceOptions(token=TOKEN))
    yield service
    service.close()


def test_token_is_asked_for_everywhere_but_where_nothing_can_be_learnt(secured):
    without = Client(secured)
    for path in ("/version", "/similar/10", "/nothing"):
        answer = without.get(path)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert without.post("/recommend", {"users": ["user/3"]}).status_code == 401
    for path in ("/", "/docs", "/openapi.json", "/health"):
        assert without.get(path).status_code == 200


@pytest.mark.parametrize(
    "given", ["", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN]
)
def test_wrong_token_is_refused(secured, given):
    assert Client(secured, {"authorization": given}).get("/version").status_code == 401


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Bearer  {TOKEN} "])
def test_right_token_is_taken(secured, given):
    assert Client(secured, {"authorization": given}).get("/version").status_code == 200


@pytest.mark.parametrize("token", ["", "two words", "ü", "a\nb"])
def test_token_that_can_not_be_sent_is_an_error(token):
    with pytest.raises(ConfigError, match="`token`"):
        ServiceOptions(token=token)


def test_body_that_is_too_large_is_refused_by_its_declared_and_by_its_true_size(limited):
    client = limited(largest_body=1000)

    async def pieces():
        for _ in range(100):
            yield b" " * 100

    for content in (b" " * 1001, pieces()):
        answer = client.post("/recommend", content=content)
        assert (answer.status_code, "1,000 bytes" in answer.json()["error"]) == (413, True)
    assert client.post("/recommend", {"users": ["user/3"]}).status_code == 200


def test_requests_beyond_the_limit_are_told_to_come_again(limited, monkeypatch):
    client = limited(concurrent_requests=2)
    go_on, original = threading.Event(), ServedModel.lists_for_users

    def slow(*arguments: object, **options: object) -> object:
        go_on.wait(10)
        return original(*arguments, **options)

    monkeypatch.setattr(ServedModel, "lists_for_users", slow)

    async def crowd() -> tuple[list[int], int, int]:
        body = {"users": ["user/3"]}
        waiting = [
            asyncio.create_task(client.ask_soon("POST", "/recommend", json=body)) for _ in range(2)
        ]
        await asyncio.sleep(0.05)
        refused = await client.ask_soon("POST", "/recommend", json=body)
        alive = await client.ask_soon("GET", "/health")
        go_on.set()
        assert refused.headers["retry-after"] == "1"
        return (
            [(await task).status_code for task in waiting],
            refused.status_code,
            alive.status_code,
        )

    assert asyncio.run(crowd()) == ([200, 200], 503, 200)


def test_longest_list_can_be_set(limited):
    client = limited(largest_k=3)
    assert client.post("/recommend", {"users": ["user/3"], "k": 3}).status_code == 200
    assert client.post("/recommend", {"users": ["user/3"], "k": 4}).status_code == 422
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["RecommendRequest"]["properties"]["k"]["maximum"] == 3


def test_reload_serves_the_run_that_the_link_points_to_now(finished_run, other_run, tmp_path):
    link = tmp_path / "current"
    link.symlink_to(finished_run)
    service = Service(link, options=ServiceOptions(token=TOKEN))
    client = Client(service, {"authorization": f"Bearer {TOKEN}"})
    before = client.get("/version").json()
    switched = tmp_path / "next"
    switched.symlink_to(other_run)
    switched.replace(link)
    answer = client.post("/reload")
    after = client.get("/version").json()
    service.close()
    assert answer.status_code == 200
    assert (before["run"], after["run"]) == ("first", "second")
    assert answer.json()["model"] == after["model"] != before["model"]


def test_reload_that_fails_keeps_the_old_model(finished_run, tmp_path):
    link = tmp_path / "current"
    link.symlink_to(finished_run)
    service = Service(link, options=ServiceOptions(token=TOKEN))
    client = Client(service, {"authorization": f"Bearer {TOKEN}"})
    link.unlink()
    answer = client.post("/reload")
    assert (answer.status_code, "the old model stays" in answer.json()["error"]) == (409, True)
    assert client.post("/recommend", {"users": ["user/3"]}).status_code == 200
    service.close()


def test_reload_under_load_drops_no_request_and_mixes_no_models(finished_run, other_run, tmp_path):
    link = tmp_path / "current"
    link.symlink_to(finished_run)
    service = Service(link, options=ServiceOptions(token=TOKEN))
    client = Client(service, {"authorization": f"Bearer {TOKEN}"})
    expected = {}
    for run in (finished_run, other_run):
        model = ServedModel.load(run)
        expected[model.fingerprint] = [
            [model.items.names[item] for item in lists[0][0].items]
            for lists in (
                model.lists_for_users([_job(user)], exclude_seen=True) for user in range(5)
            )
        ]

    users = service.model.users.names[:5]
    seen: list[str] = []

    async def ask(is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            answer = await client.ask_soon("POST", "/recommend", json={"users": users, "k": 5})
            assert answer.status_code == 200
            found = answer.json()
            lists = [
                [item["item"] for item in entry["items"]] for entry in found["recommendations"]
            ]
            assert lists == expected[found["model"]]
            seen.append(found["model"])

    async def swap_meanwhile() -> None:
        is_over = asyncio.Event()
        askers = [asyncio.create_task(ask(is_over)) for _ in range(4)]
        for run in (other_run, finished_run, other_run):
            link.unlink()
            link.symlink_to(run)
            current = (await client.ask_soon("POST", "/reload")).json()["model"]
            while not seen or seen[-1] != current:
                await asyncio.sleep(0.01)
        is_over.set()
        await asyncio.gather(*askers)

    asyncio.run(swap_meanwhile())
    assert set(seen) == set(expected)
    service.close()


def test_two_reloads_at_once_are_one_too_many(secured):
    client = Client(secured, {"authorization": f"Bearer {TOKEN}"})

    async def twice() -> list[int]:
        answers = await asyncio.gather(*(client.ask_soon("POST", "/reload") for _ in range(2)))
        return sorted(answer.status_code for answer in answers)

    assert asyncio.run(twice()) == [200, 409]


def test_ids_of_users_may_be_numbers(tmp_path):
    service = Service(make_run(tmp_path / "numbers", prefix="1000"))
    client = Client(service)
    for user in (10003, "10003"):
        assert (
            client.post("/recommend", {"users": [user]}).json()["recommendations"][0]["user"]
            == 10003
        )
    service.close()


def _job(user: int):
    from pslrec.serving._served import ListJob

    return ListJob([user], 5)
