"""From the files of a log to a data set that is mapped into memory, with the memory it takes."""

import logging
from dataclasses import dataclass
from pathlib import Path

from pslrec.data._dataset import Dataset
from pslrec.data._id_files import write_ids
from pslrec.data._interactions import Encoder
from pslrec.data._loading import check_variety
from pslrec.data._many_files import files_of
from pslrec.data._vocabulary import Vocabulary
from pslrec.data.large._cache import (
    MANIFEST,
    open_dataset,
    prepared_directory,
    write_manifest,
)
from pslrec.data.large._chunks import Log
from pslrec.data.large._columns import ColumnFiles
from pslrec.data.large._dividing import Divided, divide_by_user, divide_in_memory
from pslrec.data.large._encoding import read_encoders, write_encoded
from pslrec.data.large._plan import Plan, key_of, source_files
from pslrec.data.large._sorting import write_core, write_distinct
from pslrec.errors import DataError
from pslrec.files import (
    exclusive,
    fetch,
    is_address,
    make_directory,
    named_as,
    remove_directory,
    shown_address,
    whole_directory,
)

logger = logging.getLogger(__name__)

# Rows that are read or sorted at a time: a part of all, so that memory follows the size of the log,
# but neither so few that the work is all overhead nor so many that a part is large by itself.
FEWEST_ROWS = 1 << 17
MOST_ROWS = 1 << 22
SHARE_AT_ONCE = 64
# Row numbers of a user and an item, and what may be held beside them.
BYTES_PER_PAIR = 8
MOST_OVER_IDS = 1.5
# Buffers of the readers and of `FEWEST_ROWS` rows, whatever the size of the log.
BUFFERS = 200_000_000
# What splits take that see all pairs at once.
BYTES_PER_PAIR_IN_MEMORY = 150


@dataclass(frozen=True)
class Memory:
    """What preparing a log takes, in bytes.

    Args:
        n_rows: of the log.
        n_id_bytes: of the distinct ids of users and items.
        is_by_user: whether the split goes user by user, and needs no more than one of them.
    """

    n_rows: int
    n_id_bytes: int
    is_by_user: bool

    @property
    def ids(self) -> int:
        """The ids alone: two row numbers for each row, and each distinct id once."""
        return BYTES_PER_PAIR * self.n_rows + self.n_id_bytes

    @property
    def most(self) -> int:
        """The most that is held at once."""
        held = int(MOST_OVER_IDS * self.ids)
        if not self.is_by_user:
            held += BYTES_PER_PAIR_IN_MEMORY * self.n_rows
        return max(held, BUFFERS)


def rows_at_once(n_rows: int) -> int:
    """How many rows of a log are read or sorted at a time.

    >>> rows_at_once(1_000), rows_at_once(30_000_000), rows_at_once(10**10)
    (131072, 468750, 4194304)
    """
    return min(max(n_rows // SHARE_AT_ONCE, FEWEST_ROWS), MOST_ROWS)


def prepared_dataset(plan: Plan, *, name: str = "data") -> Dataset:
    """Prepare and split a log out of core, or use what was prepared of it before.

    The result lies in the cache directory and is mapped from there. It is used again as long as the
    files of the log, by their names, sizes and times, and all settings of the plan are the same.

    Args:
        plan: what to prepare, and how.
        name: what reports call the data set.
    """
    files = source_files(plan.source)
    directory = make_directory(prepared_directory(), error=DataError)
    place = directory / key_of(plan, files)
    # Another process may be preparing the same, and is waited for.
    with exclusive(place.with_suffix(".lock"), wait=True, error=DataError):
        if (place / MANIFEST).is_file():
            try:
                dataset = open_dataset(place, name)
            except DataError as problem:
                logger.warning("%s; the data set is prepared again", problem)
                remove_directory(place, error=DataError)
            else:
                logger.info("%s was prepared before: using %s", shown_address(plan.source), place)
                return dataset
        with whole_directory(place, error=DataError) as work:
            _prepare(plan, work)
            if source_files(plan.source) != files:
                raise DataError(
                    f"{shown_address(plan.source)} changed while it was read; start again"
                )
        return open_dataset(place, name)


def _prepare(plan: Plan, work: Path) -> None:
    """Write the prepared data set to a directory."""
    if not is_address(plan.source):
        log = Log(files_of(Path(plan.source)), plan.options, plan.format)
        divided = _prepared_log(log, plan, work)
    else:
        # Fetched once and read twice.
        copies = make_directory(work / "source", error=DataError)
        copy = fetch(plan.source, copies, error=DataError)
        with named_as(plan.source, copy):
            log = Log(files_of(copy), plan.options, plan.format)
            divided = _prepared_log(log, plan, work)
        remove_directory(copies, error=DataError)
    write_manifest(work, plan, divided)


def _prepared_log(log: Log, plan: Plan, work: Path) -> Divided:
    n_rows = rows_at_once(log.count_rows())
    logger.info(
        "%s: %s files are prepared out of core, %s rows at a time",
        shown_address(plan.source),
        f"{len(log.files):,}",
        f"{n_rows:,}",
    )
    users, items, n_in_log = read_encoders(log, n_rows)
    _state_memory(users, items, n_in_log, plan)
    minimum_rating = None
    if plan.preparation is not None:
        minimum_rating = plan.preparation.minimum_rating
    encoded = write_encoded(log, (users, items), work, n_rows=n_rows, minimum_rating=minimum_rating)
    vocabularies = (users.vocabulary, items.vocabulary)
    # The tables by which ids are looked up are of no use any more.
    del users, items
    whole, vocabularies = _distinct(encoded, vocabularies, plan, work, n_rows)
    check_variety(whole.mapped(*vocabularies), shown_address(plan.source))
    for vocabulary in vocabularies:
        write_ids(vocabulary, work, error=DataError)
    if plan.split == "iid":
        sizes = (len(vocabularies[0]), len(vocabularies[1]))
        divided = divide_by_user(whole, sizes, work, plan, n_rows)
    else:
        divided = divide_in_memory(whole, vocabularies, work, plan)
    whole.remove()
    return divided


def _state_memory(users: Encoder, items: Encoder, n_rows: int, plan: Plan) -> None:
    n_id_bytes = 0
    for encoder in (users, items):
        n_id_bytes += int(encoder.vocabulary.series.estimated_size())
    memory = Memory(n_rows, n_id_bytes, is_by_user=plan.split == "iid")
    logger.info(
        "%s rows of %s users and %s items: preparing them takes at most %s MB of memory beside "
        "the program's own; their ids alone would take %s MB",
        f"{n_rows:,}",
        f"{len(users.vocabulary):,}",
        f"{len(items.vocabulary):,}",
        f"{memory.most / 1e6:,.0f}",
        f"{memory.ids / 1e6:,.0f}",
    )


def _distinct(
    encoded: ColumnFiles,
    vocabularies: tuple[Vocabulary, Vocabulary],
    plan: Plan,
    work: Path,
    n_rows: int,
) -> tuple[ColumnFiles, tuple[Vocabulary, Vocabulary]]:
    n_before = encoded.length
    whole = write_distinct(encoded, vocabularies, work, n_rows=n_rows, preparation=plan.preparation)
    encoded.remove()
    if whole.length < n_before:
        logger.info(
            "%s interactions are %s different pairs; repetitions are merged before the split",
            f"{n_before:,}",
            f"{whole.length:,}",
        )
    if plan.preparation is None:
        return whole, vocabularies
    return write_core(whole, vocabularies, work, k=plan.preparation.k_core, n_rows=n_rows)
