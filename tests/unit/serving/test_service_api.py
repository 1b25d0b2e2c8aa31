import asyncio
import json
from pathlib import Path

import pytest
import torch
from service_support import Client, make_run

from pslrec.inference import TrainedModel
from pslrec.serving import Service, ServiceOptions
from pslrec.serving._served import ServedModel

USER = "user/3"


@pytest.fixture(scope="module")
def model(finished_run: Path) -> TrainedModel:
    return TrainedModel.load(finished_run)


def test_recommend_gives_what_the_model_gives(client, model):
    answer = client.post("/recommend", {"users": [USER, "user/0"], "k": 5})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    users = [USER, "user/0"]
    expected = model.recommend(torch.from_numpy(model.users.rows(users)), 5)
    found = answer.json()["recommendations"]
    assert [entry["user"] for entry in found] == users
    for entry, rows, scores in zip(found, expected.items, expected.scores, strict=True):
        assert [int(item["item"]) for item in entry["items"]] == model.items.ids(rows.tolist())
        assert [item["score"] for item in entry["items"]] == pytest.approx(
            scores.tolist(), rel=1e-5
        )


def test_seen_items_are_left_out_unless_they_are_wanted(client, model):
    body = {"users": [USER], "k": 1000, "with_history": True}
    without = client.post("/recommend", body).json()["recommendations"][0]
    everything = client.post("/recommend", {**body, "exclude_seen": False}).json()[
        "recommendations"
    ][0]
    history = {entry["item"] for entry in without["history"]}
    assert history
    assert {entry["item"] for entry in without["items"]}.isdisjoint(history)
    assert len(everything["items"]) == len(model.items)
    assert len(without["items"]) == len(model.items) - len(history)


def test_recommend_for_history_gives_what_the_model_gives(client, model):
    history = [10, "20", 30, 30]
    answer = client.post("/recommend-for-history", {"history": history, "k": 4})
    assert answer.status_code == 200
    rows = torch.from_numpy(model.items.rows([10, 20, 30])).long()
    expected = model.recommend_for([rows], 4)
    assert [int(entry["item"]) for entry in answer.json()["items"]] == model.items.ids(
        expected.items[0].tolist()
    )
    assert [entry["item"] for entry in answer.json()["history"]] == [10, 20, 30]
    assert answer.json()["ignored"] == []


def test_a_history_is_served_as_its_user_where_histories_make_users(tmp_path):
    path = make_run(tmp_path / "run", backbone="history")
    model = TrainedModel.load(path)
    service = Service(path)
    client = Client(service)
    items = model.items.series.to_list()
    history = [items[row] for row in model.frozen().train.rows.list_of(3)]
    (user,) = model.users.ids([3])
    everything = {"k": 10, "exclude_seen": False}
    known = client.post("/recommend", {"users": [user], **everything}).json()
    new = client.post("/recommend-for-history", {"history": history, **everything}).json()
    assert new["items"] == known["recommendations"][0]["items"]
    assert len(new["items"]) == 10
    service.close()


def test_similar_gives_what_the_model_gives(client, model):
    answer = client.get("/similar/10?k=3").json()
    expected = model.similar_items(torch.from_numpy(model.items.rows([10])), 3)
    assert answer["item"] == 10
    assert [int(entry["item"]) for entry in answer["items"]] == model.items.ids(
        expected.items[0].tolist()
    )


def test_numbers_that_javascript_would_round_travel_as_text(client):
    large = str(2**60)
    assert client.get(f"/similar/{large}").json()["item"] == large
    assert client.post("/recommend-for-history", {"history": [2**60]}).json()["history"] == [
        {"item": large}
    ]


def test_whole_numbers_may_be_written_with_a_point(client):
    answer = client.post("/recommend-for-history", content='{"history": [10.0], "k": 2.0}')
    assert (answer.status_code, len(answer.json()["items"]), answer.json()["history"]) == (
        200,
        2,
        [{"item": 10}],
    )


def test_reasons_are_the_nearest_items_of_the_history(client, model):
    body = {"users": [USER], "k": 3, "explain": 2, "with_history": True}
    answer = client.post("/recommend", body).json()["recommendations"][0]
    history = [entry["item"] for entry in answer["history"]]
    vectors = torch.nn.functional.normalize(model.item_vectors, dim=1)
    history_rows = model.items.rows([int(item) for item in history])
    for entry in answer["items"]:
        cosines = vectors[history_rows] @ vectors[int(model.items.rows([int(entry["item"])])[0])]
        best = [
            (history[place], float(cosines[place]))
            for place in cosines.argsort(descending=True)[:2].tolist()
        ]
        assert [reason["item"] for reason in entry["because"]] == [item for item, _ in best]
        assert [reason["similarity"] for reason in entry["because"]] == pytest.approx(
            [value for _, value in best], abs=1e-5
        )


def test_reasons_never_name_the_item_itself(client):
    body = {"history": [10, 20], "k": 30, "explain": 3, "exclude_seen": False}
    answer = client.post("/recommend-for-history", body).json()
    assert {entry["item"] for entry in answer["items"]} >= {10, 20}
    assert all(
        entry["item"] != reason["item"] for entry in answer["items"] for reason in entry["because"]
    )


def test_titles_come_with_items_where_there_are_some(finished_run, titles):
    model = ServedModel.load(finished_run, titles)
    assert model.title(model.items.row(10)) == "<b>Thing 1</b>"
    assert model.title(model.items.row(290)) is None


def test_health_and_version(client, finished_run):
    assert client.get("/health").json() == {"status": "ok"}
    facts = client.get("/version").json()
    assert (facts["run"], facts["loss"], facts["backbone"]) == ("first", "psl-relu", "mf")
    assert facts["items"] == 30
    assert str(finished_run.parent) not in json.dumps(facts)
    known = client.post("/recommend", {"users": [facts["example_user"]]})
    assert known.status_code == 200


def test_head_is_answered_like_get(client):
    assert client.ask("HEAD", "/health").status_code == 200


BAD_BODIES = {
    "no JSON": ("{", 400, "not valid JSON"),
    "empty": ("", 400, "not valid JSON"),
    "half a character": ('{"users": ["\\ud800"]}', 400, "not valid JSON"),
    "no UTF-8": (b'{"users": ["\xff"]}', 400, "not valid JSON"),
    "deep": ("[" * 100_000, 400, "not valid JSON"),
    "a list": ("[]", 422, "object"),
    "no users": ("{}", 422, "`users` is missing"),
    "users is text": ('{"users": "user/3"}', 422, "`users`"),
    "nobody": ('{"users": []}', 422, "`users`"),
    "a truth": ('{"users": [true]}', 422, "`users[0]` must be a whole number or text"),
    "a fraction": ('{"users": ["user/3", 1.5]}', 422, "`users[1]` must be a whole number or text"),
    "null": ('{"users": [null]}', 422, "`users[0]`"),
    "too many users": (json.dumps({"users": [USER] * 257}), 422, "at most 256"),
    "too many items": (json.dumps({"users": [USER] * 30, "k": 1000}), 422, "20,000 items"),
    "unknown user": ('{"users": ["nobody"]}', 404, "unknown user `nobody`"),
    "unknown number": ('{"users": [7]}', 404, "unknown user `7`"),
    "huge number": ('{"users": [1' + "0" * 100 + "]}", 422, "`users[0]`"),
    "endless number": ('{"users": [1' + "0" * 5000 + "]}", 400, "not valid JSON"),
    "k is 0": (
        '{"users": ["user/3"], "k": 0}',
        422,
        "`k` must be a whole number from 1 to 1000, got `0`",
    ),
    "k is huge": ('{"users": ["user/3"], "k": 1000000000}', 422, "`k` must be"),
    "k is text": ('{"users": ["user/3"], "k": "5"}', 422, "`k` must be"),
    "k is no number": ('{"users": ["user/3"], "k": NaN}', 422, "`k` must be"),
    "unknown setting": ('{"users": ["user/3"], "limit": 5}', 422, "`limit` is not a setting"),
    "explain is huge": ('{"users": ["user/3"], "explain": 11}', 422, "`explain`"),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_bad_body_gets_the_right_status_and_one_sentence(client, name):
    body, status, words = BAD_BODIES[name]
    answer = client.post("/recommend", content=body)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
    assert words in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert len(answer.json()["error"]) < 300


BAD_ADDRESSES = {
    "nothing": ("GET", "/nothing", 404, "nothing at this address"),
    "wrong method": ("DELETE", "/recommend", 405, "takes POST"),
    "get a post": ("GET", "/recommend", 405, "takes POST"),
    "unknown item": ("GET", "/similar/zsh", 404, "unknown item `zsh`"),
    "no item": ("GET", "/similar/", 404, "unknown item"),
    "encoded climb": (
        "GET",
        "/similar/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        404,
        "unknown item `../../etc/passwd`",
    ),
    "null byte": ("GET", "/similar/%00", 404, "unknown item"),
    "other digits": ("GET", "/similar/%D9%A1%D9%A0", 404, "unknown item"),
    "k is 0": ("GET", "/similar/10?k=0", 422, "`k` must be"),
    "k is negative": ("GET", "/similar/10?k=-1", 422, "`k` must be"),
    "k is huge": ("GET", "/similar/10?k=1000000000", 422, "`k` must be"),
    "k is endless": ("GET", "/similar/10?k=" + "9" * 5000, 422, "`k` must be"),
    "k is empty": ("GET", "/similar/10?k=", 422, "`k` must be"),
    "unknown setting": ("GET", "/similar/10?limit=3", 422, "`limit` is not a setting"),
    "many settings": (
        "GET",
        "/similar/10?" + "&".join(f"a{n}=1" for n in range(50)),
        422,
        "`a0` is not a setting",
    ),
    "reload without token": ("POST", "/reload", 403, "SIGHUP"),
}


@pytest.mark.parametrize("name", BAD_ADDRESSES)
def test_bad_address_gets_the_right_status_and_one_sentence(client, name):
    method, path, status, words = BAD_ADDRESSES[name]
    answer = client.ask(method, path)
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_wrong_method_says_which_are_right(client):
    assert client.ask("PUT", "/health").headers["allow"] == "GET, HEAD"


def test_unknown_items_of_a_history_are_refused_or_reported(client):
    body = {"history": [10, "zsh"], "k": 2}
    refused = client.post("/recommend-for-history", body)
    assert refused.status_code == 404
    assert "unknown item `zsh`" in refused.json()["error"]
    taken = client.post("/recommend-for-history", {**body, "ignore_unknown": True})
    assert (taken.status_code, taken.json()["ignored"]) == (200, ["zsh"])
    nothing_left = client.post(
        "/recommend-for-history", {"history": ["zsh"], "ignore_unknown": True}
    )
    assert nothing_left.status_code == 404


def test_history_that_is_too_long_is_refused(client):
    answer = client.post("/recommend-for-history", {"history": [10] * 2001})
    assert (answer.status_code, "at most 2000" in answer.json()["error"]) == (422, True)


def test_a_failure_is_a_sentence_for_the_client_and_a_trace_for_the_log(
    client, monkeypatch, caplog
):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr(ServedModel, "lists_for_users", broken)
    answer = client.post("/recommend", {"users": [USER]})
    assert answer.status_code == 500
    assert answer.json() == {"error": "the service failed to answer this request; its log says why"}
    assert "a secret detail" in caplog.text


def test_concurrent_requests_share_products_and_get_their_own_answers(client):
    async def ask_all() -> list[object]:
        users = [f"user/{number}" for number in range(30)]
        asked = [
            client.ask_soon("POST", "/recommend", json={"users": [user], "k": 1 + place % 7})
            for place, user in enumerate(users)
        ]
        return [answer.json()["recommendations"][0] for answer in await asyncio.gather(*asked)]

    before = client.service.lists.n_batches
    together = asyncio.run(ask_all())
    n_batches = client.service.lists.n_batches - before
    assert n_batches < 15
    for place, entry in enumerate(together):
        alone = client.post("/recommend", {"users": [f"user/{place}"], "k": 1 + place % 7}).json()
        assert entry["user"] == f"user/{place}"
        assert [item["item"] for item in entry["items"]] == [
            item["item"] for item in alone["recommendations"][0]["items"]
        ]


def test_service_needs_a_finished_run(tmp_path):
    from pslrec.errors import PslrecError

    with pytest.raises(PslrecError, match="is not a run directory"):
        Service(tmp_path / "absent", options=ServiceOptions())
