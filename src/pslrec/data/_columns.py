"""Which column of a table is the user, the item, the rating, the timestamp, the weight."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches

from pslrec.data._guessing import Rows, guessed_columns
from pslrec.errors import ColumnsError, DataError

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
# Roles by another word that people use for them.
_OTHER_WORDS = {"time": "timestamp"}


def _no_rows() -> Rows:
    return []


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

    @classmethod
    def of(cls, columns: "Columns | Mapping[str, str] | None") -> "Columns":
        """Columns from a mapping such as `{"user": "who", "item": "what", "time": "when"}`.

        Args:
            columns: names by role; `None` leaves all to be guessed, and `Columns` stay as they are.

        >>> Columns.of({"user": "who", "time": "when"})
        Columns(user='who', item=None, rating=None, timestamp='when', weight=None)
        """
        if columns is None:
            return cls()
        if isinstance(columns, Columns):
            return columns
        if not isinstance(columns, Mapping):
            raise DataError(
                '`columns` must be a mapping such as {"user": "who", "item": "what"}, '
                f"got {type(columns).__name__}"
            )
        roles = [field.name for field in fields(cls)]
        named: dict[str, str] = {}
        for word, name in columns.items():
            role = _OTHER_WORDS.get(word, word)
            if role not in roles:
                raise DataError(_unknown_role(str(word), roles))
            if role in named:
                raise DataError(f"`columns` names the {role} twice; leave one out")
            # Labels of pandas may be numbers.
            named[role] = str(name)
        return cls(**named)

    def resolve(
        self,
        available: Sequence[str],
        origin: str,
        *,
        hint: str = "",
        rows: Callable[[], Rows] = _no_rows,
    ) -> "Columns":
        """The same with every name settled, guessed from the usual spellings in any case.

        Args:
            available: the columns that exist, in order.
            origin: what messages call the file.
            hint: what else may be wrong if the user or the item column is not found.
            rows: gives some rows of the table, which are looked at if a column is not found.

        >>> Columns().resolve(["reviewerID", "asin", "text"], "reviews.csv")
        Columns(user='reviewerID', item='asin', rating=None, timestamp=None, weight=None)
        """
        found: dict[str, str | None] = {}
        doubtful = []
        missing = []
        for field in fields(self):
            candidates = self._candidates(field.name, available, origin)
            found[field.name] = None
            if len(candidates) == 1:
                found[field.name] = candidates[0]
            elif candidates:
                doubtful.append(f"{_listed(candidates)} could all be the {field.name} column")
            elif field.name in ("user", "item"):
                missing.append(f"no {field.name}")
        header = _listed(available)
        if missing:
            problem = " and ".join([*doubtful, *missing]) + f" column found among {header}"
            raise self._unclear(f"{origin}: {problem}", found, available, hint, rows)
        if doubtful:
            problem = f"{' and '.join(doubtful)}; the header is {header}"
            raise self._unclear(f"{origin}: {problem}", found, available, "", rows)
        resolved = Columns(**found)
        resolved._check_once(available, origin)
        return resolved

    def _candidates(self, role: str, available: Sequence[str], origin: str) -> list[str]:
        """The columns that may have this role; the one that was given for it, if one was."""
        given: str | None = getattr(self, role)
        is_required = role in ("user", "item")
        if given == "" and not is_required:
            return []
        if given is not None:
            if given not in available:
                raise DataError(
                    f"{origin}: there is no column `{given}` for the {role}; "
                    f"the columns are {_listed(available)}"
                )
            return [given]
        taken = self.present()
        # A name that appears twice is one candidate, and is reported as appearing twice.
        candidates = []
        for name in available:
            if role_of(name) == role and name not in taken and name not in candidates:
                candidates.append(name)
        return candidates

    def _unclear(
        self,
        problem: str,
        found: Mapping[str, str | None],
        available: Sequence[str],
        hint: str,
        rows: Callable[[], Rows],
    ) -> ColumnsError:
        known = {}
        for role, name in found.items():
            if name:
                known[role] = name
        told = {}
        for role, name in guessed_columns(available, rows(), known).items():
            # What was found without being told need not be told now.
            if known.get(role) != name or getattr(self, role) == name:
                told[role] = name
        return ColumnsError(problem, told, hint)

    def _check_once(self, available: Sequence[str], origin: str) -> None:
        chosen = self.present()
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

    def names(self) -> list[str | None]:
        """User, item, rating, timestamp, weight, in this order."""
        return [self.user, self.item, self.rating, self.timestamp, self.weight]

    def present(self) -> list[str]:
        """The names that are given, without those that are guessed or left out."""
        return [name for name in self.names() if name]

    def given(self) -> dict[str, str]:
        """The names that were given by role, empty ones among them.

        >>> Columns(user="who", rating="").given()
        {'user': 'who', 'rating': ''}
        """
        given = {}
        for field, name in zip(fields(self), self.names(), strict=True):
            if name is not None:
                given[field.name] = name
        return given

    def roles(self) -> dict[str, str]:
        """The same names, by what the columns hold."""
        roles = {}
        for field, name in zip(fields(self), self.names(), strict=True):
            if name:
                roles[field.name] = name
        return roles


def _unknown_role(word: str, roles: Sequence[str]) -> str:
    message = f"`columns` has no `{word}`; "
    near = get_close_matches(word, roles, n=1)
    if near:
        message += f"did you mean `{near[0]}`? "
    return f"{message}It takes {', '.join(roles)}"


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
