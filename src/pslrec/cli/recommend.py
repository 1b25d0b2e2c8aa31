"""`pslrec recommend`: ranked lists for some users or all, to a file of any size or to the terminal."""

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

USERS_AT_ONCE = 8192
SHOWN_USERS = 20
SUFFIXES = (".parquet", ".csv", ".jsonl")


def recommend_command(
    run: FinishedRun,
    user: Annotated[list[str] | None, typer.Option(help="Id of a user; repeatable.")] = None,
    users: Annotated[
        Path | None, typer.Option(help="A file of ids: a line each, or a column `user`.")
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--all", help="All users of the training data.")
    ] = False,
    history: Annotated[
        list[str] | None,
        typer.Option(help="Id of an item that somebody new has; repeatable.", metavar="ITEM"),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--k", min=1, help="Length of the lists.")] = 20,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A .parquet, .csv or .jsonl file.")
    ] = None,
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="Keep what a user has already.")
    ] = False,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out ids that are not known.")
    ] = False,
    memory: Annotated[int, typer.Option(min=16, help="Megabytes for scores.")] = 256,
) -> None:
    """Recommend items: to some users or all, or to somebody new by what they have."""
    from pslrec.errors import ConfigError
    from pslrec.inference import TrainedModel

    if sum((bool(user), users is not None, everybody, bool(history))) != 1:
        raise ConfigError("say for whom: one of --user ID, --users FILE, --all or --history ITEM")
    if out is not None and out.suffix not in SUFFIXES:
        raise ConfigError(f"--out must end in {', '.join(SUFFIXES)}, got {out.name}")
    model = TrainedModel.load(run, memory_budget=memory * 2**20)
    if history:
        frames = _for_history(model, history, k, include_seen)
        total = 1
    else:
        rows = _rows(model, user, users, skip_unknown=skip_unknown)
        frames, total = _blocks(model, rows, k, include_seen=include_seen), len(rows)
    if out is None:
        _show(frames, total)
        return
    _write(frames, total, out)


def _rows(
    model: "TrainedModel", user: list[str] | None, file: Path | None, *, skip_unknown: bool
) -> "torch.Tensor":
    import torch

    from pslrec.recommender import rows_of

    if user is None and file is None:
        return torch.arange(model.n_users)
    wanted = (
        [typed(each, model.users) for each in user or []]
        if file is None
        else ids_in(file, model.users)
    )
    known = (
        [each for each in wanted if model.users.find(each) is not None] if skip_unknown else wanted
    )
    if len(known) < len(wanted):
        typer.echo(
            f"{len(wanted) - len(known):,} of {len(wanted):,} ids are not known and left out",
            err=True,
        )
    return rows_of(
        known,
        model.users,
        "; recommend to somebody new with --history, or leave out with --skip-unknown",
    )


def _for_history(
    model: "TrainedModel", history: list[str], k: int, include_seen: bool
) -> Iterator["pl.DataFrame"]:
    import polars as pl

    from pslrec.recommender import ranked_frame, rows_of

    rows = rows_of(
        [typed(each, model.items) for each in history],
        model.items,
        "; it was not there in training",
    )
    top = model.recommend_for([rows], k, exclude_seen=not include_seen)
    yield ranked_frame(pl.Series("user", ["new"]), top, model.items)


def _blocks(
    model: "TrainedModel", rows: "torch.Tensor", k: int, *, include_seen: bool
) -> Iterator["pl.DataFrame"]:
    from pslrec.recommender import ranked_frame

    names = model.users.series
    # Lists of ids take memory, too: long ones go in smaller blocks.
    at_once = max(min(USERS_AT_ONCE, 2**20 // min(k, model.n_items)), 1)
    for block in rows.split(at_once):
        top = model.recommend(block, k, exclude_seen=not include_seen)
        yield ranked_frame(names.gather(block.numpy()), top, model.items)


def _show(frames: Iterator["pl.DataFrame"], total: int) -> None:
    table = Table(box=None, pad_edge=False)
    for heading, justify in (
        ("user", "left"),
        ("rank", "right"),
        ("item", "left"),
        ("score", "right"),
    ):
        table.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    shown: list[Any] = []
    for frame in frames:
        for user, item, score, rank in frame.iter_rows():
            if user not in shown:
                if len(shown) == SHOWN_USERS:
                    break
                shown.append(user)
            table.add_row(
                Text(str(user) if rank == 1 else ""), str(rank), Text(str(item)), f"{score:.4f}"
            )
        if len(shown) == SHOWN_USERS:
            break
    Console().print(table)
    if total > SHOWN_USERS:
        typer.echo(
            f"the first {SHOWN_USERS} of {total:,} users; write all of them with --out", err=True
        )


def _write(frames: Iterator["pl.DataFrame"], total: int, out: Path) -> None:
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
        task = bar.add_task("recommending", total=total)

        def counted() -> Iterator["pl.DataFrame"]:
            for frame in frames:
                yield frame
                bar.advance(task, frame["user"].n_unique())

        n_rows = _write_frames(counted(), file, out.suffix)
    typer.echo(f"{n_rows:,} recommendations for {total:,} users are in {out}", err=True)


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

    # The lists of one block after the other: never all of them in memory.
    try:
        register_io_source(source, schema=first.schema).sink_parquet(file)
    except PolarsError as failure:
        # What went wrong in a block, rather than what polars makes of it.
        raise (failures or [failure])[0] from None
    return n_rows
