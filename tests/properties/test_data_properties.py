import csv
import gzip
import io
import json
import os
import tempfile
import zipfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pslrec.data import Interactions, Preparation, load, prepare, read_interactions, read_published
from pslrec.data._preparation import k_core_mask
from pslrec.data._writing import write_dataset, write_interactions
from pslrec.data.splits import SPLITS, fraction_validation, paper_validation
from pslrec.errors import DataError, PslrecError

# Few examples in every run; PSLREC_EXAMPLES asks for more.
few = settings(
    deadline=None, max_examples=int(os.environ.get("PSLREC_EXAMPLES", "15")), derandomize=True
)

# Surrogates are in no file; NUL marks one as binary.
texts = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=8
)
awkward = st.sampled_from(
    [
        "a,b",
        'q"',
        '""',
        "\t",
        "x\ny",
        "\r",
        " ",
        "007",
        "7",
        "-0",
        "+1",
        "ä",
        "nan",
        "null",
        "user",
        "::",
    ]
)
identifiers = st.one_of(awkward, texts, st.integers(-50, 50).map(str))


numbers = st.integers(0, 7)


def pairs(ids=numbers, least=1, most=40):
    return st.lists(st.tuples(ids, ids), min_size=least, max_size=most)


@st.composite
def logs(draw, ids=numbers, least=1, most=40):
    """Interactions with or without ratings, times and weights, repeated pairs and all."""
    drawn = draw(pairs(ids, least, most))
    values = st.floats(-1e6, 1e6, width=32).filter(
        lambda number: number == 0 or abs(number) > 1e-30
    )
    columns = {
        "ratings": draw(st.none() | st.lists(values, min_size=len(drawn), max_size=len(drawn))),
        "timestamps": draw(
            st.none() | st.lists(st.integers(0, 10**10), min_size=len(drawn), max_size=len(drawn))
        ),
        "weights": draw(
            st.none()
            | st.lists(st.floats(0.5, 1e6, width=32), min_size=len(drawn), max_size=len(drawn))
        ),
    }
    users, items = zip(*drawn, strict=True)
    return Interactions.from_ids(users, items, **columns)


def same(one, other):
    return (
        one.to_frame().equals(other.to_frame())
        and one.user_vocabulary == other.user_vocabulary
        and one.item_vocabulary == other.item_vocabulary
    )


@pytest.fixture(scope="module")
def directory():
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
@few
@given(log=logs(identifiers))
def test_what_is_written_comes_back(directory, ending, log):
    path = directory / f"log.{ending}"
    write_interactions(log, path)
    assert same(read_interactions(path), log)


@few
@given(log=logs(identifiers))
def test_what_is_in_a_frame_comes_back(log):
    assert same(read_interactions(log.to_frame()), log)


@few
@given(log=logs(st.integers(0, 9)))
def test_matrix_of_distinct_pairs_comes_back(log):
    distinct = prepare(log, Preparation(weights="count"))
    again = read_interactions(distinct.matrix())
    assert np.array_equal(again.matrix().toarray(), distinct.matrix().toarray())


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
@few
@given(
    log=logs(identifiers, least=2),
    ends=st.sampled_from(["\n", "\r\n"]),
    blank=st.integers(0, 2),
    packed=st.booleans(),
)
def test_tables_of_other_programs_are_read(directory, separator, log, ends, blank, packed):
    frame = log.to_frame()
    text = io.StringIO()
    text.write(ends * blank)
    # Every text in quotes: others do not agree on what else needs them.
    writer = csv.writer(
        text, delimiter=separator, lineterminator=ends, quoting=csv.QUOTE_NONNUMERIC
    )
    writer.writerow(frame.columns)
    writer.writerows(frame.rows())
    content = text.getvalue().encode()
    path = directory / ("table.csv.gz" if packed else "table.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    assert same(read_interactions(path, separator=separator), log)


@few
@given(
    log=logs(st.one_of(st.integers(-(2**62), 2**62), texts.map(lambda text: f"a{text}")).map(str))
)
def test_json_lines_of_other_programs_are_read(directory, log):
    records = log.to_frame().to_dicts()
    path = directory / "log.jsonl"
    path.write_text(
        "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records),
        encoding="utf-8",
    )
    assert same(read_interactions(path), log)


fields = st.one_of(
    identifiers,
    st.sampled_from(
        [
            "",
            " ",
            "user",
            "item",
            "rating",
            "timestamp",
            "1",
            "2.5",
            "-1",
            "inf",
            "1e999",
            "4,5",
            "2020-01-01",
        ]
    ),
    st.floats().map(str),
    st.integers().map(str),
)
pieces = st.one_of(
    fields,
    st.sampled_from([",", "\t", ";", "::", "\n", "\r\n", "\r", '"', '""', "user,item\n", "\ufeff"]),
)
messy_text = st.lists(pieces, max_size=40).map("".join).map(str.encode)
messy_table = st.builds(
    lambda separator, rows: "\n".join(
        separator.join(row) for row in [["user", "item", "rating", "ts"], *rows]
    ).encode(),
    st.sampled_from([",", "\t", ";"]),
    st.lists(st.lists(fields, min_size=1, max_size=6), max_size=10),
)
json_values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), identifiers, st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from("ab"), st.integers(), max_size=2),
)  # fmt: skip
messy_json = st.lists(
    st.one_of(
        st.dictionaries(
            st.sampled_from(["user", "item", "rating", "ts", "x"]), json_values, max_size=5
        ).map(json.dumps),
        json_values.map(json.dumps),
        st.sampled_from(["", "{", "}", '{"user":1,"item":2}', '{"user":"a","item":"b"}']),
    ),
    max_size=8,
).map(lambda lines: "\n".join(lines).encode())
messy = st.one_of(messy_text, messy_table, messy_json, st.binary(max_size=60))
ENDINGS = ["csv", "tsv", "txt", "dat", "jsonl", "inter", "parquet", "csv.gz", "zip"]


@pytest.mark.parametrize("ending", ENDINGS)
@few
@given(content=messy, packed=st.booleans())
@example(content=b'user,item\n"', packed=False)
@example(content=b"user,item,ts\na,b,1e300", packed=False)
@example(content=b"user,item\n\xff,b", packed=True)
def test_messy_files_are_read_or_explained(directory, ending, content, packed):
    path = directory / f"messy.{ending}"
    path.write_bytes(gzip.compress(content) if packed else content)
    with suppress(PslrecError):
        log = load(path)
        assert len(log) > 0
        assert log.user_counts().min() > 0


@few
@given(
    train=messy,
    test=messy,
    listed=st.none() | messy_text,
    name=st.sampled_from(["train.tsv", "train.csv", "train.txt", "x/train.tsv"]),
)
def test_messy_splits_are_read_or_explained(directory, train, test, listed, name):
    path = directory / "messy.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, train)
        archive.writestr(name.replace("train", "test"), test)
        if listed is not None:
            archive.writestr("user_list.tsv", listed)
    with suppress(PslrecError):
        read_published(path)


@few
@given(log=logs(), cut=st.integers(0, 200), ending=st.sampled_from(["csv.gz", "parquet"]))
def test_truncated_files_are_refused(directory, log, cut, ending):
    whole, short = directory / "whole.csv", directory / f"short.{ending}"
    write_interactions(log, whole.with_suffix(".parquet") if ending == "parquet" else whole)
    content = (
        whole.with_suffix(".parquet").read_bytes()
        if ending == "parquet"
        else gzip.compress(whole.read_bytes())
    )
    short.write_bytes(content[: max(len(content) - 1 - cut, 0)])
    with pytest.raises(DataError):
        read_interactions(short)


def naive_core(found, k):
    """The pairs of the k-core, by taking away one user or item at a time."""
    found = set(found)
    while True:
        for side in (0, 1):
            for one in {pair[side] for pair in found}:
                those = {pair for pair in found if pair[side] == one}
                if len(those) < k:
                    found -= those
                    break
            else:
                continue
            break
        else:
            return found


@few
@given(drawn=pairs(most=60), k=st.integers(0, 5))
def test_core_is_the_naive_fixed_point(drawn, k):
    expected = naive_core(drawn, k)
    log = Interactions.from_ids(*zip(*drawn, strict=True))
    if not expected:
        with pytest.raises(DataError, match="nothing is left"):
            prepare(log, Preparation(k_core=k))
        return
    assert prepare(log, Preparation(k_core=k)).to_frame().rows() == sorted(expected)


@few
@given(log=logs(least=10, most=60), k=st.integers(1, 4))
def test_core_holds_everybody_who_has_enough_and_lies_within_every_smaller_core(log, k):
    inside, smaller = k_core_mask(log, k), k_core_mask(log, k - 1)
    assert (smaller | ~inside).all()
    kept = log.select(inside)
    assert (kept.user_counts()[kept.users] >= k).all()
    assert (kept.item_counts()[kept.items] >= k).all()


@few
@given(log=logs(), chosen=st.sampled_from(["none", "count", "rating"]))
def test_each_pair_is_kept_once_with_its_earliest_time_and_all_of_its_weight(log, chosen):
    assume(chosen != "rating" or (log.ratings is not None and log.ratings.min() > 0))
    prepared = prepare(log, Preparation(weights=chosen))
    frame = log.to_frame()
    expected = {}
    for row in frame.iter_rows(named=True):
        expected.setdefault((row["user"], row["item"]), []).append(row)
    found = {(row["user"], row["item"]): row for row in prepared.to_frame().iter_rows(named=True)}
    assert list(found) == sorted(expected)
    for pair, row in found.items():
        if "timestamp" in row:
            assert row["timestamp"] == min(one["timestamp"] for one in expected[pair])
        if "weight" in row:
            name = {"rating": "rating"}.get(chosen, "weight")
            assert row["weight"] == pytest.approx(
                sum(one.get(name, 1) for one in expected[pair]), rel=1e-6
            )


@few
@given(log=logs(), k=st.integers(0, 3))
def test_preparing_twice_changes_nothing(log, k):
    try:
        once = prepare(log, Preparation(k_core=k))
    except DataError:
        return
    assert same(prepare(once, Preparation(k_core=k)), once)


@pytest.mark.parametrize("name", SPLITS)
@few
@given(log=logs(least=5, most=60), seed=st.integers(0, 3), order=st.randoms(use_true_random=False))
def test_splits_partition_and_do_not_depend_on_the_order_of_the_file(name, log, seed, order):
    shuffled = list(range(len(log)))
    order.shuffle(shuffled)
    try:
        dataset = SPLITS[name](log, seed=seed)
    except DataError:
        with pytest.raises(DataError):
            SPLITS[name](log.select(np.array(shuffled)), seed=seed)
        return
    again = SPLITS[name](log.select(np.array(shuffled)), seed=seed)
    train, test = dataset.train.pair_keys().tolist(), dataset.test.pair_keys().tolist()
    assert not set(train) & set(test)
    assert len(set(test)) == len(test)
    assert set(train) | set(test) <= set(log.pair_keys().tolist())
    for part in ("train", "test"):
        assert sorted(getattr(again, part).to_frame().rows()) == sorted(
            getattr(dataset, part).to_frame().rows()
        )
    assert (dataset.train.user_counts()[dataset.test.users] > 0).all()
    assert (dataset.train.item_counts()[dataset.test.items] > 0).all()


@pytest.mark.parametrize("name", SPLITS)
@few
@given(
    drawn=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=30, max_size=80),
    seed=st.integers(0, 3),
)
def test_nothing_is_lost_but_strangers(name, drawn, seed):
    users, items = zip(*sorted(drawn), strict=True)
    log = Interactions.from_ids(
        users, items, timestamps=np.random.default_rng(seed).permutation(len(users))
    )
    try:
        dataset = SPLITS[name](log, seed=seed)
    except DataError:
        assume(False)
    kept = set(dataset.whole().pair_keys().tolist())
    lost = log.select(~np.isin(log.pair_keys(), list(kept)))
    strange = (dataset.train.user_counts()[lost.users] == 0) | (
        dataset.train.item_counts()[lost.items] == 0
    )
    assert strange.all()
    assert len(kept) + len(lost) == len(log)


@pytest.mark.parametrize("carve", [paper_validation, fraction_validation])
@few
@given(log=logs(least=20, most=60), seed=st.integers(2024, 2028))
def test_validation_comes_out_of_training_and_nowhere_else(carve, log, seed):
    try:
        before = SPLITS["iid"](prepare(log, Preparation()))
        after = carve(before, seed=seed)
    except DataError:
        return
    assert same(after.test, before.test)
    both = [*after.train.pair_keys().tolist(), *after.validation.pair_keys().tolist()]
    assert sorted(both) == sorted(before.train.pair_keys().tolist())


@few
@given(log=logs(identifiers, least=10, most=60))
def test_written_splits_come_back(log):
    try:
        dataset = paper_validation(SPLITS["iid"](log))
    except DataError:
        return
    with tempfile.TemporaryDirectory() as temporary:
        write_dataset(dataset, Path(temporary) / "split")
        again = read_published(Path(temporary) / "split")
    for name, part in dataset.parts().items():
        assert same(again.parts()[name], part)


@few
@given(log=logs(least=2))
def test_sorted_is_sorted_and_loses_nothing(log):
    ordered = log.sorted()
    assert all(one <= other for one, other in pairwise(ordered.pair_keys().tolist()))
    assert sorted(ordered.to_frame().rows()) == sorted(log.to_frame().rows())
