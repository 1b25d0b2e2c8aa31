"""A test part that cannot be looked at before training has ended."""

from typing import Any

from pslrec.data._interactions import Interactions
from pslrec.errors import PslrecError

_HIDDEN = frozenset({"users", "items", "ratings", "timestamps", "weights"})


class SealedTestError(PslrecError):
    """The test part was read before training had ended, or for a choice."""


class SealedInteractions(Interactions):
    """Interactions whose columns raise until `unseal` is called; their vocabularies are open.

    >>> log = SealedInteractions.of(Interactions.from_ids(["ann"], ["tea"]))
    >>> log.n_items
    1
    >>> log.items  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    pslrec.data._sealing.SealedTestError: the test part is sealed until training has ended; ...
    >>> log.unseal("training has ended").items
    array([0], dtype=int32)
    """

    reasons: list[str]

    @classmethod
    def of(cls, interactions: Interactions) -> "SealedInteractions":
        """Seal a part; the part given is not changed."""
        # Not by `__init__`, which would look at the columns.
        sealed = object.__new__(cls)
        object.__setattr__(sealed, "_inside", interactions)
        object.__setattr__(sealed, "user_vocabulary", interactions.user_vocabulary)
        object.__setattr__(sealed, "item_vocabulary", interactions.item_vocabulary)
        object.__setattr__(sealed, "reasons", [])
        return sealed

    def unseal(self, reason: str) -> "SealedInteractions":
        """Open the part from now on; the reason is kept in `reasons`."""
        self.reasons.append(reason)
        return self

    def __getattribute__(self, name: str) -> Any:
        # One without `_inside` was made from opened columns, for example by `select`, and has its
        # own.
        if name not in _HIDDEN or "_inside" not in object.__getattribute__(self, "__dict__"):
            return object.__getattribute__(self, name)
        if not object.__getattribute__(self, "reasons"):
            raise SealedTestError(
                "the test part is sealed until training has ended; make choices on validation data"
            )
        return getattr(object.__getattribute__(self, "_inside"), name)

    def __repr__(self) -> str:
        is_sealed = "_inside" in self.__dict__ and not self.reasons
        state = "Sealed" if is_sealed else "Unsealed"
        return f"{state}{super().__repr__()}"

    def __len__(self) -> int:
        # The size of a test part gives nothing away, and reports state it before training ends.
        inside: Interactions | None = self.__dict__.get("_inside")
        if inside is None:
            return super().__len__()
        return len(inside)
