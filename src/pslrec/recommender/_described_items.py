"""What a recommender does with an item table: titles beside ids, and explanations."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import polars as pl

from pslrec.data import Vocabulary, find_rows
from pslrec.data.items import ItemTable, TableFile
from pslrec.errors import DataError
from pslrec.inference import RowRules, RuleKeeper, Rules, TrainedModel
from pslrec.recommender._frames import Output, as_ids, histories_of
from pslrec.recommender._reasons import reason_frame
from pslrec.rows import Rows

UNKNOWN_ITEM = "; it was not in the training data"


class DescribedItems:
    """The part of a `Recommender` that knows titles and categories, and gives reasons."""

    model_: TrainedModel
    # Gives a frame in the library that the caller uses.
    _given_as: Callable[..., Any]
    _item_table: ItemTable | None = None
    _rule_keeper: RuleKeeper | None = None

    def use_item_table(self, source: Any, *, encoding: str | None = None) -> Self:
        """Show the titles of a table beside item ids, and let rules refer to its columns.

        The table is saved and pickled with the model.

        Args:
            source: a CSV, TSV, JSON lines or Parquet file, or a frame. Ids are in the column called
                `item`, `movieId`, `id` or similar, titles in that called `title`, `name` or
                similar; every column can be used in `where` and `at_most`. `None` forgets the
                table.
            encoding: of a text file, such as `latin-1`; UTF-8 if not given.

        Returns:
            The recommender itself.
        """
        table = None
        if isinstance(source, str | Path):
            source = TableFile(Path(source), encoding)
        if source is not None:
            table = ItemTable.read(source, self.model_.items)
        self._item_table = table
        return self

    @property
    def item_table(self) -> ItemTable | None:
        """What `use_item_table` read, in the row order of the model; `None` without a table."""
        if self._item_table is None:
            return None
        return self._table_for(self.model_.items)

    def _table_for(self, items: Vocabulary) -> ItemTable | None:
        table = self._item_table
        if table is None:
            return None
        aligned = table.for_items(items)
        if items is self.model_.items:
            # Another fit has changed the rows; they are the same until the next one.
            self._item_table = aligned
        return aligned

    def _row_rules(self, rules: Rules, items: Vocabulary, hidden: Rows | None) -> RowRules:
        """The rules for the model with these items, kept while the items and the table stay."""
        table = self._table_for(items)
        keeper = self._rule_keeper
        if keeper is None or keeper.items is not items or keeper.table is not table:
            keeper = RuleKeeper(items, table)
            self._rule_keeper = keeper
        found = keeper.row_rules(rules)
        if hidden is None:
            return found
        return replace(found, hidden=hidden)

    def explain(
        self, user: Any, items: Any, n_reasons: int = 3, *, output: Output | None = None
    ) -> Any:
        """Say which items of a user's history speak for some items, by the cosine of their vectors.

        Args:
            user: id of one user from the training data.
            items: one id or several, recommended or not.
            n_reasons: how many reasons to give for each item, if the history has as many.
            output: "polars", "pandas" or "numpy"; by default as the constructor says.

        Returns:
            A frame with the columns item, because, similarity and rank, nearest items first; with
            an item table also title and because_title.
        """
        model = self.model_
        (row,) = find_rows([user], model.users).rows
        history = model.seen.list_of(row).tolist()
        frame = self._reasons(history, items, n_reasons)
        return self._given_as(frame, output, items)

    def explain_for(
        self, history: Any, items: Any, n_reasons: int = 3, *, output: Output | None = None
    ) -> Any:
        """Say which items of a new user's history speak for some items.

        Args:
            history: item ids of one user.
            items: one id or several, recommended or not.
            n_reasons: how many reasons to give for each item, if the history has as many.
            output: "polars", "pandas" or "numpy"; by default as the constructor says.

        Returns:
            The same as `explain`.
        """
        _, histories = histories_of(history)
        if len(histories) != 1:
            raise DataError(
                f"`history` must be the item ids of one user, got those of {len(histories)}; "
                "explain one after the other"
            )
        found = find_rows(histories[0], self.model_.items, hint=UNKNOWN_ITEM)
        # An item that is named twice is one reason.
        distinct = list(dict.fromkeys(found.rows))
        frame = self._reasons(distinct, items, n_reasons)
        return self._given_as(frame, output, history, items)

    def _reasons(self, history: list[int], items: Any, n_reasons: int) -> pl.DataFrame:
        model = self.model_
        rows = find_rows(as_ids(items), model.items, hint=UNKNOWN_ITEM).rows
        return reason_frame(model, rows, history, n_reasons, self.item_table)
