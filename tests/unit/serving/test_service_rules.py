"""Rules, item tables, search and random users over HTTP."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from service_support import N_ITEMS, Client, item_id, make_run

from pslrec.inference import Rules
from pslrec.inference._rule_keeper import KEPT_RULES, LONGEST_KEPT
from pslrec.serving import Service
from pslrec.serving._search import TitleSearch

USER = "user/3"
EVEN = {str(item_id(row)) for row in range(2, N_ITEMS - 1, 2)}


@pytest.fixture(scope="module", params=["mf", "history"])
def client(
    request: pytest.FixtureRequest, titles: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    run = make_run(tmp_path_factory.mktemp("rules") / request.param, backbone=request.param)
    service = Service(run, item_table=titles)
    yield Client(service)
    service.close()


def items(client: Client, path: str = "/recommend", **body: object) -> list[str]:
    everything = {"k": N_ITEMS, "exclude_seen": False, **body}
    if path == "/recommend":
        answer = client.post(path, {"users": [USER], **everything})
        assert answer.status_code == 200, answer.text
        (found,) = answer.json()["recommendations"]
    else:
        answer = client.post(path, {"history": [10, 20], **everything})
        assert answer.status_code == 200, answer.text
        found = answer.json()
    return [str(entry["item"]) for entry in found["items"]]


@pytest.mark.parametrize("path", ["/recommend", "/recommend-for-history"])
def test_rules_hold_for_users_and_histories(client: Client, path: str) -> None:
    plain = items(client, path)
    assert len(plain) == N_ITEMS
    assert set(items(client, path, where='kind == "even"')) == EVEN
    assert set(items(client, path, items=[10, "20", 30], exclude=["30"])) == {"10", "20"}
    kept = items(client, path, at_most={"kind": 1})
    numbers = [plain.index(item) for item in kept]
    assert numbers == sorted(numbers)
    assert len([item for item in kept if item in EVEN]) == 1
    # The first item has no kind, and the last is not in the table; neither is limited.
    assert {str(item_id(0)), str(item_id(N_ITEMS - 1))} <= set(kept)
    assert len(kept) == 4


def test_items_are_left_out_for_single_users(client: Client) -> None:
    users = [USER, "user/4"]
    body = {"users": users, "k": 3}
    plain = client.post("/recommend", body).json()["recommendations"]
    first = [entry["item"] for entry in plain[0]["items"]]
    found = client.post("/recommend", {**body, "exclude_by_user": {USER: first}}).json()
    assert found["recommendations"][1] == plain[1]
    other = [entry["item"] for entry in found["recommendations"][0]["items"]]
    assert not set(other) & set(first)


def test_unknown_ids_are_refused_or_ignored(client: Client) -> None:
    refused = {
        "users": {"users": [USER, "nobody"]},
        "exclude": {"users": [USER], "exclude": [7]},
        "items": {"users": [USER], "items": ["zsh"]},
        "by user": {"users": [USER], "exclude_by_user": {"nobody": [10]}},
    }
    for body in refused.values():
        assert client.post("/recommend", body).status_code == 404
        answer = client.post("/recommend", {**body, "ignore_unknown": True})
        assert answer.status_code == 200
        assert [entry["user"] for entry in answer.json()["recommendations"]] == [USER]
    both = client.post("/recommend", {"users": ["nobody", 7], "ignore_unknown": True}).json()
    assert (both["recommendations"], both["ignored"]) == ([], ["nobody", 7])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"where": "kind =="}, "`where` needs a number, text in quotes"),
        ({"where": "knd == 'even'"}, "did you mean `kind`?"),
        ({"where": "__import__('os').system('true')"}, "`where` cannot be read at character 17"),
        ({"where": "x" * 2001}, "`where`"),
        ({"where": 3}, "`where`"),
        ({"at_most": {"knd": 1}}, "did you mean `kind`?"),
        ({"at_most": {"kind": 0}}, "`at_most.kind`"),
        ({"at_most": [1]}, "`at_most`"),
        ({"exclude": [1.5]}, "`exclude[0]` must be a whole number or text"),
        ({"exclude_by_user": {"user/3": 10}}, "`exclude_by_user"),
    ],
)
def test_wrong_rules_are_one_sentence(client: Client, body: dict[str, object], words: str) -> None:
    answer = client.post("/recommend", {"users": [USER], **body})
    assert answer.status_code == 422
    assert words in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert len(answer.json()["error"]) < 500


def test_rules_without_a_table_are_refused(finished_run: Path) -> None:
    service = Service(finished_run)
    answer = Client(service).post("/recommend", {"users": [USER], "where": "kind == 'even'"})
    assert (answer.status_code, "needs a table of items" in answer.json()["error"]) == (422, True)
    assert Client(service).get("/version").json()["columns"] == []
    service.close()


def test_details_and_columns_come_from_the_table(client: Client) -> None:
    facts = client.get("/version").json()
    assert facts["titles"] is True
    assert facts["columns"] == [
        {"name": "title", "kind": "text", "values": []},
        {"name": "kind", "kind": "text", "values": ["even", "odd"]},
        {"name": "number", "kind": "number", "values": []},
    ]
    body = {"history": [10], "details": True, "k": N_ITEMS}
    answer = client.post("/recommend-for-history", body).json()
    assert answer["history"] == [
        {"item": 10, "title": "<b>Thing 1</b>", "details": {"kind": "odd", "number": 1}}
    ]
    by_item = {str(entry["item"]): entry["details"] for entry in answer["items"]}
    assert by_item[str(item_id(0))] == {"number": 0}
    assert by_item[str(item_id(N_ITEMS - 1))] == {}
    assert (
        "details" not in client.post("/recommend-for-history", {"history": [10]}).json()["items"][0]
    )


def test_similar_items_follow_a_condition(client: Client) -> None:
    answer = client.get(
        f"/similar/10?k={N_ITEMS}&where=kind%20%3D%3D%20%22even%22&details=true"
    ).json()
    assert {str(entry["item"]) for entry in answer["items"]} == EVEN
    assert answer["details"] == {"kind": "odd", "number": 1}
    assert client.get("/similar/10?details=maybe").status_code == 422
    assert client.get("/similar/10?where=kind").status_code == 422


def test_search_finds_titles_and_ids(client: Client) -> None:
    def found(text: str) -> list[str]:
        answer = client.get(f"/search?text={text}&k=50")
        return [str(entry["item"]) for entry in answer.json()["items"]]

    assert found("THING%2020") == ["200"]
    assert found("290")[0] == "290"
    assert found("no%20such") == []
    assert len(found("")) == N_ITEMS
    assert client.get("/search").status_code == 422
    assert client.get("/search?text=a&k=51").status_code == 422
    assert client.get("/search?text=thing&k=1&details=true").json()["items"][0]["details"]


def test_better_matches_come_first_and_of_equals_the_popular_ones() -> None:
    import numpy as np

    titles = ["Big", "The Big Sleep", "Ambigram", "Big Fish", None, "The Big Short"]
    search = TitleSearch([1, 2, 3, 4, "bigfoot", 6], titles, np.array([0, 1, 9, 1, 2, 3]))
    assert search.find(" bIg ", 9) == [0, 4, 3, 5, 1, 2]
    assert search.find("big", 2) == [0, 4]
    assert search.find("", 2) == [2, 5]
    assert search.find("3", 9) == [2]


def test_random_users_have_items_and_differ(client: Client) -> None:
    drawn = {client.get("/random-user").json()["user"] for _ in range(30)}
    assert len(drawn) > 3
    body = {"users": sorted(drawn), "with_history": True}
    answers = client.post("/recommend", body).json()["recommendations"]
    assert all(answer["history"] for answer in answers)


def test_requests_with_the_same_rules_are_computed_together(client: Client) -> None:
    async def ask_all() -> list[list[object]]:
        asked = []
        for number in range(24):
            body = {"users": [f"user/{number}"], "k": 5, "where": f"number > {number % 2}"}
            asked.append(client.ask_soon("POST", "/recommend", json=body))
        answers = await asyncio.gather(*asked)
        return [answer.json()["recommendations"][0]["items"] for answer in answers]

    before = client.service.lists.n_batches
    together = asyncio.run(ask_all())
    assert client.service.lists.n_batches - before < 16
    for number, entries in enumerate(together):
        body = {"users": [f"user/{number}"], "k": 5, "where": f"number > {number % 2}"}
        alone = client.post("/recommend", body).json()["recommendations"][0]["items"]
        assert [entry["item"] for entry in entries] == [entry["item"] for entry in alone]


def test_a_new_condition_on_a_large_table_is_read_in_a_thread(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pslrec.inference import _rule_keeper

    expected = items(client, where="number > 11")
    monkeypatch.setattr(_rule_keeper, "LARGE_TABLE", 1)
    keeper = client.service.model.rules
    keeper._kept.clear()
    assert keeper.is_slow(Rules(where="number > 11"))
    assert items(client, where="number > 11") == expected
    assert not keeper.is_slow(Rules(where="number > 11"))
    assert not keeper.is_slow(Rules(exclude=[10]))
    wrong = client.post("/recommend", {"users": [USER], "where": "number >"})
    assert wrong.status_code == 422


def test_only_few_and_short_rules_are_kept(client: Client) -> None:
    keeper = client.service.model.rules
    for number in range(2 * KEPT_RULES):
        items(client, where=f"number > {number}")
    assert len(keeper._kept) == KEPT_RULES
    before = dict(keeper._kept)
    items(client, exclude=[10] * (LONGEST_KEPT + 1))
    assert dict(keeper._kept) == before
