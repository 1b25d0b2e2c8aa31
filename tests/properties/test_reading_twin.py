"""Whatever is read is what Python's own `csv` and `json` read; everything else is refused, with the line."""

import logging
import re
import time
from collections import Counter

import pytest
from tables_by_chance import draw, expected_rows

from pslrec.data import read_interactions
from pslrec.errors import DataError

# What is wrong with the file as a whole has no line.
OF_THE_WHOLE_FILE = re.compile(
    r"the file is empty|there are no interactions in it|no (user|item) column found|could all be the|appears \d+ times"
    r"|its lines end with carriage returns only|gzip file is truncated"
)


def outcome(directory, seed):
    drawn = draw(seed)
    path = directory / drawn.name
    path.write_bytes(drawn.content)
    # Every second file must be understood without being told its separator.
    options = (
        {"separator": drawn.separator}
        if drawn.separator and (seed % 2 or not drawn.is_sound)
        else {}
    )
    try:
        frame = read_interactions(path, **options).to_frame()
    except DataError as error:
        message = str(error)
        assert not drawn.is_sound, f"file {seed} is sound and was refused: {message}"
        assert "\n" not in message, f"file {seed}: {message}"
        assert OF_THE_WHOLE_FILE.search(message) or re.search(r"line \d+", message), (
            f"file {seed}: {message}"
        )
        return "refused"
    expected = expected_rows(drawn)
    found = [(str(user), str(item)) for user, item in frame.select("user", "item").iter_rows()]
    assert found == [row[:2] for row in expected], (
        f"file {seed} is read in another way than by Python"
    )
    if "rating" in frame.columns:
        assert frame["rating"].to_list() == [float(row[2]) for row in expected], (
            f"file {seed}: ratings"
        )
    return "read"


def compare(directory, seeds):
    outcomes, slowest = Counter(), 0.0
    for seed in seeds:
        started = time.perf_counter()
        outcomes[outcome(directory, seed)] += 1
        slowest = max(slowest, time.perf_counter() - started)
    return outcomes, slowest


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.ERROR, logger="pslrec")


def test_tables_are_read_as_python_reads_them_or_refused(tmp_path):
    outcomes, _ = compare(tmp_path, range(400))
    assert min(outcomes.values()) > 100


@pytest.mark.slow
def test_ten_thousand_tables_are_read_as_python_reads_them_or_refused(tmp_path):
    outcomes, slowest = compare(tmp_path, range(10_000))
    print(dict(outcomes), f"slowest {slowest:.3f} s")
    assert outcomes.total() == 10_000
    assert min(outcomes.values()) > 2_500
    assert slowest < 5
