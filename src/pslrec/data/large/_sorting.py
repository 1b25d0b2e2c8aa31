"""Each pair once, in the order of users and items, and then the k-core of these pairs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pslrec.data._interactions import Interactions
from pslrec.data._preparation import Preparation, distinct_pairs
from pslrec.data._vocabulary import Vocabulary
from pslrec.data.large._columns import DTYPES, ColumnFiles, chunk_of, written_columns
from pslrec.errors import DataError


def write_distinct(
    log: ColumnFiles,
    vocabularies: tuple[Vocabulary, Vocabulary],
    directory: Path,
    *,
    n_rows: int,
    preparation: Preparation | None,
) -> ColumnFiles:
    """Each pair once, sorted by user and item.

    What happens to repeated pairs concerns the pairs of one user only, so users are sorted a range
    at a time, by the very functions that sort all of them in memory.

    Args:
        log: interactions in the order of the log.
        vocabularies: of users and items.
        directory: where the new columns go.
        n_rows: that are sorted at a time, about.
        preparation: what is asked for, if anything is.
    """
    users, items = vocabularies
    counts = user_counts(log, len(users), n_rows)
    names = list(log.names)
    if preparation is not None and preparation.weights != "none" and "weights" not in names:
        names.append("weights")
    with written_columns(directory, "distinct", names) as writer:
        for first, last in _ranges(counts, n_rows):
            some = _of_users(log, first, last, users, items, n_rows)
            if len(some) == 0:
                continue
            if preparation is None:
                # As every split begins.
                some = distinct_pairs(some.sorted())
            else:
                some = distinct_pairs(some, preparation.weights)
            writer.add(chunk_of(some))
    return ColumnFiles(directory, "distinct", names, writer.length)


def user_counts(columns: ColumnFiles, n_users: int, n_rows: int) -> np.ndarray:
    """Interactions of each user.

    Args:
        columns: the interactions.
        n_users: of the vocabulary.
        n_rows: that are read at a time.
    """
    counts = np.zeros(n_users, dtype=np.int64)
    for _, chunk in columns.chunks(n_rows, ["users"]):
        counts += np.bincount(chunk["users"], minlength=n_users)
    return counts


def _ranges(counts: np.ndarray, n_rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of users with about so many interactions each; a user is never divided."""
    ends = np.cumsum(counts)
    first = 0
    while first < len(counts):
        before = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, before + n_rows, side="right"))
        last = max(last, first + 1)
        yield first, last
        first = last


def _of_users(
    log: ColumnFiles, first: int, last: int, users: Vocabulary, items: Vocabulary, n_rows: int
) -> Interactions:
    """The interactions of a range of users, in the order of the log."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in log.names}
    for start, chunk in log.chunks(n_rows, ["users"]):
        rows = chunk["users"]
        places = np.flatnonzero((rows >= first) & (rows < last))
        if len(places) == 0:
            continue
        parts["users"].append(rows[places])
        for name in log.names[1:]:
            column = log.read(name, start, start + len(rows))
            parts[name].append(column[places])
    columns = {}
    for name in log.names:
        nothing: np.ndarray = np.empty(0, dtype=DTYPES[name])
        column = np.concatenate([nothing, *parts.pop(name)])
        # Nobody else holds it, so it need not be copied.
        column.flags.writeable = False
        columns[name] = column
    return Interactions(user_vocabulary=users, item_vocabulary=items, **columns)


def k_core_rows(
    columns: ColumnFiles, sizes: tuple[int, int], k: int, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Which users and which items belong to the k-core.

    Args:
        columns: each pair once.
        sizes: numbers of users and items.
        k: pairs that each of them must have.
        n_rows: that are read at a time.
    """
    n_users, n_items = sizes
    has_users = np.ones(n_users, dtype=bool)
    has_items = np.ones(n_items, dtype=bool)
    while True:
        of_users = np.zeros(n_users, dtype=np.int64)
        of_items = np.zeros(n_items, dtype=np.int64)
        for _, chunk in columns.chunks(n_rows, ["users", "items"]):
            stays = has_users[chunk["users"]] & has_items[chunk["items"]]
            of_users += np.bincount(chunk["users"][stays], minlength=n_users)
            of_items += np.bincount(chunk["items"][stays], minlength=n_items)
        # Without a core everybody stays who has a pair at all.
        now_users = of_users >= max(k, 1)
        now_items = of_items >= max(k, 1)
        is_stable = (now_users == has_users).all() and (now_items == has_items).all()
        has_users = now_users
        has_items = now_items
        if is_stable:
            return has_users, has_items


def write_core(
    columns: ColumnFiles,
    vocabularies: tuple[Vocabulary, Vocabulary],
    directory: Path,
    *,
    k: int,
    n_rows: int,
) -> tuple[ColumnFiles, tuple[Vocabulary, Vocabulary]]:
    """The k-core over vocabularies that hold only the users and items that are left.

    Args:
        columns: each pair once.
        vocabularies: of users and items.
        directory: where the new columns go.
        k: pairs that each user and item must have.
        n_rows: that are read at a time.
    """
    users, items = vocabularies
    has_users, has_items = k_core_rows(columns, (len(users), len(items)), k, n_rows)
    if not has_users.any():
        raise DataError(
            f"nothing is left of {columns.length:,} interactions in the {k}-core: "
            "lower `k_core` (on the command line --k-core)"
        )
    if has_users.all() and has_items.all():
        return columns, vocabularies
    new_user = np.cumsum(has_users, dtype=np.int32) - 1
    new_item = np.cumsum(has_items, dtype=np.int32) - 1
    with written_columns(directory, "core", columns.names) as writer:
        for _, chunk in columns.chunks(n_rows):
            stays = has_users[chunk["users"]] & has_items[chunk["items"]]
            kept = {name: column[stays] for name, column in chunk.items()}
            kept["users"] = new_user[kept["users"]]
            kept["items"] = new_item[kept["items"]]
            writer.add(kept)
    columns.remove()
    core = ColumnFiles(directory, "core", columns.names, writer.length)
    left = (
        users.select(np.flatnonzero(has_users)),
        items.select(np.flatnonzero(has_items)),
    )
    return core, left
