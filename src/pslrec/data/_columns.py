"""Which column of a table is the user, the item, the rating, the timestamp, the weight."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

from pslrec.errors import DataError

# The usual names of columns. Case, spaces, underscores and hyphens do not matter.
SPELLINGS = {
    "user": ("user user_id uid user_procid customer customer_id reviewerID reviewer_id visitor_id"),
    "item": (
        "item item_id iid item_procid product product_id asin parent_asin movieId movie_id "
        "business_id location location_id"
    ),
    "rating": "rating ratings stars overall score",
    "timestamp": "timestamp time ts date datetime when unixReviewTime",
    "weight": "weight confidence",
}


def _canonical(name: str) -> str:
    return re.sub(r"[\s_\-]+", "", name.strip().lower())


def _roles_by_spelling() -> dict[str, str]:
    roles = {}
    for role, names in SPELLINGS.items():
        for name in names.split():
            roles[_canonical(name)] = role
    return roles


_ROLE_OF_SPELLING = _roles_by_spelling()


def role_of(name: str) -> str | None:
    """What a column of this name usually holds, or `None`.

    >>> role_of("reviewerID"), role_of("Movie Id"), role_of("comment")
    ('user', 'item', None)
    """
    return _ROLE_OF_SPELLING.get(_canonical(name))


@dataclass(frozen=True)
class Columns:
    """Names of the columns to read.

    `None` means that the name is guessed, and that a rating, timestamp or weight may be absent. The
    empty name means that the column is not read.

    Args:
        user: column of user ids.
        item: column of item ids.
        rating: column of ratings.
        timestamp: column of times.
        weight: column of weights.
    """

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    timestamp: str | None = None
    weight: str | None = None

    def resolve(self, available: Sequence[str], origin: str, *, hint: str = "") -> "Columns":
        """The same with every name settled, guessed from the usual spellings in any case.

        Args:
            available: the columns that exist, in order.
            origin: what messages call the file.
            hint: what else may be wrong if the user or the item column is not found.

        >>> Columns().resolve(["reviewerID", "asin", "text"], "reviews.csv")
        Columns(user='reviewerID', item='asin', rating=None, timestamp=None, weight=None)
        """
        found = {}
        for field in fields(self):
            found[field.name] = self._resolve_role(field.name, available, origin, hint)
        resolved = Columns(**found)
        chosen = resolved.present()
        for name in chosen:
            if available.count(name) > 1:
                raise DataError(
                    f"{origin}: column `{name}` appears {available.count(name)} times; "
                    "rename or remove the others"
                )
            if chosen.count(name) > 1:
                raise DataError(
                    f"{origin}: column `{name}` cannot be two things at once; "
                    "name the columns explicitly"
                )
        return resolved

    def names(self) -> list[str | None]:
        """User, item, rating, timestamp, weight, in this order."""
        return [self.user, self.item, self.rating, self.timestamp, self.weight]

    def present(self) -> list[str]:
        """The names that are given, without those that are guessed or left out."""
        return [name for name in self.names() if name]

    def roles(self) -> dict[str, str]:
        """The same names, by what the columns hold."""
        roles = {}
        for field, name in zip(fields(self), self.names(), strict=True):
            if name:
                roles[field.name] = name
        return roles

    def _resolve_role(
        self, role: str, available: Sequence[str], origin: str, hint: str
    ) -> str | None:
        given: str | None = getattr(self, role)
        is_required = role in ("user", "item")
        if given == "" and not is_required:
            return None
        if given is not None:
            if given not in available:
                raise DataError(
                    f"{origin}: there is no column `{given}` for the {role}; "
                    f"the columns are {_listed(available)}"
                )
            return given
        taken = self.present()
        # A name that appears twice is one candidate, and is reported as appearing twice.
        candidates = []
        for name in available:
            if role_of(name) == role and name not in taken and name not in candidates:
                candidates.append(name)
        option = f"`{role}=` (on the command line `pslrec data prepare --{role}-column`)"
        if len(candidates) > 1:
            raise DataError(
                f"{origin}: {_listed(candidates)} could all be the {role} column; "
                f"say which with {option}"
            )
        if candidates:
            return candidates[0]
        if is_required:
            raise DataError(
                f"{origin}: no {role} column found among {_listed(available)}; "
                f"name it with {option}{hint}"
            )
        return None


def _listed(names: Sequence[str]) -> str:
    # A table may have thousands of columns; a message shows the first.
    shown = ", ".join(f"`{_shown(name)}`" for name in names[:12])
    if len(names) > 12:
        shown += f" and {len(names) - 12} more"
    return shown


def _shown(name: str) -> str:
    # A quotation mark that is not closed makes names of several lines; a message has one.
    line = re.sub(r"[\r\n]+", " ", name)
    if len(line) > 40:
        line = line[:40] + "..."
    return line
