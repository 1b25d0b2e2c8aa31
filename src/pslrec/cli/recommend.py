"""`pslrec recommend`: ranked lists for some users or all, in a file or on the terminal."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from pslrec.cli._identifiers import ids_in, typed
from pslrec.cli._options import FinishedRun
from pslrec.cli._telling import can_redraw

if TYPE_CHECKING:
    import polars as pl
    import torch

    from pslrec.inference import TrainedModel

# Recommended in one block, which is what memory, progress and Ctrl-C go by.
USERS_AT_ONCE = 8192
SHOWN_USERS = 20
SUFFIXES = (".parquet", ".csv", ".jsonl")


def recommend_command(
    run: FinishedRun,
    user: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="User to recommend to. Repeatable."),
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with user ids: one per line, or a CSV or Parquet column `user`.",
        ),
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--all", help="Recommend to all users of the training data.")
    ] = False,
    history: Annotated[
        list[str] | None,
        typer.Option(metavar="ITEM", help="Item in a new user's history. Repeatable."),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", "--k", metavar="K", min=1, help="Length of each list.")
    ] = 20,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File to write: .parquet, .csv or .jsonl."
        ),
    ] = None,
    include_seen: Annotated[
        bool,
        typer.Option("--include-seen", help="Also recommend items that the user already has."),
    ] = False,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Skip unknown user ids instead of failing.")
    ] = False,
    memory: Annotated[
        int, typer.Option(metavar="MB", min=16, help="Maximum memory for scores, in megabytes.")
    ] = 256,
) -> None:
    """Recommend items to some users or all, or to a new user with a given history."""
    from pslrec.errors import ConfigError
    from pslrec.inference import TrainedModel

    n_ways = sum((bool(user), users is not None, everybody, bool(history)))
    if n_ways != 1:
        raise ConfigError(
            "give exactly one of `--user ID`, `--users FILE`, `--all` and `--history ITEM`"
        )
    if out is not None and out.suffix not in SUFFIXES:
        raise ConfigError(f"`--out` must end in {', '.join(SUFFIXES)}, got {out.name}")
    # The options are checked before a model of perhaps gigabytes is read.
    model = TrainedModel.load(run, memory_budget=memory * 2**20)
    if history:
        frames = _for_history(model, history, k, include_seen)
        n_users = 1
    else:
        rows = _rows(model, user, users, skip_unknown=skip_unknown)
        frames = _blocks(model, rows, k, include_seen=include_seen)
        n_users = len(rows)
    if out is None:
        _show(frames, n_users)
    else:
        _write(frames, n_users, out)


def _rows(
    model: "TrainedModel", user: list[str] | None, file: Path | None, *, skip_unknown: bool
) -> "torch.Tensor":
    import torch

    from pslrec.recommender import rows_of

    if file is not None:
        wanted = ids_in(file, model.users)
    elif user is not None:
        wanted = [typed(each, model.users) for each in user]
    else:
        return torch.arange(model.n_users)
    if skip_unknown:
        known = [each for each in wanted if model.users.find(each) is not None]
        n_unknown = len(wanted) - len(known)
        if n_unknown:
            typer.echo(f"skipped {n_unknown:,} of {len(wanted):,} ids, which are unknown", err=True)
        wanted = known
    hint = "; recommend to new users with --history, or skip unknown ids with --skip-unknown"
    return rows_of(wanted, model.users, hint)


def _for_history(
    model: "TrainedModel", history: list[str], k: int, include_seen: bool
) -> Iterator["pl.DataFrame"]:
    import polars as pl

    from pslrec.recommender import ranked_frame, rows_of

    items = [typed(each, model.items) for each in history]
    rows = rows_of(items, model.items, "; it is not in the training data")
    top = model.recommend_for([rows], k, exclude_seen=not include_seen)
    yield ranked_frame(pl.Series("user", ["new"]), top, model.items)


def _blocks(
    model: "TrainedModel", rows: "torch.Tensor", k: int, *, include_seen: bool
) -> Iterator["pl.DataFrame"]:
    from pslrec.recommender import ranked_frame

    names = model.users.series
    # The lists themselves take memory, too: long ones come in smaller blocks, of about a million
    # recommendations.
    at_once = max(min(USERS_AT_ONCE, 2**20 // min(k, model.n_items)), 1)
    for block in rows.split(at_once):
        top = model.recommend(block, k, exclude_seen=not include_seen)
        yield ranked_frame(names.gather(block.numpy()), top, model.items)


def _show(frames: Iterator["pl.DataFrame"], n_users: int) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("user", no_wrap=True)
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("item", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    shown: list[Any] = []
    for frame in frames:
        for user, item, score, rank in frame.iter_rows():
            if user not in shown:
                if len(shown) == SHOWN_USERS:
                    break
                shown.append(user)
            # The user's name stands in the first row of its list only.
            name = str(user) if rank == 1 else ""
            # As Text: an id may hold brackets, which rich would take for markup.
            table.add_row(Text(name), str(rank), Text(str(item)), f"{score:.4f}")
        # Blocks are computed as they are asked for, so nothing is computed beyond this one.
        if len(shown) == SHOWN_USERS:
            break
    Console().print(table)
    if n_users > SHOWN_USERS:
        typer.echo(
            f"showing the first {SHOWN_USERS} of {n_users:,} users; write all to a file with --out",
            err=True,
        )


def _write(frames: Iterator["pl.DataFrame"], n_users: int, out: Path) -> None:
    from pslrec.errors import ConfigError
    from pslrec.files import whole_file

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} users"),
        TimeRemainingColumn(),
    )
    with (
        Progress(*columns, console=console, disable=not can_redraw(console)) as bar,
        whole_file(out, error=ConfigError) as file,
    ):
        task = bar.add_task("recommending", total=n_users)

        def counted() -> Iterator["pl.DataFrame"]:
            for frame in frames:
                yield frame
                # The next block is asked for only when this one is written.
                bar.advance(task, frame["user"].n_unique())

        n_rows = _write_frames(counted(), file, out.suffix)
    typer.echo(f"wrote {n_rows:,} recommendations for {n_users:,} users to {out}", err=True)


def _write_frames(frames: Iterator["pl.DataFrame"], file: IO[bytes], suffix: str) -> int:
    if suffix == ".parquet":
        return _write_parquet(frames, file)
    n_rows = 0
    for number, frame in enumerate(frames):
        if suffix == ".csv":
            frame.write_csv(file, include_header=number == 0)
        else:
            frame.write_ndjson(file)
        n_rows += len(frame)
    return n_rows


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
