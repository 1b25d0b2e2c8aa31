"""Configuration and environment of runs, with what differs between them in view."""

from collections.abc import Mapping, Sequence
from typing import Any

from pslrec.reporting._document import Block, Fold, Section, Table, Text, words
from pslrec.reporting._run_record import RunRecord


def settings_section(records: Sequence[RunRecord]) -> Section:
    """Settings that differ, then all settings, then what the runs were made with.

    Args:
        records: the runs.
    """
    labels = [record.label for record in records]
    settings = [record.settings for record in records]
    environments = [record.environment for record in records]
    if len(records) == 1:
        blocks: list[Block] = [
            _table("Settings of the run; config.toml in its directory repeats it", labels, settings)
        ]
        if environments[0]:
            blocks.append(_table("What it was made with", labels, environments))
        return Section("Configuration and environment", blocks)
    blocks = [_differences("Settings that differ", labels, settings)]
    if any(environments):
        blocks.append(_differences("Parts of the environment that differ", labels, environments))
    blocks.append(
        Fold("All settings", [_table("Settings; rows that differ are marked", labels, settings)])
    )
    if any(environments):
        blocks.append(
            Fold(
                "Environment",
                [_table("Environment; rows that differ are marked", labels, environments)],
            )
        )
    return Section("Configuration and environment", blocks)


def differing(columns: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names whose values are not the same everywhere.

    >>> differing([{"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 1}])
    ['b']
    """
    return [
        name
        for name in _names(columns)
        if len({_shown(column.get(name)) for column in columns}) > 1
    ]


def _names(columns: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for column in columns for name in column))


def _differences(
    caption: str, labels: Sequence[str], columns: Sequence[Mapping[str, Any]]
) -> Block:
    names = differing(columns)
    if not names:
        return Text(f"{caption}: none.", "note")
    return _table(
        caption, labels, [{name: column.get(name) for name in names} for column in columns]
    )


def _table(caption: str, labels: Sequence[str], columns: Sequence[Mapping[str, Any]]) -> Table:
    marked = set(differing(columns))
    rows = [
        [
            words(name),
            *(
                words(_shown(column.get(name)), "differs" if name in marked else "")
                for column in columns
            ),
        ]
        for name in _names(columns)
    ]
    return Table(caption, ["", *labels], rows)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        ", ".join(_shown(part) for part in value) if isinstance(value, list | tuple) else str(value)
    )
