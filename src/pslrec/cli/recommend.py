"""`pslrec recommend`: ranked lists for some users or all, in a file or on the terminal."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pslrec.cli._identifiers import ids_in, pairs_in
from pslrec.cli._lists import Blocks, check_file, check_processes, write_lists
from pslrec.cli._options import FinishedRun, NumberOfProcesses, Threads, Timeout, use_threads
from pslrec.cli._processes import is_told_here, joined, start_workers
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

if TYPE_CHECKING:
    import polars as pl
    import torch

    from pslrec.data.items import ItemTable
    from pslrec.inference import Rules, TrainedModel

# Recommended in one block, which is what memory, progress and Ctrl-C go by.
USERS_AT_ONCE = 8192
SHOWN_USERS = 20


def recommend_command(
    run: FinishedRun,
    given: Annotated[
        list[str] | None,
        typer.Argument(metavar="USER", help="Users, the same as --user USER.", show_default=False),
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
    histories: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with histories of new users: a CSV or Parquet table with `user` and `item`.",
        ),
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
    threads: Threads = None,
    processes: NumberOfProcesses = None,
    timeout: Timeout = 600.0,
) -> None:
    """Recommend items to some users or all, or to new users with given histories."""
    from pslrec.errors import ConfigError
    from pslrec.inference import Rules, TrainedModel

    wanted_users = [*(given or []), *(user or [])]
    ways = (bool(wanted_users), users is not None, everybody, bool(history), histories is not None)
    if sum(ways) != 1:
        raise ConfigError(
            "give users, as in `pslrec recommend RUN USER`, or exactly one of `--users FILE`, "
            "`--all`, `--history ITEM` and `--histories FILE`"
        )
    check_file(out)
    check_processes(processes, out)
    titles = table_file(item_table, item_table_encoding)
    start_workers(processes, threads=threads)
    use_threads(threads)
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
    with joined(timeout) as group:
        blocks = _blocks_for_new(wanted, history, histories)
        if blocks is None:
            rows = _rows(model, wanted_users, users, skip_unknown=skip_unknown)
            blocks = _blocks(wanted, rows)
            if out is None and not model.is_known(rows).all():
                _tell_unknown(model, rows)
        if out is None:
            _show(blocks)
        else:
            write_lists(blocks, out, group)


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


def _tell_unknown(model: "TrainedModel", rows: "torch.Tensor") -> None:
    n_unknown = len(rows) - int(model.is_known(rows).sum())
    refit = " --refit" if model.validation_pairs is not None else ""
    typer.echo(
        f"{n_unknown:,} of {len(rows):,} users have no list, as none of their items are in the training "
        f"part: train on everything with `pslrec train --split none{refit}`, or recommend by what they "
        "have with --history",
        err=True,
    )


def _tell_skipped(n_unknown: int, n_ids: int) -> None:
    if n_unknown and is_told_here():
        typer.echo(f"skipped {n_unknown:,} of {n_ids:,} ids, which are unknown", err=True)


def _blocks_for_new(wanted: _Wanted, history: list[str] | None, file: Path | None) -> Blocks | None:
    """Lists for new users; `None` if there are none."""
    if history:
        pairs = [("new", item) for item in history]
    elif file is not None:
        pairs = _pairs_of(file, wanted.model)
    else:
        return None
    names, lists = _found_histories(pairs, wanted)
    hidden = wanted.rules.hidden_from(names, wanted.model.items)
    starts = range(0, len(names), _at_once(wanted))

    def make(number: int) -> "pl.DataFrame":
        import numpy as np
        import polars as pl
        import torch

        from pslrec.recommender import ranked_frame, with_reasons
        from pslrec.rows import Rows

        model = wanted.model
        some = slice(starts[number], starts[number] + starts.step)
        own_hidden = None
        if hidden is not None:
            own_hidden = hidden.select(np.arange(len(names))[some])
        rules = wanted.rules.in_rows(model.items, wanted.table, hidden=own_hidden)
        rows = [torch.tensor(each, dtype=torch.int64) for each in lists[some]]
        top = model.recommend_for(rows, wanted.k, exclude_seen=wanted.exclude_seen, rules=rules)
        frame = ranked_frame(pl.Series("user", names[some]), top, model.items, table=wanted.table)
        if wanted.n_reasons:
            seen = Rows.from_lists(lists[some])
            frame = with_reasons(frame, model, top, seen, wanted.n_reasons, wanted.table)
        return frame

    return Blocks(len(names), len(starts), make)


def _pairs_of(file: Path, model: "TrainedModel") -> list[tuple[str, str]]:
    from pslrec.errors import DataError

    pairs = pairs_in(file, model.users, model.items)
    if pairs is None:
        raise DataError(f"{file} must be a CSV or Parquet file with the columns `user` and `item`")
    if not pairs:
        raise DataError(f"{file} holds no histories; give a line for each item of a user")
    return pairs


def _found_histories(
    pairs: list[tuple[str, str]], wanted: _Wanted
) -> tuple[list[str], list[list[int]]]:
    """Users in the order of their first pair, and the rows of each one's items."""
    from pslrec.data import find_rows

    items = wanted.model.items
    given = [item for _, item in pairs]
    hint = titles_like(given, items, wanted.table)
    unknown = find_rows(given, items, skip_unknown=wanted.rules.skip_unknown, hint=hint).unknown
    _tell_skipped(len(unknown), len(given))
    by_user: dict[str, list[int]] = {}
    for (user, _), row in zip(pairs, items.find_all_given(given), strict=True):
        # A user of unknown items alone gets an empty list.
        own = by_user.setdefault(user, [])
        if row is not None:
            own.append(row)
    return list(by_user), list(by_user.values())


def _at_once(wanted: _Wanted) -> int:
    # The lists themselves take memory, too: long ones come in smaller blocks, of about a million
    # recommendations.
    return max(min(USERS_AT_ONCE, 2**20 // min(wanted.k, wanted.model.n_items)), 1)


def _blocks(wanted: _Wanted, rows: "torch.Tensor") -> Blocks:
    from dataclasses import replace

    from pslrec.recommender import ranked_frame, with_reasons

    model = wanted.model
    names = model.users.series
    by_row = wanted.rules.by_row(model.users)
    rules = by_row.in_rows(model.items, wanted.table)
    parts = rows.split(_at_once(wanted))

    def make(number: int) -> "pl.DataFrame":
        block = parts[number]
        hidden = by_row.hidden_from(block.tolist(), model.items)
        own_rules = replace(rules, hidden=hidden)
        top = model.recommend(block, wanted.k, exclude_seen=wanted.exclude_seen, rules=own_rules)
        frame = ranked_frame(names.gather(block.numpy()), top, model.items, table=wanted.table)
        if wanted.n_reasons:
            seen = model.seen.select(block.numpy())
            frame = with_reasons(frame, model, top, seen, wanted.n_reasons, wanted.table)
        return frame

    return Blocks(len(rows), len(parts), make)


def _show(blocks: Blocks) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("user", no_wrap=True)
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("item", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    shown: list[Any] = []
    for frame in blocks.frames():
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
            "no item is left to recommend; loosen the rules, add --include-seen, or name users and items "
            "that are known",
            err=True,
        )
    if blocks.n_owners > SHOWN_USERS:
        typer.echo(
            f"showing the first {SHOWN_USERS} of {blocks.n_owners:,} users; write all to a file with --out",
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
