"""What rules cost: requests with rules beside plain ones, asked in turns so that load falls on all alike.

Each round asks for the same user's list once by each rule. The ratio of a round is the time with the rule over the
time of the plain request in the same round; its median says little about the machine's load.
"""

import http.client
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.machine import load, usable_cores
from benchmarks.serving import server, train_model
from pslrec import Recommender
from pslrec.files import whole_file

DESCRIPTION = (
    "time of a request with rules relative to a plain one, in turns, Amazon-Electronic, k = 20"
)
K = 20
N_GENRES = 20
N_CHOSEN = 500
TARGET = 1.2
PLAIN = "none"
Body = dict[str, Any]


def run(
    rounds: int = 400,
    *,
    run_path: Path | None = None,
    report: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Train a model, and ask for lists with rules and without, over HTTP and in Python.

    Args:
        rounds: how often each rule is asked for.
        run_path: a finished run to take instead of training one.
        report: is told what is being done.
    """
    tell = report or (lambda _: None)
    with tempfile.TemporaryDirectory() as directory:
        path = run_path
        if path is None:
            tell("training a model")
            path = Path(directory) / "run"
            train_model(path)
        recommender = Recommender.load(path)
        table = Path(directory) / "items.parquet"
        frame = _items(recommender.items_)
        with whole_file(table) as file:
            frame.write_parquet(file)
        rules = _rules(recommender.items_.to_list())
        users = recommender.users_.sample(rounds, with_replacement=True, seed=0).to_list()
        tell("asking over HTTP")
        with server(path, "--item-table", str(table)) as (port, _):
            http_times = _over_http(port, users, rules)
        tell("asking in Python")
        recommender.use_item_table(frame)
        python_times = _in_python(recommender, users, rules)
    rows = []
    for name in http_times:
        row: Body = {"rules": name}
        for door, times in (("HTTP", http_times), ("Python", python_times)):
            ratios = np.array(times[name]) / np.array(times[PLAIN])
            row[f"{door} ms"] = round(statistics.median(times[name]) * 1e3, 2)
            row[f"{door} ratio"] = round(float(np.median(ratios)), 3)
        rows.append(row)
    return {
        "rows": rows,
        "rounds": rounds,
        "items": len(recommender.items_),
        "cores": usable_cores(),
        "target": f"at most {TARGET} times a plain request",
        "is_met": all(
            row["HTTP ratio"] <= TARGET and row["Python ratio"] <= TARGET for row in rows
        ),
        "loads": load(),
    }


def _items(ids: pl.Series) -> pl.DataFrame:
    """A made-up table: a genre and a year for each item."""
    random = np.random.default_rng(0)
    n_items = len(ids)
    genres = random.integers(N_GENRES, size=n_items)
    return pl.DataFrame(
        {
            "item": ids,
            "title": [f"Title {row}" for row in range(n_items)],
            "genre": [f"genre {genre}" for genre in genres],
            "year": random.integers(1950, 2020, n_items),
        }
    )


def _rules(items: list[Any]) -> dict[str, Callable[[int], Body]]:
    """The rules by name, each for a round; most are the same in every round."""
    random = np.random.default_rng(1)
    some = [items[row] for row in random.choice(len(items), N_CHOSEN, replace=False)]
    where = 'genre in ["genre 1", "genre 2", "genre 3"] and year >= 1960 or genre == "genre 4"'
    return {
        PLAIN: lambda _: {},
        "exclude 10 items, others each time": lambda turn: {
            "exclude": [some[(turn + place) % N_CHOSEN] for place in range(10)]
        },
        f"choose from {N_CHOSEN} items": lambda _: {"items": some},
        "where, repeated": lambda _: {"where": where},
        "where, half of the items": lambda _: {"where": "year >= 1985"},
        "where, another condition each time": lambda turn: {"where": f"year >= 1960.{turn:05}"},
        "at most 2 of a genre": lambda _: {"at_most": {"genre": 2}},
        "all of them": lambda _: {
            "exclude": some[:10],
            "where": "year >= 1960",
            "at_most": {"genre": 2},
        },
    }


def _in_turns(
    users: list[Any],
    rules: dict[str, Callable[[int], Body]],
    prepare: Callable[[Any, Body], Any],
    ask: Callable[[Any], None],
    clock: Callable[[], float],
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in rules}
    random = np.random.default_rng(2)
    names = list(rules)
    # Warm-up.
    for name in names:
        ask(prepare(users[0], rules[name](len(users))))
    for turn, user in enumerate(users):
        # In another order each time, so that no rule always follows the same one.
        for place in random.permutation(len(names)):
            prepared = prepare(user, rules[names[place]](turn))
            started = clock()
            ask(prepared)
            times[names[place]].append(clock() - started)
    return times


def _over_http(
    port: int, users: list[Any], rules: dict[str, Callable[[int], Body]]
) -> dict[str, list[float]]:
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def prepare(user: Any, rule: Body) -> str:
        return json.dumps({"users": [user], "k": K, **rule})

    def ask(content: str) -> None:
        connection.request("POST", "/recommend", content)
        answer = connection.getresponse()
        answered = answer.read()
        if answer.status != 200:
            raise RuntimeError(answered.decode())

    with closing(connection):
        return _in_turns(users, rules, prepare, ask, time.perf_counter)


def _in_python(
    recommender: Recommender, users: list[Any], rules: dict[str, Callable[[int], Body]]
) -> dict[str, list[float]]:
    def prepare(user: Any, rule: Body) -> Body:
        return {"users": user, "k": K, **rule}

    def ask(asked: Body) -> None:
        recommender.recommend(**asked)

    # Processor time, which other programs disturb less; over HTTP two processes take part.
    return _in_turns(users, rules, prepare, ask, time.process_time)


def markdown(record: dict[str, Any]) -> str:
    """A sentence and a table for the documentation."""
    result, machine = record["result"], record["machine"]
    rows = result["rows"]
    lines = [
        list(rows[0]),
        ["---", *["---:"] * (len(rows[0]) - 1)],
        *([str(cell) for cell in row.values()] for row in rows),
    ]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return (
        f"One user per request, k = {K}, {result['items']:,} items; {result['rounds']} rounds, each of one request by "
        "every rule in random order. A ratio is the median over rounds of the time with the rule over that of the plain "
        f"request of the same round, by the clock over HTTP and by "
        f"processor time in Python ({machine['processor']}, {record['measured']}, load {machine['load_before'][0]:g} on "
        f"{machine['cores']} cores: the milliseconds are those of a busy machine, the ratios are not affected much)."
        f"\n\n{table}"
    )
