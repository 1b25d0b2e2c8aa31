"""Answers requests from the current model, and replaces the model while they go on."""

import asyncio
import ctypes
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException

from pslrec.errors import PslrecError
from pslrec.serving._batching import Batcher
from pslrec.serving._identifiers import shortened
from pslrec.serving._options import ServiceOptions
from pslrec.serving._schemas import HistoryRequest, RecommendRequest
from pslrec.serving._served import ListJob, Ranked, ServedModel


class _Kind(NamedTuple):
    """What lists must have in common to be computed together."""

    model: ServedModel
    are_similar_items: bool
    exclude_seen: bool


class Service:
    """A model and the threads that work with it.

    A request keeps the model it began with, so a reload neither mixes two models in one answer nor
    drops a request.

    Args:
        run: directory of a finished run, or a link to one; a reload reads it again.
        titles: a table of items and their titles, shown beside the ids.
        options: the limits; the defaults if not given.
    """

    def __init__(
        self, run: Path, *, titles: Path | None = None, options: ServiceOptions | None = None
    ) -> None:
        self._run = run
        self._titles = titles
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
        model = ServedModel.load(self._run, self._titles)
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
        rows = model.users.rows(request.users)
        kind = _Kind(model, are_similar_items=False, exclude_seen=request.exclude_seen)
        found = await self.lists.answer(kind, ListJob(rows, request.k), n_users)
        histories: list[list[int]] = [[]] * n_users
        if request.with_history or request.explain:
            histories = [model.history(row) for row in rows]
        lists = await self._entries(model, found, histories, request.explain)
        answers = []
        for row, entries, history in zip(rows, lists, histories, strict=True):
            answer = {"user": model.users.names[row], "items": entries}
            if request.with_history:
                answer["history"] = [_named(model, item) for item in history]
            answers.append(answer)
        return {"recommendations": answers, "model": model.fingerprint}

    async def recommend_for_history(self, request: HistoryRequest) -> dict[str, Any]:
        """A list for somebody who is not in the model."""
        model = self.model
        n_items = len(request.history)
        longest = self.options.longest_history
        self._check_size(request.k, 1, request.explain)
        if n_items > longest:
            raise HTTPException(422, f"`history` may hold at most {longest} items, got {n_items}")
        unknown = []
        # A dictionary, to keep each item once and the order of the first mentions.
        known: dict[int, None] = {}
        for item in request.history:
            row = model.items.find(item)
            if row is None:
                unknown.append(item)
            else:
                known[row] = None
        rows = list(known)
        if unknown and not (request.ignore_unknown and rows):
            sentence = f"unknown item `{shortened(unknown[0])}`"
            if not request.ignore_unknown:
                sentence += "; leave it out, or send `ignore_unknown`: true"
            raise HTTPException(404, sentence)
        kind = _Kind(model, are_similar_items=False, exclude_seen=request.exclude_seen)
        found = await self.histories.answer(kind, ListJob(rows, request.k))
        lists = await self._entries(model, [found], [rows], request.explain)
        return {
            "items": lists[0],
            "history": [_named(model, row) for row in rows],
            "ignored": unknown,
            "model": model.fingerprint,
        }

    async def similar(self, item: str, k: int) -> dict[str, Any]:
        """Items nearest to one."""
        model = self.model
        self._check_size(k, 1, 0)
        row = model.items.row(item)
        kind = _Kind(model, are_similar_items=True, exclude_seen=False)
        found = await self.lists.answer(kind, ListJob([row], k))
        return {
            **_named(model, row),
            "items": _entries(model, found[0]),
            "model": model.fingerprint,
        }

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

    async def _entries(
        self, model: ServedModel, found: list[Ranked], histories: list[list[int]], n_reasons: int
    ) -> list[list[dict[str, Any]]]:
        if not n_reasons:
            return [_entries(model, ranked) for ranked in found]

        def explained() -> list[list[dict[str, Any]]]:
            pairs = zip(found, histories, strict=True)
            return [_explained(model, ranked, history, n_reasons) for ranked, history in pairs]

        # In a thread, since a matrix product per list would hold up the other clients.
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._explainer, explained)


def _lists(kind: _Kind, jobs: Sequence[ListJob]) -> list[list[Ranked]]:
    if kind.are_similar_items:
        return kind.model.similar(jobs)
    return kind.model.lists_for_users(jobs, exclude_seen=kind.exclude_seen)


def _histories(kind: _Kind, jobs: Sequence[ListJob]) -> list[Ranked]:
    return kind.model.lists_for_histories(jobs, exclude_seen=kind.exclude_seen)


def _entries(model: ServedModel, ranked: Ranked) -> list[dict[str, Any]]:
    entries = []
    for item, score in zip(ranked.items, ranked.scores, strict=True):
        entry = _named(model, item)
        entry["score"] = _rounded(score)
        entries.append(entry)
    return entries


def _explained(
    model: ServedModel, ranked: Ranked, history: list[int], n_reasons: int
) -> list[dict[str, Any]]:
    entries = _entries(model, ranked)
    reasons = model.reasons(ranked.items, history, n_reasons)
    for entry, reasons_of_item in zip(entries, reasons, strict=True):
        because = []
        for item, cosine in reasons_of_item:
            because.append({**_named(model, item), "similarity": _rounded(cosine)})
        entry["because"] = because
    return entries


def _named(model: ServedModel, item: int) -> dict[str, Any]:
    named: dict[str, Any] = {"item": model.items.names[item]}
    if model.titles is not None:
        named["title"] = model.titles[item]
    return named


def _rounded(value: float) -> float:
    # Single precision holds about seven digits; more of them would be noise in the answer.
    return float(f"{value:.7g}")


def _give_back_memory() -> None:
    """Let the C library return the memory that the old model and its requests left scattered."""
    if sys.platform != "linux":
        return
    # Not every C library has it.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
