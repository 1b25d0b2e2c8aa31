"""Make the embedded Debian data set from a package index, and print what was counted on the way.

    apt-get update
    apt-cache -o Dir::State::status=/dev/null dumpavail |
        python scripts/make_debian_dataset.py --origin "Debian 12.15 (bookworm) ..."

Without the option, `dumpavail` mixes in what happens to be installed on the machine. Any file of binary
package paragraphs will do as well (a mirror's `Packages`). The same text and origin give the same file.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from pslrec.data import Interactions
from pslrec.data.embedded import FILE, pack
from pslrec.files import write_bytes

RELATIONS = ("Depends", "Pre-Depends", "Recommends")
TARGET = Path(__file__).parents[1] / "src" / "pslrec" / "data" / "embedded" / FILE

Pair = tuple[str, str]


def paragraphs(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """The fields of each paragraph; continuation lines are joined to the line they continue."""
    fields: dict[str, str] = {}
    name = ""
    for line in lines:
        text = line.rstrip("\n")
        if not text.strip():
            if fields:
                yield fields
            fields = {}
        elif text[0] in " \t":
            fields[name] += " " + text.strip()
        else:
            name, _, value = text.partition(":")
            fields[name] = value.strip()
    if fields:
        yield fields


def is_main(fields: dict[str, str]) -> bool:
    """Whether a package is in the archive area `main`: others are named before the section: `contrib/x11`."""
    return "/" not in fields.get("Section", "")


def related_names(relation: str) -> list[str]:
    """Bare names of a relation field: first of alternatives, without version, architecture and profile."""
    first_choices = (group.split("|")[0] for group in relation.split(","))
    return [_bare_name(choice) for choice in first_choices if choice.strip()]


def _bare_name(choice: str) -> str:
    for mark in "([<":
        choice = choice.partition(mark)[0]
    return choice.partition(":")[0].strip()


def read_index(
    lines: Iterable[str],
) -> tuple[dict[str, set[str]], dict[str, set[str]], Counter[str]]:
    """Names that each package of `main` relates to, providers of each virtual name, and counts."""
    related: dict[str, set[str]] = {}
    providers: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    for fields in paragraphs(lines):
        counts["paragraphs"] += 1
        if not is_main(fields):
            counts["paragraphs outside main, left out"] += 1
            continue
        package = fields["Package"]
        # Several versions of a package are one user; uniting them does not depend on their order.
        names = related.setdefault(package, set())
        for relation in RELATIONS:
            names.update(related_names(fields.get(relation, "")))
        for virtual in related_names(fields.get("Provides", "")):
            providers.setdefault(virtual, set()).add(package)
    counts["packages"] = len(related)
    return related, providers, counts


def resolve(
    related: dict[str, set[str]], providers: dict[str, set[str]], counts: Counter[str]
) -> list[Pair]:
    """Sorted pairs of a package and what it relates to, without repeats.

    A virtual name with one provider stands for that package, with several it stays; unknown names go.
    """
    pairs: set[Pair] = set()
    for package, names in related.items():
        for name in names:
            found = providers.get(name, set())
            if name in related:
                counts["relations to a package"] += 1
                target = name
            elif not found:
                counts["relations to nothing in the index, left out"] += 1
                continue
            elif len(found) == 1:
                counts["relations to a virtual name, replaced by its only provider"] += 1
                (target,) = found
            else:
                counts["relations to a virtual name of several providers, kept by that name"] += 1
                target = name
            pairs.add((package, target))
    loops = {(package, target) for package, target in pairs if package == target}
    counts["relations of a package to itself, left out"] = len(loops)
    counts["pairs"] = len(pairs) - len(loops)
    return sorted(pairs - loops)


def k_core(pairs: list[Pair], k: int) -> list[Pair]:
    """The largest part in which every user and every item has at least `k` pairs."""
    while True:
        users = Counter(user for user, _ in pairs)
        items = Counter(item for _, item in pairs)
        kept = [(user, item) for user, item in pairs if users[user] >= k and items[item] >= k]
        if len(kept) == len(pairs):
            return kept
        pairs = kept


def build(lines: Iterable[str], k: int = 5) -> tuple[Interactions, Counter[str]]:
    """The data set in a package index, and counts of what was read, resolved and left out."""
    related, providers, counts = read_index(lines)
    pairs = k_core(resolve(related, providers, counts), k)
    if not pairs:
        raise SystemExit(
            f"nothing is left of {counts['packages']} packages in the {k}-core; is this a package index?"
        )
    interactions = Interactions.from_ids([user for user, _ in pairs], [item for _, item in pairs])
    counts[f"pairs in the {k}-core"] = len(interactions)
    counts[f"users in the {k}-core"] = interactions.n_users
    counts[f"items in the {k}-core"] = interactions.n_items
    return interactions, counts


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "index", nargs="?", type=Path, help="file with package paragraphs (default: standard input)"
    )
    parser.add_argument(
        "--origin", required=True, help="one line: distribution, release, areas, architecture, date"
    )
    parser.add_argument(
        "--output", type=Path, default=TARGET, help="file to write (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    if options.index is None:
        sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        interactions, counts = build(sys.stdin)
    else:
        with options.index.open(encoding="utf-8") as lines:
            interactions, counts = build(lines)
    data = pack(interactions, options.origin)
    write_bytes(options.output, data)
    for name, count in counts.items():
        print(f"{count:>9,}  {name}")
    print(f"{len(data):>9,}  bytes in {options.output.name}")


if __name__ == "__main__":
    main()
