"""Configuration and environment of the runs, with what differs between them in view."""

from collections.abc import Mapping, Sequence
from typing import Any

from pslrec.reporting._document import Block, Fold, Mark, Section, Table, Text, words
from pslrec.reporting._run_record import RunRecord

TITLE = "Configuration and environment"


def settings_section(records: Sequence[RunRecord]) -> Section:
    """Show the settings that differ, then all settings, then what the runs were made with.

    Args:
        records: the runs; of a single one everything is shown at once.
    """
    labels = [record.label for record in records]
    settings = [record.settings for record in records]
    environments = [record.environment for record in records]
    blocks: list[Block] = []
    if len(records) == 1:
        caption = "Settings of the run; train with config.toml of its directory to repeat it"
        blocks.append(_table(caption, labels, settings))
        if environments[0]:
            blocks.append(_table("Environment of the run", labels, environments))
        return Section(TITLE, blocks)

    blocks.append(_differences("Settings that differ", labels, settings))
    every_setting = _table("Settings; rows that differ are marked", labels, settings)
    # An environment is no part of what a run needs; one copied from elsewhere may lack it.
    if not any(environments):
        blocks.append(Fold("All settings", [every_setting]))
        return Section(TITLE, blocks)
    blocks.append(_differences("Parts of the environment that differ", labels, environments))
    blocks.append(Fold("All settings", [every_setting]))
    environment = _table("Environment; rows that differ are marked", labels, environments)
    blocks.append(Fold("Environment", [environment]))
    return Section(TITLE, blocks)


def differing(columns: Sequence[Mapping[str, Any]]) -> list[str]:
    """Find the names whose values are not the same everywhere.

    Args:
        columns: values by name, of one run each; a name that is missing has an empty value.

    >>> differing([{"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 1}])
    ['b']
    """
    found = []
    for name in _names(columns):
        # Compared as they are shown: lists cannot be put into a set.
        values = {_shown(column.get(name)) for column in columns}
        if len(values) > 1:
            found.append(name)
    return found


def _names(columns: Sequence[Mapping[str, Any]]) -> list[str]:
    # A dictionary rather than a set, to keep the order in which the runs name them.
    names: dict[str, None] = {}
    for column in columns:
        names |= dict.fromkeys(column)
    return list(names)


def _differences(
    caption: str, labels: Sequence[str], columns: Sequence[Mapping[str, Any]]
) -> Block:
    names = differing(columns)
    if not names:
        return Text(f"{caption}: none.", "note")
    return _table(caption, labels, columns, names)


def _table(
    caption: str,
    labels: Sequence[str],
    columns: Sequence[Mapping[str, Any]],
    names: Sequence[str] | None = None,
) -> Table:
    if names is None:
        names = _names(columns)
    differ = set(differing(columns))
    rows = []
    for name in names:
        mark: Mark = ""
        if name in differ:
            mark = "differs"
        values = [words(_shown(column.get(name)), mark) for column in columns]
        rows.append([words(name), *values])
    return Table(caption, ["", *labels], rows)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if value is True:
        return "yes"
    if value is False:
        return "no"
    if isinstance(value, list | tuple):
        return ", ".join(_shown(part) for part in value)
    return str(value)
