"""Ranked lists in blocks: shared among processes, and written to a file one after the other."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from pslrec.cli._processes import is_one_of_several
from pslrec.cli._telling import can_redraw, notes_console, tell

if TYPE_CHECKING:
    import polars as pl

    from pslrec.distributed import Group

SUFFIXES = (".parquet", ".csv", ".jsonl")


class Blocks(NamedTuple):
    """Lists of some users or items, made block by block as they are asked for.

    Args:
        n_owners: users or items that get a list.
        n_blocks: how many blocks there are.
        make: gives the frame of a block by its number.
    """

    n_owners: int
    n_blocks: int
    make: Callable[[int], "pl.DataFrame"]

    def frames(self) -> Iterator["pl.DataFrame"]:
        """The blocks in their order."""
        for number in range(self.n_blocks):
            yield self.make(number)


def check_file(out: Path | None) -> None:
    """Raise unless lists can be written to a file of this name."""
    from pslrec.errors import ConfigError

    if out is not None and out.suffix not in SUFFIXES:
        raise ConfigError(f"`--out` must end in {', '.join(SUFFIXES)}, got {out.name}")


def check_processes(processes: int | None, out: Path | None) -> None:
    """Raise if several processes would have nothing to share."""
    from pslrec.errors import ConfigError

    is_shared = processes not in (None, 1) or is_one_of_several()
    if is_shared and out is None:
        raise ConfigError("several processes write their lists to a file; give `--out FILE`")


def write_lists(blocks: Blocks, out: Path, group: "Group", kind: str = "user") -> None:
    """Write all lists to a file, each process making its share of the blocks.

    Args:
        blocks: the same in every process.
        out: ends in one of `SUFFIXES`.
        group: the first process of it writes.
        kind: what the lists belong to, and the column with it.
    """
    frames = group.in_turn(blocks.n_blocks, blocks.make)
    if group.is_first:
        _write(frames, blocks.n_owners, out, kind)
        return
    for _ in frames:
        # Nothing comes here: the first process gets all of it.
        raise AssertionError


def _write(frames: Iterator["pl.DataFrame"], n_owners: int, out: Path, kind: str) -> None:
    from pslrec.errors import ConfigError
    from pslrec.files import whole_file

    console = notes_console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed:,}} {kind}s"),
        TimeRemainingColumn(),
    )
    with (
        Progress(*columns, console=console, disable=not can_redraw(console)) as bar,
        whole_file(out, error=ConfigError) as file,
    ):
        task = bar.add_task("ranking", total=n_owners)
        n_listed = 0

        def counted() -> Iterator["pl.DataFrame"]:
            nonlocal n_listed
            for frame in frames:
                yield frame
                # The next block is asked for only when this one is written.
                n_of_block = frame[kind].n_unique()
                n_listed += n_of_block
                bar.advance(task, n_of_block)

        n_rows = _write_frames(counted(), file, out.suffix)
    what = "recommendations"
    if kind == "item":
        what = "neighbours"
    tell(console, f"wrote {n_rows:,} {what} for {n_listed:,} {kind}s to {out}")
    if n_listed < n_owners:
        tell(
            console,
            f"{n_owners - n_listed:,} of {n_owners:,} {kind}s have no list: nothing of them is in the "
            "training part, or the rules leave nothing",
        )


def _write_frames(frames: Iterator["pl.DataFrame"], file: IO[bytes], suffix: str) -> int:
    if suffix == ".parquet":
        return _write_parquet(frames, file)
    n_rows = 0
    for number, frame in enumerate(frames):
        if suffix == ".csv":
            _flat(frame).write_csv(file, include_header=number == 0)
        else:
            frame.write_ndjson(file)
        n_rows += len(frame)
    return n_rows


def _flat(frame: "pl.DataFrame") -> "pl.DataFrame":
    """The frame with lists as text, which is all that a CSV file can hold."""
    import polars as pl
    from polars import selectors

    lists = selectors.list()
    return frame.with_columns(lists.cast(pl.List(pl.String)).list.join("|", ignore_nulls=True))


def _write_parquet(frames: Iterator["pl.DataFrame"], file: IO[bytes]) -> int:
    from polars.exceptions import PolarsError
    from polars.io.plugins import register_io_source

    # The schema must be known before polars asks for the first block.
    first = next(frames)
    n_rows = len(first)
    failures: list[Exception] = []

    def source(*_: Any) -> Iterator["pl.DataFrame"]:
        nonlocal n_rows
        yield first
        try:
            for frame in frames:
                n_rows += len(frame)
                yield frame
        except Exception as failure:
            failures.append(failure)
            raise

    # A sink writes one block after the other, so all lists are never in memory together.
    try:
        register_io_source(source, schema=first.schema).sink_parquet(file)
    except PolarsError as failure:
        # What went wrong in a block says more than what polars makes of it.
        raise (failures or [failure])[0] from None
    return n_rows
