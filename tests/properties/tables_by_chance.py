"""Tables of interactions drawn by chance, right ones and damaged ones, with what Python's own readers make of them."""

import csv
import gzip
import io
import json
import random
from dataclasses import dataclass

from pslrec.data._columns import role_of

WORDS = [
    "ann",
    "bob",
    "007",
    "7",
    "-0",
    "ü",
    "日本",
    "a b",
    " x",
    "x ",
    "NaN",
    "null",
    "1.50",
    "user",
    "O'Neil",
    "\u2028z",
]
AWKWARD = [
    "a,b",
    "t\tt",
    "p|q",
    "s;s",
    "x::y",
    'quo"te',
    "line\nbreak",
    "\r",
    '"',
    "two\r\nlines",
    '""',
]
HEADERS = {"user": ["user", "uid", "user_id"], "item": ["item", "asin", "item_id"]}
OTHERS = ["comment", "title", "extra", "note", ""]


@dataclass(frozen=True)
class Drawn:
    """One file, and how to read it.

    Args:
        name: of the file, which tells its format.
        content: its bytes.
        separator: between fields; `None` for JSON lines.
        quoted: whether quotation marks protect.
        is_sound: whether nothing was damaged, so that it must be read.
        columns: names of the user and the item column.
    """

    name: str
    content: bytes
    separator: str | None
    quoted: bool
    is_sound: bool
    columns: tuple[str, str]


def draw(seed: int) -> Drawn:
    """The file of this number: always the same."""
    chance = random.Random(seed)
    return _draw_json(chance) if chance.random() < 0.25 else _draw_table(chance)


def _draw_table(chance: random.Random) -> Drawn:
    ending, separator, quoted = chance.choice(
        [
            ("csv", ",", True),
            ("csv", ";", True),
            ("tsv", "\t", True),
            ("csv", "|", True),
            ("dat", "::", False),
        ]
    )
    names = [chance.choice(HEADERS["user"]), chance.choice(HEADERS["item"])]
    columns = (names[0], names[1])
    names += chance.choice([[], [], ["rating"]])
    extra = chance.sample([name for name in OTHERS if name], chance.randint(0, 3))
    names = chance.sample(names + extra, len(names) + len(extra))
    n_rows = chance.choice([1, 2, 3, 8, 20, 60])
    rows = [[_field(chance, name, quoted, separator) for name in names] for _ in range(n_rows)]
    end = chance.choice(["\n", "\r\n"])
    text = _written(chance, [names, *rows], separator, quoted, end)
    if chance.random() < 0.3:
        text = _with_blank_lines(chance, text, end) if not _has_breaks(rows) else text
    if chance.random() < 0.2:
        text = "\ufeff" + text
    if chance.random() < 0.3:
        text = text.removesuffix(end)
    content = text.encode()
    is_sound = chance.random() < 0.4
    if not is_sound:
        for _ in range(chance.randint(1, 3)):
            content = _damaged(chance, content, separator, names)
    if chance.random() < 0.1:
        ending, content = ending + ".gz", gzip.compress(content)
    return Drawn(f"table.{ending}", content, separator, quoted, is_sound, columns)


def _field(chance: random.Random, name: str, quoted: bool, separator: str) -> str:
    if name == "rating":
        return chance.choice(["5", "4.5", "-1", " 3 ", "1e2", ".5"])
    is_id = name in HEADERS["user"] + HEADERS["item"]
    if not is_id and chance.random() < 0.3:
        return ""
    if quoted and chance.random() < 0.15:
        return chance.choice(AWKWARD)
    word = chance.choice(WORDS) if chance.random() < 0.5 else str(chance.randint(0, 500))
    return word.replace(separator, "") or "x"


def _written(
    chance: random.Random, rows: list[list[str]], separator: str, quoted: bool, end: str
) -> str:
    if not quoted:
        return "".join(separator.join(row) + end for row in rows)
    text = io.StringIO(newline="")
    # Left to itself, the writer puts no quotes around a carriage return, and the reader then takes it as the end of a row.
    styles = [csv.QUOTE_ALL] if _has_breaks(rows) else [csv.QUOTE_MINIMAL, csv.QUOTE_ALL]
    style = chance.choice(styles)
    writer = csv.writer(text, delimiter=separator, lineterminator=end, quoting=style)
    writer.writerows(rows)
    return text.getvalue()


def _has_breaks(rows: list[list[str]]) -> bool:
    return any(mark in field for row in rows for field in row for mark in "\r\n")


def _with_blank_lines(chance: random.Random, text: str, end: str) -> str:
    lines = text.split(end)
    for _ in range(chance.randint(1, 4)):
        lines.insert(chance.randint(0, len(lines)), chance.choice(["", "", "   "]))
    return end.join(lines)


def _damaged(chance: random.Random, content: bytes, separator: str, names: list[str]) -> bytes:
    lines = content.split(b"\n")
    which = chance.randrange(len(lines))
    kind = chance.randrange(10)
    if kind == 0:  # a surplus separator
        at = chance.randint(0, len(lines[which]))
        lines[which] = lines[which][:at] + separator.encode() + lines[which][at:]
    elif kind == 1:  # a field less
        lines[which] = lines[which].rpartition(separator.encode())[0]
    elif kind == 2:  # a stray byte anywhere
        at = chance.randint(0, len(lines[which]))
        stray = chance.choice([b'"', b"\r", b"\0", b"\xff", b" ", b"\n", b"\t", b","])
        lines[which] = lines[which][:at] + stray + lines[which][at:]
    elif kind == 3:  # the header once more
        lines.insert(chance.randint(1, len(lines)), separator.join(names).encode())
    elif kind == 4:  # a line of separators
        lines.insert(which, separator.encode() * (len(names) - 1))
    elif kind == 5:  # a footer
        lines.append(
            chance.choice([b"total", b"3 rows", separator.encode() + b"sum", b"-- end --"])
        )
    elif kind == 6:  # cut off
        return content[: chance.randint(0, len(content))]
    elif kind == 7:  # an emptied field
        fields = lines[which].split(separator.encode())
        fields[chance.randrange(len(fields))] = b""
        lines[which] = separator.encode().join(fields)
    elif kind == 8:  # a surplus field in one line, a field less in another: the totals agree
        lines[which] += separator.encode() + b"x"
        other = chance.randrange(len(lines))
        lines[other] = lines[other].rpartition(separator.encode())[0]
    else:
        lines.insert(which, chance.choice([b"", b"  ", b"\r", b" \t "]))
    return b"\n".join(lines)


JSON_IDS = ["ann", "7", 7, 0, -3, 2**53, 2**53 + 1, 2**63, 12.0, "ü", "", " ", "null"]
JSON_ODD = [None, 1.5, 1e300, 9007199254740992.0, True, [1], {"id": 1}, []]


def _draw_json(chance: random.Random) -> Drawn:
    user, item = chance.choice(HEADERS["user"]), chance.choice(HEADERS["item"])
    is_sound = chance.random() < 0.4
    ids = [value for value in JSON_IDS if value != ""] if is_sound else JSON_IDS + JSON_ODD
    lines = []
    for _ in range(chance.choice([1, 3, 20, 150])):
        record = {
            user: chance.choice(ids),
            item: chance.choice(ids),
            "note": chance.choice(["x", None, [1]]),
        }
        if chance.random() < 0.8 and not is_sound:
            record = {user: chance.randint(0, 9), item: chance.randint(0, 9)}
        lines.append(json.dumps(record, ensure_ascii=chance.random() < 0.5).encode())
    if not is_sound:
        which = chance.randrange(len(lines))
        lines[which] = chance.choice(
            [
                lines[which],
                lines[which][:-1] + b', "%s": 5}' % user.encode(),
                lines[which][:-2],
                b"{}",
                b"[1, 2]",
                b"\0" + lines[which],
                b'{"%s": NaN, "%s": 1}' % (user.encode(), item.encode()),
                b"\xff",
            ]
        )
    if chance.random() < 0.2:
        lines.insert(chance.randint(0, len(lines)), chance.choice([b"", b"   ", b"\r"]))
    content = b"\n".join(lines)
    if chance.random() < 0.2:
        content = b"\xef\xbb\xbf" + content
    return Drawn("lines.jsonl", content, None, False, is_sound, (user, item))


def expected_rows(drawn: Drawn) -> list[tuple[str, ...]]:
    """Users, items and perhaps ratings as text, by `csv` or `json`; raises where these cannot tell."""
    content = gzip.decompress(drawn.content) if drawn.name.endswith(".gz") else drawn.content
    text = content.decode("utf-8-sig")
    if drawn.separator is None:
        return _pairs_of_json(text, drawn.columns)
    if drawn.quoted:
        records = list(
            csv.reader(io.StringIO(text, newline=""), delimiter=drawn.separator, strict=True)
        )
    else:
        records = [line.removesuffix("\r").split(drawn.separator) for line in text.split("\n")]
    filled = [record for record in records if len(record) > 1 or (record and record[0].strip())]
    header = [name.strip() for name in filled[0]]
    # A damaged header may have other names; which column is which is tested elsewhere.
    roles = [role_of(name) for name in header]
    rows = filled[1:]
    wanted = [roles.index(role) for role in ("user", "item", "rating") if role in roles]
    if not wanted:  # the header is lost, and the columns are known by their order
        rows = filled
        wanted = list(range(min(len(header), 3)))
    for record in rows:
        assert len(record) == len(header)
    return [tuple(record[place] for place in wanted) for record in rows]


def _pairs_of_json(text: str, columns: tuple[str, str]) -> list[tuple[str, ...]]:
    pairs: list[tuple[str, ...]] = []
    for line in text.split("\n"):
        if line.strip():
            record = json.loads(line)
            user, item = (_json_text(record[name]) for name in columns)
            pairs.append((user, item))
    return pairs


def _json_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        assert value.is_integer()
        return str(int(value))
    assert isinstance(value, int | str)
    return str(value)
