"""Answers requests from the current model, and replaces the model while they go on."""

import asyncio
import ctypes
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException

from pslrec.data import find_rows
from pslrec.data.items import TableFile
from pslrec.errors import PslrecError, shortened
from pslrec.inference import RowRules, Rules
from pslrec.serving._batching import Batcher
from pslrec.serving._entries import Entries
from pslrec.serving._options import ServiceOptions
from pslrec.serving._schemas import (
    HistoryRequest,
    RecommendRequest,
    SearchQuery,
    SimilarQuery,
)
from pslrec.serving._served import ListJob, Ranked, ServedModel


class _Kind(NamedTuple):
    """What lists must have in common to be computed together."""

    model: ServedModel
    are_similar_items: bool
    exclude_seen: bool
    rules: RowRules


class Service:
    """A model and the threads that work with it.

    A request keeps the model it began with, so a reload neither mixes two models in one answer nor
    drops a request.

    Args:
        run: directory of a finished run, or a link to one; a reload reads it again.
        item_table: a table of items with their titles, shown beside the ids, and columns that
            rules may refer to; by default the one that was saved with the run.
        options: the limits; the defaults if not given.
    """

    def __init__(
        self,
        run: Path,
        *,
        item_table: TableFile | Path | None = None,
        options: ServiceOptions | None = None,
    ) -> None:
        self._run = run
        self._item_table = item_table
        self.options = options or ServiceOptions()
        self.model = self._load()
        largest = self.options.largest_batch
        self.lists: Batcher[ListJob, list[Ranked]] = Batcher(
            _lists, largest_batch=largest, name="lists"
        )
        # Apart from the others, since they take many times as long.
        self.histories: Batcher[ListJob, Ranked] = Batcher(
            _histories, largest_batch=largest, name="histories"
        )
        self._explainer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="explainer")
        # Always the same thread: the C library keeps memory for each that ever loaded a model.
        self._loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="loader")
        self._is_loading = False

    def _load(self) -> ServedModel:
        model = ServedModel.load(self._run, self._item_table)
        model.warm_up()
        return model

    async def reload(self) -> ServedModel:
        """Read the run again and serve it from now on; if that fails, the old model stays."""
        if self._is_loading:
            raise HTTPException(409, "another reload is running; wait for it")
        self._is_loading = True
        loop = asyncio.get_running_loop()
        try:
            self.model = await loop.run_in_executor(self._loader, self._load)
        except PslrecError as error:
            raise HTTPException(
                409, f"the old model stays, because the new one cannot be read: {error}"
            ) from error
        finally:
            self._is_loading = False
        self._loader.submit(_give_back_memory)
        return self.model

    def close(self) -> None:
        """Wait for the work in hand and end the threads."""
        self.lists.close()
        self.histories.close()
        self._explainer.shutdown(wait=True)
        self._loader.shutdown(wait=True)

    async def recommend(self, request: RecommendRequest) -> dict[str, Any]:
        """Lists for users of the model."""
        model = self.model
        n_users = len(request.users)
        self._check_size(request.k, n_users, request.explain)
        if n_users > self.options.largest_batch:
            raise HTTPException(
                422, f"`users` may hold at most {self.options.largest_batch}, got {n_users}"
            )
        users = find_rows(request.users, model.model.users, skip_unknown=request.ignore_unknown)
        rows = users.rows
        rules = _rules_of(request, request.exclude_by_user)
        hidden = _hidden_lists(rules, rows, model)
        row_rules = await self._row_rules(model, rules)
        kind = _Kind(model, False, request.exclude_seen, row_rules)
        found: list[Ranked] = []
        if rows:
            found = await self.lists.answer(kind, ListJob(rows, request.k, hidden), len(rows))
        histories: list[list[int]] = [[]] * len(rows)
        if request.with_history or request.explain:
            histories = [model.history(row) for row in rows]
        entries = Entries(model, request.details)
        lists = await self._shown(entries, found, histories, request.explain)
        answers = []
        for row, shown, history in zip(rows, lists, histories, strict=True):
            answer = {"user": model.users.names[row], "items": shown}
            if request.with_history:
                answer["history"] = [entries.named(item) for item in history]
            answers.append(answer)
        return {
            "recommendations": answers,
            "ignored": users.unknown,
            "model": model.fingerprint,
        }

    async def recommend_for_history(self, request: HistoryRequest) -> dict[str, Any]:
        """A list for somebody who is not in the model."""
        model = self.model
        n_items = len(request.history)
        longest = self.options.longest_history
        self._check_size(request.k, 1, request.explain)
        if n_items > longest:
            raise HTTPException(422, f"`history` may hold at most {longest} items, got {n_items}")
        found_rows = find_rows(request.history, model.model.items, skip_unknown=True)
        unknown = found_rows.unknown
        # A dictionary, to keep each item once and the order of the first mentions.
        rows = list(dict.fromkeys(found_rows.rows))
        if unknown and not (request.ignore_unknown and rows):
            sentence = f"unknown item `{shortened(unknown[0])}`"
            if not request.ignore_unknown:
                sentence += "; leave it out, or send `ignore_unknown`: true"
            raise HTTPException(404, sentence)
        row_rules = await self._row_rules(model, _rules_of(request, {}))
        kind = _Kind(model, False, request.exclude_seen, row_rules)
        found = await self.histories.answer(kind, ListJob(rows, request.k))
        entries = Entries(model, request.details)
        lists = await self._shown(entries, [found], [rows], request.explain)
        return {
            "items": lists[0],
            "history": [entries.named(row) for row in rows],
            "ignored": unknown,
            "model": model.fingerprint,
        }

    async def similar(self, item: str, query: SimilarQuery) -> dict[str, Any]:
        """Items nearest to one."""
        model = self.model
        self._check_size(query.k, 1, 0)
        row = model.items.row(item)
        row_rules = await self._row_rules(model, Rules(where=query.where))
        kind = _Kind(model, True, False, row_rules)
        found = await self.lists.answer(kind, ListJob([row], query.k))
        entries = Entries(model, query.details)
        return {
            **entries.named(row),
            "items": entries.ranked(found[0]),
            "model": model.fingerprint,
        }

    async def search(self, query: SearchQuery) -> dict[str, Any]:
        """Items by a part of their title or id."""
        model = self.model
        loop = asyncio.get_running_loop()
        # In a thread, since it goes through all titles.
        rows = await loop.run_in_executor(self._explainer, model.search.find, query.text, query.k)
        entries = Entries(model, query.details)
        return {"items": [entries.named(row) for row in rows], "model": model.fingerprint}

    def random_user(self) -> dict[str, Any]:
        """A user who has items, drawn at random."""
        model = self.model
        # Not for secrets: which user it is does not matter.
        row = random.choice(model.users_with_history)
        return {"user": model.users.names[row], "model": model.fingerprint}

    def _check_size(self, k: int, n_lists: int, n_reasons: int) -> None:
        largest = self.options.largest_k
        if k > largest:
            raise HTTPException(
                422, f"`k` must be a whole number from 1 to {largest}, got `{shortened(k)}`"
            )
        most = self.options.largest_answer
        if n_reasons:
            most //= 10
        if k * n_lists > most:
            raise HTTPException(
                422,
                f"one request may ask for {most:,} items in all lists together, "
                f"got {k * n_lists:,}; send several",
            )

    async def _row_rules(self, model: ServedModel, rules: Rules) -> RowRules:
        if not model.rules.is_slow(rules):
            return model.rules.row_rules(rules)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._explainer, model.rules.row_rules, rules)

    async def _shown(
        self, entries: Entries, found: list[Ranked], histories: list[list[int]], n_reasons: int
    ) -> list[list[dict[str, Any]]]:
        if not n_reasons:
            return [entries.ranked(ranked) for ranked in found]

        def explained() -> list[list[dict[str, Any]]]:
            pairs = zip(found, histories, strict=True)
            return [entries.explained(ranked, history, n_reasons) for ranked, history in pairs]

        # In a thread, since a matrix product per list would hold up the other clients.
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._explainer, explained)


def _rules_of(
    request: RecommendRequest | HistoryRequest, exclude_by_user: dict[str, list[int | str]]
) -> Rules:
    return Rules(
        items=request.items,
        exclude=request.exclude,
        exclude_by_user=exclude_by_user,
        where=request.where,
        at_most=request.at_most,
        skip_unknown=request.ignore_unknown,
    )


def _hidden_lists(rules: Rules, rows: list[int], model: ServedModel) -> list[list[int]]:
    """What each user may not get; empty if there are no such rules."""
    by_row = rules.by_row(model.model.users)
    hidden = by_row.hidden_from(rows, model.model.items)
    if hidden is None:
        return []
    return [hidden.list_of(place).tolist() for place in range(len(rows))]


def _lists(kind: _Kind, jobs: Sequence[ListJob]) -> list[list[Ranked]]:
    if kind.are_similar_items:
        return kind.model.similar(jobs, kind.rules)
    return kind.model.lists_for_users(jobs, exclude_seen=kind.exclude_seen, rules=kind.rules)


def _histories(kind: _Kind, jobs: Sequence[ListJob]) -> list[Ranked]:
    return kind.model.lists_for_histories(jobs, exclude_seen=kind.exclude_seen, rules=kind.rules)


def _give_back_memory() -> None:
    """Let the C library return the memory that the old model and its requests left scattered."""
    if sys.platform != "linux":
        return
    # Not every C library has it.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
