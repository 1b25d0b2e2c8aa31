"""Which column of a table is the user, the item, the rating, the timestamp, the weight."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

from pslrec.errors import DataError

SPELLINGS = {
    "user": "user user_id userid uid user_procid customer customer_id customerid reviewerID reviewer_id visitorid visitor_id",
    "item": "item item_id itemid iid item_procid product product_id productid asin parent_asin movieId movie_id business_id "
    "location location_id",
    "rating": "rating ratings stars overall score",
    "timestamp": "timestamp time ts date datetime when unixReviewTime",
    "weight": "weight confidence",
}


def _canonical(name: str) -> str:
    return re.sub(r"[\s_\-]+", "", name.strip().lower())


_ROLE_OF_SPELLING = {
    _canonical(name): role for role, names in SPELLINGS.items() for name in names.split()
}


def role_of(name: str) -> str | None:
    """What a column of this name usually holds, or `None`.

    >>> role_of("reviewerID"), role_of("Movie Id"), role_of("comment")
    ('user', 'item', None)
    """
    return _ROLE_OF_SPELLING.get(_canonical(name))


@dataclass(frozen=True)
class Columns:
    """Names of the columns to read.

    `None` means: guess it, and do without a rating, timestamp or weight if there is none. The empty name means: do without.
    """

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    timestamp: str | None = None
    weight: str | None = None

    def resolve(self, available: Sequence[str], origin: str, *, hint: str = "") -> "Columns":
        """The same with every name settled, guessed from the usual spellings in any case.

        Args:
            available: the columns that there are, in order.
            origin: the file, for messages.
            hint: what else may be wrong if the user or the item is not found.

        >>> Columns().resolve(["reviewerID", "asin", "text"], "reviews.csv")
        Columns(user='reviewerID', item='asin', rating=None, timestamp=None, weight=None)
        """
        found = {
            field.name: self._resolve_role(field.name, available, origin, hint)
            for field in fields(self)
        }
        resolved = Columns(**found)
        chosen = resolved.present()
        for name in chosen:
            if available.count(name) > 1:
                raise DataError(
                    f"{origin}: column `{name}` appears {available.count(name)} times; rename or remove the others"
                )
            if chosen.count(name) > 1:
                raise DataError(
                    f"{origin}: column `{name}` can not be two things at once; name the columns explicitly"
                )
        return resolved

    def names(self) -> list[str | None]:
        """User, item, rating, timestamp, weight, in this order."""
        return [self.user, self.item, self.rating, self.timestamp, self.weight]

    def present(self) -> list[str]:
        """The names that there are."""
        return [name for name in self.names() if name]

    def roles(self) -> dict[str, str]:
        """The names that there are, by what they hold."""
        return {
            field.name: name for field, name in zip(fields(self), self.names(), strict=True) if name
        }

    def _resolve_role(
        self, role: str, available: Sequence[str], origin: str, hint: str
    ) -> str | None:
        given = getattr(self, role)
        if given == "" and role not in ("user", "item"):
            return None
        if given is not None:
            return self._find(given, role, available, origin)
        taken = self.present()
        candidates = list(
            dict.fromkeys(name for name in available if role_of(name) == role and name not in taken)
        )
        option = f"`{role}=` (on the command line `pslrec data prepare --{role}-column`)"
        if len(candidates) > 1:
            raise DataError(
                f"{origin}: {_listed(candidates)} could all be the {role} column; say which with {option}"
            )
        if not candidates and role in ("user", "item"):
            raise DataError(
                f"{origin}: no {role} column found among {_listed(available)}; name it with {option}{hint}"
            )
        return candidates[0] if candidates else None

    @staticmethod
    def _find(given: str, role: str, available: Sequence[str], origin: str) -> str:
        if given in available:
            return given
        raise DataError(
            f"{origin}: there is no column `{given}` for the {role}; the columns are {_listed(available)}"
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{_shown(name)}`" for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _shown(name: str) -> str:
    # A quotation mark that is not closed makes names of several lines; a message has one.
    line = re.sub(r"[\r\n]+", " ", name)
    return line if len(line) <= 40 else line[:40] + "..."
