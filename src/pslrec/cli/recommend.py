"""`pslrec recommend`: ranked lists for some users or all, in a file or on the terminal."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from pslrec.cli._identifiers import ids_in
from pslrec.cli._options import FinishedRun
from pslrec.cli._rule_options import (
    AtMost,
    Exclude,
    ExcludeFile,
    ItemTableEncoding,
    ItemTableFile,
    Only,
    OnlyFile,
    Where,
    excluded_in,
    limits_from,
    table_file,
    table_in,
    title_cell,
    titles_like,
)
from pslrec.cli._telling import can_redraw

if TYPE_CHECKING:
    import polars as pl
    import torch

    from pslrec.data.items import ItemTable
    from pslrec.inference import Rules, TrainedModel

# Recommended in one block, which is what memory, progress and Ctrl-C go by.
USERS_AT_ONCE = 8192
SHOWN_USERS = 20
SUFFIXES = (".parquet", ".csv", ".jsonl")


def recommend_command(
    run: FinishedRun,
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[USER]...", help="Users, the same as --user USER.", show_default=False
        ),
    ] = None,
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
        bool, typer.Option("--skip-unknown", help="Skip unknown ids instead of failing.")
    ] = False,
    explain: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=10, help="Items of the history to show as reasons for each."
        ),
    ] = 0,
    item_table: ItemTableFile = None,
    item_table_encoding: ItemTableEncoding = None,
    only: Only = None,
    only_file: OnlyFile = None,
    exclude: Exclude = None,
    exclude_file: ExcludeFile = None,
    where: Where = None,
    at_most: AtMost = None,
    memory: Annotated[
        int, typer.Option(metavar="MB", min=16, help="Maximum memory for scores, in megabytes.")
    ] = 256,
) -> None:
    """Recommend items to some users or all, or to a new user with a given history."""
    from pslrec.errors import ConfigError
    from pslrec.inference import Rules, TrainedModel

    wanted_users = [*(given or []), *(user or [])]
    n_ways = sum((bool(wanted_users), users is not None, everybody, bool(history)))
    if n_ways != 1:
        raise ConfigError(
            "give users, as in `pslrec recommend RUN USER`, or exactly one of `--users FILE`, "
            "`--all` and `--history ITEM`"
        )
    if out is not None and out.suffix not in SUFFIXES:
        raise ConfigError(f"`--out` must end in {', '.join(SUFFIXES)}, got {out.name}")
    titles = table_file(item_table, item_table_encoding)
    # The options are checked before a model of perhaps gigabytes is read.
    model = TrainedModel.load(run, memory_budget=memory * 2**20)
    everybody_excluded, by_user = excluded_in(exclude_file, model.users, model.items)
    allowed = list(only or [])
    if only_file is not None:
        allowed += ids_in(only_file, model.items)
    rules = Rules(
        items=allowed if only or only_file else None,
        exclude=[*(exclude or []), *everybody_excluded],
        exclude_by_user=by_user,
        where=where,
        at_most=limits_from(at_most),
        skip_unknown=skip_unknown,
    )
    table = table_in(titles, run, model.items)
    wanted = _Wanted(model, table, rules, k, exclude_seen=not include_seen, n_reasons=explain)
    if history:
        frames = _for_history(wanted, history)
        n_users = 1
    else:
        rows = _rows(model, wanted_users, users, skip_unknown=skip_unknown)
        frames = _blocks(wanted, rows)
        n_users = len(rows)
    if out is None:
        _show(frames, n_users)
    else:
        _write(frames, n_users, out)


class _Wanted(NamedTuple):
    """What all lists of one command have in common."""

    model: "TrainedModel"
    table: "ItemTable | None"
    rules: "Rules"
    k: int
    exclude_seen: bool
    n_reasons: int


def _rows(
    model: "TrainedModel", given: list[str], file: Path | None, *, skip_unknown: bool
) -> "torch.Tensor":
    import torch

    from pslrec.data import find_rows

    if file is not None:
        wanted = ids_in(file, model.users)
    elif given:
        wanted = given
    else:
        return torch.arange(model.n_users)
    hint = "; recommend to new users with --history, or skip unknown ids with --skip-unknown"
    found = find_rows(wanted, model.users, skip_unknown=skip_unknown, hint=hint)
    _tell_skipped(len(found.unknown), len(wanted))
    return torch.tensor(found.rows, dtype=torch.int64)


def _tell_skipped(n_unknown: int, n_ids: int) -> None:
    if n_unknown:
        typer.echo(f"skipped {n_unknown:,} of {n_ids:,} ids, which are unknown", err=True)


def _for_history(wanted: _Wanted, history: list[str]) -> Iterator["pl.DataFrame"]:
    import polars as pl
    import torch

    from pslrec.data import find_rows
    from pslrec.recommender import ranked_frame, with_reasons
    from pslrec.rows import Rows

    model = wanted.model
    skip = wanted.rules.skip_unknown
    hint = titles_like(history, model.items, wanted.table) or "; it is not in the training data"
    found = find_rows(history, model.items, skip_unknown=skip, hint=hint)
    _tell_skipped(len(found.unknown), len(history))
    names = pl.Series("user", ["new"])
    hidden = wanted.rules.hidden_from(names.to_list(), model.items)
    rules = wanted.rules.in_rows(model.items, wanted.table, hidden=hidden)
    rows = torch.tensor(found.rows, dtype=torch.int64)
    top = model.recommend_for([rows], wanted.k, exclude_seen=wanted.exclude_seen, rules=rules)
    frame = ranked_frame(names, top, model.items, table=wanted.table)
    if wanted.n_reasons:
        seen = Rows.from_lists([found.rows])
        frame = with_reasons(frame, model, top, seen, wanted.n_reasons, wanted.table)
    yield frame


def _blocks(wanted: _Wanted, rows: "torch.Tensor") -> Iterator["pl.DataFrame"]:
    from dataclasses import replace

    from pslrec.recommender import ranked_frame, with_reasons

    model = wanted.model
    names = model.users.series
    by_row = wanted.rules.by_row(model.users)
    rules = by_row.in_rows(model.items, wanted.table)
    # The lists themselves take memory, too: long ones come in smaller blocks, of about a million
    # recommendations.
    at_once = max(min(USERS_AT_ONCE, 2**20 // min(wanted.k, model.n_items)), 1)
    for block in rows.split(at_once):
        hidden = by_row.hidden_from(block.tolist(), model.items)
        own_rules = replace(rules, hidden=hidden)
        top = model.recommend(block, wanted.k, exclude_seen=wanted.exclude_seen, rules=own_rules)
        frame = ranked_frame(names.gather(block.numpy()), top, model.items, table=wanted.table)
        if wanted.n_reasons:
            seen = model.seen.select(block.numpy())
            frame = with_reasons(frame, model, top, seen, wanted.n_reasons, wanted.table)
        yield frame


def _show(frames: Iterator["pl.DataFrame"], n_users: int) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("user", no_wrap=True)
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("item", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    shown: list[Any] = []
    for frame in frames:
        if "because" in frame.columns and len(table.columns) == 4:
            table.add_column("because of")
        for record in frame.iter_rows(named=True):
            user = record["user"]
            if user not in shown:
                if len(shown) == SHOWN_USERS:
                    break
                shown.append(user)
            # The user's name stands in the first row of its list only.
            name = str(user) if record["rank"] == 1 else ""
            table.add_row(*_cells(record, name))
        # Blocks are computed as they are asked for, so nothing is computed beyond this one.
        if len(shown) == SHOWN_USERS:
            break
    Console().print(table)
    if not shown:
        typer.echo(
            "no item is left to recommend; loosen the rules, or add --include-seen", err=True
        )
    if n_users > SHOWN_USERS:
        typer.echo(
            f"showing the first {SHOWN_USERS} of {n_users:,} users; write all to a file with --out",
            err=True,
        )


def _cells(record: dict[str, Any], user: str) -> list[str | Text]:
    """A line of the table; as Text, as an id may hold brackets that rich would take for markup."""
    item = title_cell(record, "item")
    cells: list[str | Text] = [Text(user), str(record["rank"]), Text(item)]
    cells.append(f"{record['score']:.4f}")
    if "because" in record:
        names = record["because"]
        titles = record.get("because_titles", names)
        # An item without a title is named by its id.
        shown = [str(title or name) for title, name in zip(titles, names, strict=True)]
        cells.append(Text(", ".join(shown)))
    return cells


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
