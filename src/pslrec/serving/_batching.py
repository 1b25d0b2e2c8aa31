"""Micro-batching: requests that arrive while others are computed are then computed together."""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pslrec.errors import PslrecError

Job = TypeVar("Job")
Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class _Waiting(Generic[Job]):
    kind: Hashable
    job: Job
    size: int
    answer: "asyncio.Future[Any]"


class Batcher(Generic[Job, Answer]):
    """Runs jobs of the same kind together in a thread, without waiting for a full batch.

    A job that finds the thread idle starts at once. Jobs that arrive meanwhile form the next batch,
    so batches grow with the load, and a lone caller pays nothing for them.

    Args:
        work: takes a kind and jobs of that kind, and answers them in their order.
        largest_batch: limit on the sum of the sizes of a batch's jobs. A single job may exceed it.
        name: name of the thread, for debuggers.
    """

    def __init__(
        self,
        work: Callable[[Any, Sequence[Job]], Sequence[Answer]],
        *,
        largest_batch: int,
        name: str = "batcher",
    ) -> None:
        self._work = work
        self._largest_batch = largest_batch
        self._waiting: deque[_Waiting[Job]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._is_busy = False
        self.n_batches = 0

    async def answer(self, kind: Hashable, job: Job, size: int = 1) -> Answer:
        """Run a job with others of its kind and return its answer.

        Args:
            kind: jobs are batched together only if their kinds are equal.
            job: what to hand to `work`.
            size: how much of a batch it fills.
        """
        loop = asyncio.get_running_loop()
        waiting = _Waiting(kind, job, size, loop.create_future())
        self._waiting.append(waiting)
        if not self._is_busy:
            self._is_busy = True
            # Not at once: requests that arrived in the same turn of the loop are about to join.
            loop.call_soon(self._start)
        answer: Answer = await waiting.answer
        return answer

    def close(self) -> None:
        """Wait for the batch that is running, and end the thread."""
        self._thread.shutdown(wait=True)

    def _start(self) -> None:
        batch = self._next_batch()
        self._is_busy = bool(batch)
        if not batch:
            return
        self.n_batches += 1
        work = asyncio.get_running_loop().run_in_executor(self._thread, self._run, batch)
        work.add_done_callback(lambda done: self._finish(batch, done.result()))

    def _next_batch(self) -> list[_Waiting[Job]]:
        batch: list[_Waiting[Job]] = []
        others: list[_Waiting[Job]] = []
        size = 0
        while self._waiting and size < self._largest_batch:
            waiting = self._waiting.popleft()
            if waiting.answer.done():
                # Its caller was cancelled while it waited.
                continue
            if batch:
                is_same_kind = waiting.kind == batch[0].kind
                fits = is_same_kind and size + waiting.size <= self._largest_batch
            else:
                # The first job always goes, or one that is too large would wait for ever.
                fits = True
            if fits:
                batch.append(waiting)
                size += waiting.size
            else:
                others.append(waiting)
        # Those left over keep their places at the head of the queue.
        self._waiting.extendleft(reversed(others))
        return batch

    def _run(self, batch: list[_Waiting[Job]]) -> Sequence[Answer | Exception]:
        try:
            return self._work(batch[0].kind, [waiting.job for waiting in batch])
        except PslrecError as error:
            if len(batch) == 1:
                return [error]
            # One of the requests is at fault; running each alone spares the others.
            return [self._run([waiting])[0] for waiting in batch]
        except Exception as error:
            # Each caller raises it; here it would end the thread.
            return [error] * len(batch)

    def _finish(self, batch: list[_Waiting[Job]], answers: Sequence[Answer | Exception]) -> None:
        for waiting, answer in zip(batch, answers, strict=True):
            if waiting.answer.done():
                continue
            if isinstance(answer, Exception):
                waiting.answer.set_exception(answer)
            else:
                waiting.answer.set_result(answer)
        self._start()
