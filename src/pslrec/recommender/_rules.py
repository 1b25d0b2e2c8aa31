"""Rules as keyword arguments of `recommend`, `recommend_for` and `similar_items`."""

from collections.abc import Mapping
from typing import Any, TypedDict

from pslrec.errors import ConfigError
from pslrec.inference import Rules
from pslrec.recommender._frames import as_ids, histories_of


class RuleArguments(TypedDict, total=False):
    """What may be recommended; see `pslrec.inference.Rules`."""

    items: Any
    exclude: Any
    exclude_by_user: Any
    where: str | None
    at_most: Mapping[str, int] | None
    skip_unknown: bool


def rules_from(given: RuleArguments) -> Rules:
    """The rules that somebody gave as keyword arguments.

    Args:
        given: ids in any form that `as_ids` takes, and exclusions by user as a mapping or a frame
            with the columns user and item.
    """
    unknown = sorted(set(given) - set(RuleArguments.__annotations__))
    if unknown:
        allowed = ", ".join(RuleArguments.__annotations__)
        raise ConfigError(f"`{unknown[0]}` is not an argument; the rules are {allowed}")
    items = given.get("items")
    if items is not None:
        items = as_ids(items)
    exclude = given.get("exclude")
    by_user = given.get("exclude_by_user")
    return Rules(
        items=items,
        exclude=[] if exclude is None else as_ids(exclude),
        exclude_by_user={} if by_user is None else _by_user(by_user),
        where=given.get("where"),
        at_most=given.get("at_most") or {},
        skip_unknown=given.get("skip_unknown", False),
    )


def _by_user(given: Any) -> dict[Any, list[Any]]:
    is_table = hasattr(given, "columns")
    if not isinstance(given, Mapping) and not is_table:
        raise ConfigError(
            "`exclude_by_user` must be a mapping from users to item ids, or a frame with the "
            f"columns user and item, got {type(given).__name__}; "
            "to leave items out for everybody, use `exclude`"
        )
    users, lists = histories_of(given)
    return dict(zip(users, lists, strict=True))
