"""Measures the code and draws the packages: `python scripts/house.py [--before REVISION]`.

Writes the table and the pictures between the markers of ARCHITECTURE.md. `--before` measures an earlier commit beside
the working tree; without it the column that is there already stays.
"""

import argparse
import ast
import io
import json
import re
import subprocess
import tarfile
import tempfile
import tokenize
import tomllib
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from pslrec.files import write_text

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "ARCHITECTURE.md"
RECORD = REPOSITORY / "docs" / "images" / "house.json"
MARKERS = ("<!-- house -->", "<!-- end of house -->")
PAPERS = REPOSITORY / "reproductions"
NO_CODE = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.COMMENT,
}
WIDEST = 100


@dataclass
class Measures:
    """Counts over some files."""

    tokens: int = 0
    code_lines: int = 0
    lines: int = 0
    long_lines: int = 0
    comments: int = 0
    conditionals: int = 0
    comprehensions: int = 0
    imports: int = 0
    imports_past_a_door: int = 0
    lines_of_one_paper: int = 0

    def rows(self) -> dict[str, str]:
        """What is shown, by name."""
        per_thousand = 1000 / max(self.code_lines, 1)
        return {
            "tokens per code line": f"{self.tokens / max(self.code_lines, 1):.1f}",
            "conditional expressions per 1,000 code lines": f"{self.conditionals * per_thousand:.0f}",
            "comprehensions per 1,000 code lines": f"{self.comprehensions * per_thousand:.0f}",
            "lines over 100 characters": f"{100 * self.long_lines / max(self.lines, 1):.1f} %",
            "comment share": f"{100 * self.comments / max(self.lines, 1):.1f} %",
            "imports that reach past a package's front door": (
                f"{self.imports_past_a_door} of {self.imports}"
            ),
            "lines of modules that know one paper": f"{self.lines_of_one_paper:,}",
            "tokens of the whole package": f"{self.tokens:,}",
        }


GOALS = {
    "tokens per code line": "<= 8",
    "conditional expressions per 1,000 code lines": "<= 15",
    "comprehensions per 1,000 code lines": "<= 25",
    "lines over 100 characters": "< 1 %",
    "comment share": ">= 4 %",
    "imports that reach past a package's front door": "0",
    "lines of modules that know one paper": "0",
    "tokens of the whole package": "",
}


class House:
    """The package as its files stand in one directory."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.files = sorted((source / "pslrec").rglob("*.py"))
        self.names_of_papers = names_of_papers()
        self.measures = Measures()
        self.lines_of: Counter[str] = Counter()
        self.arrows: Counter[tuple[str, str]] = Counter()
        for path in self.files:
            self._read(path)

    def _read(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        room = self._room(path)
        self.lines_of[room] += len(text.splitlines())
        # A loss has a printed name of its own; whoever else writes one knows the tables of a paper.
        if room != "losses" and not self.names_of_papers.isdisjoint(texts(tree)):
            self.measures.lines_of_one_paper += len(text.splitlines())
        self._follow_imports(tree, path, room)
        count_lines(self.measures, text)
        count_code(self.measures, text, docstring_lines(tree))
        for node in ast.walk(tree):
            self.measures.conditionals += isinstance(node, ast.IfExp)
            self.measures.comprehensions += isinstance(
                node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
            )

    def _room(self, path: Path) -> str:
        relative = path.relative_to(self.source / "pslrec")
        return relative.parts[0].removesuffix(".py")

    def _follow_imports(self, tree: ast.AST, path: Path, room: str) -> None:
        package = path.relative_to(self.source).parent.as_posix().replace("/", ".")
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(
                "pslrec."
            ):
                continue
            module = node.module or ""
            target = module.split(".")[1]
            if target == room:
                continue
            self.arrows[room, target] += 1
            self.measures.imports += 1
            self.measures.imports_past_a_door += self._is_past_a_door(package, module)

    def _is_past_a_door(self, package: str, module: str) -> bool:
        is_module = (self.source / f"{module.replace('.', '/')}.py").is_file()
        door = module.rpartition(".")[0]
        return is_module and door != "pslrec" and not f"{package}.".startswith(f"{door}.")


def names_of_papers() -> set[str]:
    """The folders of papers, and the losses as they are printed there."""
    found = set()
    for path in PAPERS.glob("*/paper.toml"):
        paper = tomllib.loads(path.read_text(encoding="utf-8"))
        found.add(path.parent.name)
        found.update(paper["losses"])
    return found


def texts(tree: ast.AST) -> set[str]:
    """All texts in the code."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def docstring_lines(tree: ast.AST) -> set[int]:
    """Numbers of the lines that docstrings stand on."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            found.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return found


def count_lines(measures: Measures, text: str) -> None:
    """Lines of any kind, and those that are too long."""
    for line in text.splitlines():
        measures.lines += 1
        measures.long_lines += len(line) > WIDEST


def count_code(measures: Measures, text: str, docstrings: set[int]) -> None:
    """Tokens, the lines they begin on, and comments; docstrings are neither."""
    occupied = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        line = token.start[0]
        measures.comments += token.type == tokenize.COMMENT
        if token.type in NO_CODE or line in docstrings:
            continue
        measures.tokens += 1
        occupied.add(line)
    measures.code_lines += len(occupied)


def floors() -> list[list[str]]:
    """The layers of the import contract, from the top down."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    found = []
    for layer in layers:
        names = re.findall(r"pslrec\.(\w+)", layer)
        found.append(names)
    return found


def drawing(house: House, title: str) -> str:
    """Floors from the top down; every room says its lines and whom it imports from, how often."""
    width, margin, gap, line_height = 1180, 14, 10, 15
    parts = []
    top = 34
    for floor in floors():
        rooms = [room for room in floor if house.lines_of[room]]
        if not rooms:
            continue
        room_width = (width - 2 * margin - gap * (len(rooms) - 1)) / len(rooms)
        letters = max(int(room_width / 6.4), 10)
        texts = [arrow_lines(house, room, letters) for room in rooms]
        height = 40 + line_height * max(len(text) for text in texts)
        for position, (room, text) in enumerate(zip(rooms, texts, strict=True)):
            left = margin + position * (room_width + gap)
            parts.append(room_drawing(house, room, text, (left, top, room_width, height)))
        top += height + gap
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top + 6}" '
        'font-family="system-ui, sans-serif" role="img">\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect width="{width}" height="{top + 6}" fill="#ffffff"/>\n'
        f'<text x="{margin}" y="22" font-size="15" fill="#333333">{escape(title)}</text>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def arrow_lines(house: House, room: str, letters: int) -> list[str]:
    """Whom a room imports from, the most first, in lines of so many letters."""
    targets = Counter({end: n for (start, end), n in house.arrows.items() if start == room})
    lines: list[str] = []
    for target, count in targets.most_common():
        word = f"{target} {count}"
        if lines and len(lines[-1]) + len(word) + 2 <= letters:
            lines[-1] += f", {word}"
        else:
            lines.append(word)
    return [f"→ {line}" if number == 0 else f"   {line}" for number, line in enumerate(lines)]


def room_drawing(
    house: House, room: str, text: list[str], box: tuple[float, float, float, float]
) -> str:
    """One room: name, lines of code, arrows."""
    left, top, width, height = box
    words = [
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" '
        'fill="#f2f5f9" stroke="#8aa0b8"/>',
        f'<text x="{left + 8:.1f}" y="{top + 19:.1f}" font-size="13" font-weight="600" '
        f'fill="#1d3557">{escape(room)}</text>',
        f'<text x="{left + width - 8:.1f}" y="{top + 19:.1f}" font-size="11" text-anchor="end" '
        f'fill="#555555">{house.lines_of[room]:,}</text>',
    ]
    for number, line in enumerate(text):
        words.append(
            f'<text x="{left + 8:.1f}" y="{top + 37 + 15 * number:.1f}" font-size="11" '
            f'fill="#444444" xml:space="preserve">{escape(line)}</text>'
        )
    return "\n".join(words)


def table(before: Measures | None, after: Measures) -> str:
    """The measures as a Markdown table."""
    lines = ["| measure | before | now | goal |", "| --- | ---: | ---: | ---: |"]
    old = {} if before is None else before.rows()
    for name, value in after.rows().items():
        lines.append(f"| {name} | {old.get(name, '')} | {value} | {GOALS[name]} |")
    return "\n".join(lines)


def checkout(revision: str, directory: Path) -> Path:
    """The sources of an earlier commit."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", revision, "src"],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(directory, filter="data")
    return directory / "src"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", metavar="REVISION", help="an earlier commit to measure as well")
    revision = parser.parse_args().before
    images = RECORD.parent
    if revision is not None:
        with tempfile.TemporaryDirectory() as directory:
            earlier = House(checkout(revision, Path(directory)))
        write_text(images / "house-before.svg", drawing(earlier, "pslrec before the redesign"))
        write_text(RECORD, json.dumps(asdict(earlier.measures), indent=2) + "\n")
    before = None
    if RECORD.exists():
        before = Measures(**json.loads(RECORD.read_text(encoding="utf-8")))
    house = House(REPOSITORY / "src")
    write_text(
        images / "house.svg", drawing(house, "pslrec: lines of each package, and its imports")
    )
    block = "\n".join(
        [
            MARKERS[0],
            "![The packages of pslrec by layer, with their lines and imports](docs/images/house.svg)",
            "",
            table(before, house.measures),
            MARKERS[1],
        ]
    )
    page = PAGE.read_text(encoding="utf-8")
    start = page.index(MARKERS[0])
    end = page.index(MARKERS[1]) + len(MARKERS[1])
    write_text(PAGE, page[:start] + block + page[end:])
    print(table(before, house.measures))


if __name__ == "__main__":
    main()
