"""What the service allows, and how long it waits."""

from dataclasses import dataclass, fields

from pslrec.errors import ConfigError


@dataclass(frozen=True)
class ServiceOptions:
    """Limits of the service; every one is a bound on what a single client can ask for.

    Args:
        token: what callers must send as `Authorization: Bearer TOKEN`; without it everybody may ask, and nobody may reload.
        largest_k: longest list that can be asked for.
        largest_batch: users of one request, and users whose scores are computed at once.
        largest_answer: items of all lists of one request together; a tenth of that where reasons are asked for.
        longest_history: items of a history.
        largest_body: bytes of a request's body.
        concurrent_requests: requests in work at once; more are answered with 503.
        connections: open connections; more are answered with 503.
        client_seconds: time for a request to arrive, and for an answer to be taken.
        stop_seconds: time that requests in work are given when the service stops.

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
        if self.token is not None and not (
            self.token and self.token.isascii() and self.token.isprintable()
        ):
            raise ConfigError("`token` must be one line of printable ASCII characters")
        if self.token is not None and " " in self.token:
            raise ConfigError("`token` must not contain spaces")
