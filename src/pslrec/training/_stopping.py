"""Stopping between two steps instead of in the middle of one."""

import signal
import threading
from types import FrameType, TracebackType

from pslrec.errors import PslrecError


class TrainingInterrupted(PslrecError):  # noqa: N818 - not an error of anybody
    """The user asked the run to stop; its state is saved."""


class GentleStop:
    """While it is entered, Ctrl-C and SIGTERM only ask to stop; a second Ctrl-C stops at once.

    Signals reach the main thread alone, so in another thread it changes nothing.
    """

    def __init__(self) -> None:
        self.is_requested = False
        self._previous: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> "GentleStop":
        self.is_requested = False
        # Python refuses handlers from other threads.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._request)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _request(self, number: int, _frame: FrameType | None) -> None:
        # A second SIGTERM says nothing new: whoever sends them does so until the process ends.
        if self.is_requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.is_requested = True
