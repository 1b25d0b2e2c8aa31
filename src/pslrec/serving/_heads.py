"""Where the heads of requests end within the bytes of a connection, and how long each one is."""

from collections.abc import Iterator, Sequence

LARGEST_HEAD = 2**16
_END = b"\r\n\r\n"


class HeadCounter:
    """Cuts the bytes of a connection so that every head ends a piece, and counts each by itself.

    A parser is given the pieces one by one and says what they were; only it knows what is a head
    and what a body. A head ends with an empty line, and so does a body in chunks; a body of a
    declared length ends where that says. So no piece ever holds the end of one request and the
    beginning of the next, however many arrive at once.
    """

    def __init__(self) -> None:
        self.is_in_head = True
        self._n_bytes = 0
        self._last_bytes = b""
        # Of a body of a declared length; `None` in a head and in a body in chunks.
        self._n_left: int | None = None

    @property
    def is_too_large(self) -> bool:
        """Whether the piece that was given last makes its head longer than heads may be."""
        return self.is_in_head and self._n_bytes > LARGEST_HEAD

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """The bytes in parts, each counted before it is given."""
        start = 0
        while start < len(data):
            end = self._end_of_piece(data, start)
            piece = data[start:end]
            if self.is_in_head:
                self._n_bytes += len(piece)
            elif self._n_left is not None:
                self._n_left -= len(piece)
            # An end of a head may itself arrive in two parts.
            self._last_bytes = (self._last_bytes + piece)[-(len(_END) - 1) :]
            start = end
            yield piece

    def head_ended(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """The parser found the end of a head.

        Args:
            headers: of it, names in lower case.
        """
        self.is_in_head = False
        self._n_left = None
        for name, value in headers:
            if name == b"content-length" and value.strip().isdigit():
                self._n_left = int(value)

    def message_ended(self) -> None:
        """The parser found the end of a request; what comes next is a head."""
        self.is_in_head = True
        self._n_bytes = 0
        self._n_left = None
        self._last_bytes = b""

    def _end_of_piece(self, data: bytes, start: int) -> int:
        if self._n_left is not None:
            # At least one byte, so that whatever a parser makes of it, this comes to an end.
            return min(start + max(self._n_left, 1), len(data))
        for overlap in range(len(self._last_bytes), 0, -1):
            rest = len(_END) - overlap
            is_begun_before = self._last_bytes.endswith(_END[:overlap])
            if is_begun_before and data.startswith(_END[overlap:], start):
                return start + rest
        found = data.find(_END, start)
        return len(data) if found < 0 else found + len(_END)
