"""Answers requests from the model of the moment, and exchanges it for another while they go on."""

import asyncio
import ctypes
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from starlette.exceptions import HTTPException

from pslrec.errors import PslrecError
from pslrec.serving._batching import Batcher
from pslrec.serving._identifiers import shortened
from pslrec.serving._options import ServiceOptions
from pslrec.serving._schemas import HistoryRequest, RecommendRequest
from pslrec.serving._served import ListJob, Ranked, ServedModel

Result = TypeVar("Result")


def _give_back_memory() -> None:
    """Let the C library return what the old model and its requests left scattered, where it can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


class Service:
    """A model and the threads that work with it.

    A request keeps the model that it began with, so an exchange neither mixes two models in one answer nor drops a request.

    Args:
        run: directory of a finished run, or a link to one; a reload reads it again.
        titles: a table of items and their titles.
        options: limits.
    """

    def __init__(
        self, run: Path, *, titles: Path | None = None, options: ServiceOptions | None = None
    ) -> None:
        self._run, self._titles = run, titles
        self.options = options or ServiceOptions()
        self.model = self._load()
        largest = self.options.largest_batch
        self.lists: Batcher[ListJob, list[Ranked]] = Batcher(
            _lists, largest_batch=largest, name="lists"
        )
        # On their own, for they take many times as long.
        self.histories: Batcher[ListJob, Ranked] = Batcher(
            _histories, largest_batch=largest, name="histories"
        )
        self._aside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="aside")
        # Always the same thread: the C library keeps memory of its own for each that ever loaded a model.
        self._loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="loader")
        self._is_loading = False

    def _load(self) -> ServedModel:
        model = ServedModel.load(self._run, self._titles)
        model.warm_up()
        return model

    async def reload(self) -> ServedModel:
        """Read the run again and serve it from now on; if that fails, the old one stays."""
        if self._is_loading:
            raise HTTPException(409, "another reload is under way; wait for it")
        self._is_loading = True
        try:
            self.model = await asyncio.get_running_loop().run_in_executor(self._loader, self._load)
            self._loader.submit(_give_back_memory)
        except PslrecError as error:
            raise HTTPException(
                409, f"the old model stays, for the new one can not be read: {error}"
            ) from error
        finally:
            self._is_loading = False
        return self.model

    def close(self) -> None:
        """End the threads, after the work in hand."""
        self.lists.close()
        self.histories.close()
        self._aside.shutdown(wait=True)
        self._loader.shutdown(wait=True)

    async def recommend(self, request: RecommendRequest) -> dict[str, Any]:
        """Lists for users of the model."""
        model, k = self.model, self._checked_k(request.k, len(request.users), request.explain)
        if len(request.users) > self.options.largest_batch:
            raise HTTPException(
                422,
                f"`users` may hold at most {self.options.largest_batch}, got {len(request.users)}",
            )
        rows = model.users.rows(request.users)
        found = await self.lists.answer(
            (model, "users", request.exclude_seen), ListJob(rows, k), len(rows)
        )
        wants_history = request.with_history or request.explain > 0
        histories = [model.history(row) if wants_history else [] for row in rows]
        items = await self._entries(model, found, histories, request.explain)
        answers = [
            {"user": model.users.names[row], "items": entries}
            for row, entries in zip(rows, items, strict=True)
        ]
        if request.with_history:
            for answer, history in zip(answers, histories, strict=True):
                answer["history"] = [_named(model, item) for item in history]
        return {"recommendations": answers, "model": model.fingerprint}

    async def recommend_for_history(self, request: HistoryRequest) -> dict[str, Any]:
        """A list for somebody who is not in the model."""
        model, k = self.model, self._checked_k(request.k, 1, request.explain)
        if len(request.history) > self.options.longest_history:
            raise HTTPException(
                422,
                f"`history` may hold at most {self.options.longest_history} items, got {len(request.history)}",
            )
        found_rows = [(item, model.items.find(item)) for item in request.history]
        unknown = [item for item, row in found_rows if row is None]
        rows = list(dict.fromkeys(row for _, row in found_rows if row is not None))
        if unknown and not (request.ignore_unknown and rows):
            hint = (
                "" if request.ignore_unknown else "; leave it out, or send `ignore_unknown`: true"
            )
            raise HTTPException(404, f"unknown item `{shortened(unknown[0])}`{hint}")
        found = await self.histories.answer(
            (model, "histories", request.exclude_seen), ListJob(rows, k)
        )
        items = await self._entries(model, [found], [rows], request.explain)
        history = [_named(model, row) for row in rows]
        return {
            "items": items[0],
            "history": history,
            "ignored": unknown,
            "model": model.fingerprint,
        }

    async def similar(self, item: str, k: int) -> dict[str, Any]:
        """Items nearest to one."""
        model, k = self.model, self._checked_k(k, 1, 0)
        row = model.items.row(item)
        found = await self.lists.answer((model, "similar", False), ListJob([row], k))
        return {
            **_named(model, row),
            "items": _entries(model, found[0]),
            "model": model.fingerprint,
        }

    def _checked_k(self, k: int, n_lists: int, n_reasons: int) -> int:
        if k > self.options.largest_k:
            raise HTTPException(
                422, f"`k` must be from 1 to {self.options.largest_k}, got {shortened(k)}"
            )
        most = self.options.largest_answer // (10 if n_reasons else 1)
        if k * n_lists > most:
            raise HTTPException(
                422,
                f"one request may ask for {most:,} items in all lists together, got {k * n_lists:,}; send several",
            )
        return k

    async def _entries(
        self, model: ServedModel, found: list[Ranked], histories: list[list[int]], n_reasons: int
    ) -> list[list[dict[str, Any]]]:
        if not n_reasons:
            return [_entries(model, ranked) for ranked in found]

        def explained() -> list[list[dict[str, Any]]]:
            return [
                _explained(model, ranked, history, n_reasons)
                for ranked, history in zip(found, histories, strict=True)
            ]

        return await self._apart(explained)

    async def _apart(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._aside, work)


def _lists(kind: tuple[ServedModel, str, bool], jobs: Sequence[ListJob]) -> list[list[Ranked]]:
    model, what, exclude_seen = kind
    return (
        model.similar(jobs)
        if what == "similar"
        else model.lists_for_users(jobs, exclude_seen=exclude_seen)
    )


def _histories(kind: tuple[ServedModel, str, bool], jobs: Sequence[ListJob]) -> list[Ranked]:
    model, _, exclude_seen = kind
    return model.lists_for_histories(jobs, exclude_seen=exclude_seen)


def _entries(model: ServedModel, ranked: Ranked) -> list[dict[str, Any]]:
    names, titles = model.items.names, model.titles
    entries: list[dict[str, Any]] = [
        {"item": names[item], "score": _short(score)}
        for item, score in zip(ranked.items, ranked.scores, strict=True)
    ]
    if titles is not None:
        for entry, item in zip(entries, ranked.items, strict=True):
            entry["title"] = titles[item]
    return entries


def _explained(
    model: ServedModel, ranked: Ranked, history: list[int], n_reasons: int
) -> list[dict[str, Any]]:
    entries = _entries(model, ranked)
    for entry, reasons in zip(
        entries, model.reasons(ranked.items, history, n_reasons), strict=True
    ):
        entry["because"] = [
            {**_named(model, item), "similarity": _short(cosine)} for item, cosine in reasons
        ]
    return entries


def _named(model: ServedModel, item: int) -> dict[str, Any]:
    named: dict[str, Any] = {"item": model.items.names[item]}
    if model.titles is not None:
        named["title"] = model.titles[item]
    return named


def _short(value: float) -> float:
    # Single precision holds about seven digits; the rest would be noise on the wire.
    return float(f"{value:.7g}")
