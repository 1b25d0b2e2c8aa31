"""Limits of the service."""

from dataclasses import dataclass, fields

from pslrec.errors import ConfigError


@dataclass(frozen=True)
class ServiceOptions:
    """What a single client can ask of the service at most.

    Args:
        token: callers must send it as `Authorization: Bearer TOKEN`. Without a token everybody may
            ask for recommendations, and nobody may reload the model by request.
        largest_k: longest list that can be asked for.
        largest_batch: users per request, and users whose scores are computed at once.
        largest_answer: items in all lists of a request together; a tenth of it with reasons, which
            take longer to compute.
        longest_history: items in a history.
        largest_body: bytes in the body of a request.
        concurrent_requests: requests handled at once; further ones are answered with 503.
        connections: open connections; further ones are answered with 503.
        client_seconds: time for the head of a request to arrive, for its body, and for an answer to
            be read, each.
        stop_seconds: time for requests in work to be answered when the service stops.

    >>> ServiceOptions(largest_k=0)
    Traceback (most recent call last):
    pslrec.errors.ConfigError: `largest_k` must be greater than 0, got 0
    """

    token: str | None = None
    largest_k: int = 1000
    largest_batch: int = 256
    largest_answer: int = 20_000
    longest_history: int = 2000
    largest_body: int = 2**20
    concurrent_requests: int = 256
    connections: int = 1024
    client_seconds: float = 10.0
    stop_seconds: float = 10.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "token" and not value > 0:
                raise ConfigError(f"`{field.name}` must be greater than 0, got {value}")
        if self.token is None:
            return
        # Anything else could not be sent in a header.
        is_sendable = self.token.isascii() and self.token.isprintable()
        if not self.token or not is_sendable:
            raise ConfigError("`token` must be one line of printable ASCII characters")
        if " " in self.token:
            raise ConfigError("`token` must not contain spaces")
