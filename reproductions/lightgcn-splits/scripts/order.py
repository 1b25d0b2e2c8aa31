"""How the LightGCN split of Gowalla was made: its test part continues the lists of its training part.

    python reproductions/lightgcn-splits/scripts/order.py DATA/lightgcn/gowalla.zip

Items are numbered in the order in which they first occur in training, so the items that a user is the first to have stand in the
order of that user's list as it was when they were numbered. If the list had been in no order, or the test part drawn from all of
it, the place of an item in the list would say nothing about its likeness to its neighbours or to the test items.

Writes `results/order.csv` and the table of the page between its markers.
"""

import argparse
import csv
import io
import sys
from pathlib import Path

import numpy as np
from scipy import sparse

PAPER = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PAPER.parent))

from _records import publish, table  # noqa: E402

from pslrec.data import Dataset, Interactions, load  # noqa: E402
from pslrec.files import write_text  # noqa: E402

TENTHS = 10
# A user must be the first to have so many items for tenths of them to mean something.
FEWEST_ITEMS = 20
NAMES = {
    "distance": "cosine of two listed items: neighbours, then 1 to 9 tenths of the list apart",
    "place": "cosine of a listed item with the user's test items, by tenths of the list",
    "control": "the same with the user's other training items, as other users have both",
}


def matrix(interactions: Interactions) -> sparse.csr_array:
    """The interactions as a matrix of ones."""
    rows = interactions.rows
    ones = np.ones(len(rows.items), dtype=np.float32)
    shape = (interactions.n_users, interactions.n_items)
    return sparse.csr_array((ones, rows.items, rows.offsets), shape=shape)


def first_items(train: sparse.csr_array) -> list[np.ndarray]:
    """The items that each user is the first to have, users and items in the order of their numbers."""
    found = []
    n_known = 0
    for user in range(train.shape[0]):
        items = np.sort(train.indices[train.indptr[user] : train.indptr[user + 1]])
        new = items[items >= n_known]
        found.append(new)
        n_known += len(new)
        # Numbers that were skipped would mean that they are not given in order of occurrence.
        if len(new) and new[-1] != n_known - 1:
            raise ValueError("items are not numbered in the order in which they first occur")
    return found


def measure(dataset: Dataset) -> dict[str, np.ndarray]:
    """Mean cosines of listed items, a row per user: with each other by distance, with the user's other items by place."""
    train = matrix(dataset.train)
    test = matrix(dataset.test)
    degrees = np.maximum(train.sum(axis=0), 1)
    columns = sparse.csr_array((train @ sparse.diags_array(degrees**-0.5)).T)
    distances = []
    places = []
    others = []
    for user, items in enumerate(first_items(train)):
        held_out = test.indices[test.indptr[user] : test.indptr[user + 1]]
        known = np.setdiff1d(train.indices[train.indptr[user] : train.indptr[user + 1]], items)
        if len(items) < FEWEST_ITEMS or not len(held_out) or not len(known):
            continue
        own = columns[items]
        among = (own @ own.T).toarray()
        by_distance = []
        for tenth in range(TENTHS):
            distance = max(tenth * len(items) // TENTHS, 1)
            by_distance.append(np.diagonal(among, distance).mean())
        distances.append(by_distance)
        places.append(by_place(own, columns[held_out]))
        # Both are the user's own, which test items are not.
        together = np.outer(degrees[items], degrees[known]) ** -0.5
        others.append(by_place(own, columns[known], -together))
    return {
        "distance": np.array(distances),
        "place": np.array(places),
        "control": np.array(others),
    }


def by_place(
    listed: sparse.csr_array, others: sparse.csr_array, correction: float | np.ndarray = 0.0
) -> list[float]:
    """The mean cosine of each tenth of a list with other items, with a correction added to each cosine."""
    cosines = (listed @ others.T).toarray() + correction
    return [part.mean() for part in np.array_split(cosines.mean(axis=1), TENTHS)]


def interval(values: np.ndarray) -> str:
    """Mean and half of the 95 % interval."""
    error = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.4f} ± {error:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="the split: a zip with train.tsv and test.tsv")
    arguments = parser.parse_args()
    found = measure(load(arguments.data))
    n_users = len(found["place"])
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(["tenth", *NAMES, "users"])
    for tenth in range(TENTHS):
        values = [f"{found[key][:, tenth].mean():.5f}" for key in NAMES]
        writer.writerow([tenth + 1, *values, n_users])
    write_text(PAPER / "results" / "order.csv", rows.getvalue())
    half = TENTHS // 2
    rise = found["place"][:, half:].mean(axis=1) - found["place"][:, :half].mean(axis=1)
    control = found["control"][:, half:].mean(axis=1) - found["control"][:, :half].mean(axis=1)
    fall = found["distance"][:, 0] - found["distance"][:, half:].mean(axis=1)
    headings = {"": "---", **{str(tenth + 1): "---:" for tenth in range(TENTHS)}}
    lines = []
    for key, name in NAMES.items():
        lines.append([name, *(f"{value:.4f}" for value in found[key].mean(axis=0))])
    sentence = (
        f"{n_users} users with {FEWEST_ITEMS} such items or more. Neighbours in the list are more alike than items half a list "
        f"or more apart by {interval(fall)}, and the second half of the list is more like the test items than the first by "
        f"{interval(rise)}. As a control, the same difference for the user's other training items is {interval(control)} "
        "(95 % intervals over users)."
    )
    publish("order", f"{table(headings, lines)}\n\n{sentence}", PAPER / "README.md")


if __name__ == "__main__":
    main()
