"""Training, validation and test parts as files, divided without holding the pairs in memory."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pslrec.data._dataset import Dataset
from pslrec.data._interactions import Interactions
from pslrec.data._vocabulary import Vocabulary
from pslrec.data.large._columns import ColumnFiles, chunk_of, written_columns
from pslrec.data.large._plan import Plan
from pslrec.data.large._sorting import user_counts
from pslrec.data.splits import (
    FRACTION,
    KEEPING_ITEMS,
    N_KEPT,
    TRAIN_FRACTION,
    carve_validation,
    check_fraction,
    check_parts,
    check_sizes,
    drawn_for_test,
    drawn_for_validation,
    slices_of,
    split_by_name,
)
from pslrec.errors import DataError
from pslrec.files import array_file, map_array
from pslrec.rows import Rows

OFFSETS = np.dtype(np.int64)
ITEMS = np.dtype(np.int32)
PARTS = ("train", "validation", "test")
# What becomes of a pair: its number among the parts, or nothing.
TRAIN, VALIDATION, TEST, LEFT_OUT = range(4)


@dataclass(frozen=True)
class PartFiles:
    """A part of a data set as files.

    Args:
        columns: its interactions.
        has_rows: whether the lists of users are a file of their own; in sorted parts the column of
            items holds them.
    """

    columns: ColumnFiles
    has_rows: bool

    def mapped(self, users: Vocabulary, items: Vocabulary) -> Interactions:
        """The part as interactions that the system reads when they are looked at."""
        columns = self.columns
        lists = columns.path("rows") if self.has_rows else columns.path("items")
        rows = Rows(
            map_array(columns.path("offsets"), OFFSETS, error=DataError),
            map_array(lists, ITEMS, error=DataError),
        )
        return columns.mapped(users, items).with_rows(rows)


@dataclass(frozen=True)
class Divided:
    """The parts, and how many test pairs were left out as unknown to training."""

    parts: Mapping[str, PartFiles]
    n_left_out: int


def divide_by_user(
    whole: ColumnFiles, sizes: tuple[int, int], directory: Path, plan: Plan, n_rows: int
) -> Divided:
    """The split `iid` and a validation part, drawn user by user as in memory.

    Args:
        whole: each pair once, sorted.
        sizes: numbers of users and items.
        directory: where the parts go.
        plan: names the fractions and seeds.
        n_rows: that are read at a time.
    """
    fraction = TRAIN_FRACTION
    if plan.train_fraction is not None:
        fraction = plan.train_fraction
    check_fraction("train_fraction", fraction)
    counts = user_counts(whole, sizes[0], n_rows)
    in_test = drawn_for_test(slices_of(counts), whole.length, fraction, plan.split_seed)
    fates = np.where(in_test, np.uint8(TEST), np.uint8(TRAIN))
    del in_test
    known = _counts_of(whole, fates, TRAIN, sizes, n_rows)
    _leave_out_unknown(whole, fates, known, n_rows)
    n_train = int(np.count_nonzero(fates == TRAIN))
    n_test = int(np.count_nonzero(fates == TEST))
    check_parts(n_train, n_test, whole.length)
    if plan.validation != "none":
        _draw_validation(whole, fates, known[0], sizes, plan, n_rows)
    n_left_out = whole.length - n_train - n_test
    names = [PARTS[TRAIN], PARTS[TEST]]
    if plan.validation != "none":
        names = list(PARTS)
    return Divided(_write_parts(whole, fates, sizes[0], directory, names, n_rows), n_left_out)


def _counts_of(
    whole: ColumnFiles, fates: np.ndarray, fate: int, sizes: tuple[int, int], n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of one fate, by user and by item."""
    of_users = np.zeros(sizes[0], dtype=np.int64)
    of_items = np.zeros(sizes[1], dtype=np.int64)
    for start, chunk in whole.chunks(n_rows, ["users", "items"]):
        is_one = fates[start : start + n_rows] == fate
        of_users += np.bincount(chunk["users"][is_one], minlength=sizes[0])
        of_items += np.bincount(chunk["items"][is_one], minlength=sizes[1])
    return of_users, of_items


def _leave_out_unknown(
    whole: ColumnFiles, fates: np.ndarray, known: tuple[np.ndarray, np.ndarray], n_rows: int
) -> None:
    of_users, of_items = known
    for start, chunk in whole.chunks(n_rows, ["users", "items"]):
        here = fates[start : start + n_rows]
        is_unknown = (of_users[chunk["users"]] == 0) | (of_items[chunk["items"]] == 0)
        here[is_unknown & (here == TEST)] = LEFT_OUT


def _draw_validation(
    whole: ColumnFiles,
    fates: np.ndarray,
    train_counts: np.ndarray,
    sizes: tuple[int, int],
    plan: Plan,
    n_rows: int,
) -> None:
    n_train = int(train_counts.sum())
    n_kept = N_KEPT[plan.validation]
    chosen = drawn_for_validation(
        slices_of(train_counts), n_train, FRACTION, plan.validation_seed, n_kept=n_kept
    )
    # The draw counts training pairs only; this finds them among all.
    n_before = 0
    for start in range(0, len(fates), n_rows):
        here = fates[start : start + n_rows]
        places = np.flatnonzero(here == TRAIN)
        is_chosen = chosen[n_before : n_before + len(places)]
        here[places[is_chosen]] = VALIDATION
        n_before += len(places)
    if plan.validation in KEEPING_ITEMS:
        # An item of which all pairs were drawn stays in training with all of them.
        _, of_items = _counts_of(whole, fates, TRAIN, sizes, n_rows)
        for start, chunk in whole.chunks(n_rows, ["items"]):
            here = fates[start : start + n_rows]
            here[(here == VALIDATION) & (of_items[chunk["items"]] == 0)] = TRAIN
    n_validation = int(np.count_nonzero(fates == VALIDATION))
    check_sizes(n_train - n_validation, n_validation)


def _write_parts(
    whole: ColumnFiles,
    fates: np.ndarray,
    n_users: int,
    directory: Path,
    names: Sequence[str],
    n_rows: int,
) -> dict[str, PartFiles]:
    with ExitStack() as stack:
        writers = {}
        for name in names:
            new = written_columns(directory, name, whole.names)
            writers[name] = stack.enter_context(new)
        counts = {name: np.zeros(n_users, dtype=np.int64) for name in names}
        for start, chunk in whole.chunks(n_rows):
            here = fates[start : start + n_rows]
            for name in names:
                is_one = here == PARTS.index(name)
                kept = {column: values[is_one] for column, values in chunk.items()}
                writers[name].add(kept)
                counts[name] += np.bincount(kept["users"], minlength=n_users)
    parts = {}
    for name in names:
        columns = ColumnFiles(directory, name, whole.names, writers[name].length)
        _write_offsets(columns, np.concatenate(([0], np.cumsum(counts[name]))))
        parts[name] = PartFiles(columns, has_rows=False)
    return parts


def _write_offsets(columns: ColumnFiles, offsets: np.ndarray) -> None:
    with array_file(columns.path("offsets"), OFFSETS, error=DataError) as append:
        append(offsets)


def divide_in_memory(
    whole: ColumnFiles, vocabularies: tuple[Vocabulary, Vocabulary], directory: Path, plan: Plan
) -> Divided:
    """Any other split: it sees all pairs at once, as it does everywhere.

    Args:
        whole: each pair once, sorted.
        vocabularies: of users and items.
        directory: where the parts go.
        plan: names the split, fractions and seeds.
    """
    users, items = vocabularies
    dataset = split_by_name(
        whole.mapped(users, items),
        plan.split,
        train_fraction=plan.train_fraction,
        seed=plan.split_seed,
    )
    dataset = carve_validation(
        dataset, plan.validation, split=plan.split, seed=plan.validation_seed
    )
    parts = {}
    for name, part in dataset.parts().items():
        parts[name] = _write_part(part, directory, name)
    return Divided(parts, dataset.n_left_out)


def _write_part(part: Interactions, directory: Path, name: str) -> PartFiles:
    chunk = chunk_of(part)
    with written_columns(directory, name, list(chunk)) as writer:
        writer.add(chunk)
    columns = ColumnFiles(directory, name, list(chunk), len(part))
    # Of parts by time, whose columns follow time, the lists of users are kept beside them.
    _write_offsets(columns, part.rows.offsets)
    with array_file(columns.path("rows"), ITEMS, error=DataError) as append:
        append(part.rows.items)
    return PartFiles(columns, has_rows=True)


def mapped_dataset(
    divided: Divided, vocabularies: tuple[Vocabulary, Vocabulary], name: str
) -> Dataset:
    """The parts as a data set that the system reads when it is looked at.

    Args:
        divided: the parts as files.
        vocabularies: of users and items.
        name: of the data set.
    """
    users, items = vocabularies
    parts = {}
    for part, files in divided.parts.items():
        parts[part] = files.mapped(users, items)
    return Dataset(
        parts["train"],
        parts["test"],
        parts.get("validation"),
        name=name,
        n_left_out=divided.n_left_out,
    )
