"""Requests that arrive while the processor is busy wait, and are then answered together by one matrix product."""

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
    """Runs jobs of one kind together, in one thread of its own, without ever waiting for more of them to come.

    A job that finds the thread idle starts at once. Those that come meanwhile make up the next batch, so batches grow with
    the load and a lone caller pays nothing for them.

    Args:
        work: answers jobs of one kind, in their order.
        largest_batch: a batch is closed when its jobs' sizes reach this.
        name: of the thread.
    """

    def __init__(
        self,
        work: Callable[[Any, Sequence[Job]], Sequence[Answer]],
        *,
        largest_batch: int,
        name: str = "batcher",
    ) -> None:
        self._work, self._largest_batch = work, largest_batch
        self._waiting: deque[_Waiting[Job]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._is_busy = False
        self.n_batches = 0

    async def answer(self, kind: Hashable, job: Job, size: int = 1) -> Answer:
        """What the work makes of a job.

        Args:
            kind: only jobs of equal kind go together.
            job: the job.
            size: how much of a batch it fills.
        """
        loop = asyncio.get_running_loop()
        waiting = _Waiting(kind, job, size, loop.create_future())
        self._waiting.append(waiting)
        if not self._is_busy:
            self._is_busy = True
            # Not yet: others that arrived with this one are about to join.
            loop.call_soon(self._start)
        answer: Answer = await waiting.answer
        return answer

    def close(self) -> None:
        """Let the work in hand finish and end the thread."""
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
            first = self._waiting.popleft()
            if first.answer.done():  # its caller went away
                continue
            fits = not batch or (
                first.kind == batch[0].kind and size + first.size <= self._largest_batch
            )
            (batch if fits else others).append(first)
            size += first.size if fits else 0
        self._waiting.extendleft(reversed(others))
        return batch

    def _run(self, batch: list[_Waiting[Job]]) -> Sequence[Answer | Exception]:
        try:
            return self._work(batch[0].kind, [waiting.job for waiting in batch])
        except PslrecError as error:
            if len(batch) == 1:
                return [error]
            # Somebody's request is at fault; the others must not suffer for it.
            return [self._run([waiting])[0] for waiting in batch]
        except Exception as error:  # it belongs to the callers, not to this thread
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
