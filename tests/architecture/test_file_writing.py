"""Files are written in one place, `pslrec.files`; whoever opens one for writing elsewhere needs a reason here."""

import ast
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PLACES = ("src/pslrec", "benchmarks", "reproductions", "scripts")
WRITER = "src/pslrec/files"

ALLOWED = {
    "src/pslrec/data/_download.py": "bytes go to a part that the next attempt continues, which is renamed once it is whole",
    "scripts/try_installation.py": "writes what a newcomer's script would write, in a temporary directory",
    "benchmarks/_memory.py": "resets a counter of the system in /proc, which is no file",
}
# Methods that write to the path they belong to, or make, move or copy something.
OF_PATHS = {
    "write_text",
    "write_bytes",
    "touch",
    "mkdir",
    "makedirs",
    "copytree",
    "copyfile",
    "copy2",
}
OPENING = {"open", "fdopen", "NamedTemporaryFile", "mkstemp"}
# Functions that take where to write; a file of `whole_file` is called `file`, memory is called `content`.
TO_A_PLACE = {
    *(
        "write_csv",
        "write_parquet",
        "write_ndjson",
        "write_ipc",
        "sink_parquet",
        "sink_csv",
        "sink_ndjson",
    ),
    *(
        "save",
        "savez",
        "savez_compressed",
        "save_file",
        "tofile",
        "to_csv",
        "to_parquet",
        "savefig",
    ),
}
ALLOWED_NAMES = {"file", "content", "drawing", "picture"}
WRITING_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"}


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _opens_for_writing(call: ast.Call) -> bool:
    mentioned = {node.attr for node in ast.walk(call) if isinstance(node, ast.Attribute)}
    if mentioned & WRITING_FLAGS:
        return True
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    texts = [
        part.value
        for part in given
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    modes = [text for text in texts if text and set(text) <= set("rwaxbt+")]
    return any(set(mode) & set("wax+") for mode in modes)


def _goes_to_a_place(call: ast.Call) -> bool:
    """Whether the first argument is anything but a file that is open already."""
    if not call.args:
        return False
    return not (isinstance(call.args[0], ast.Name) and call.args[0].id in ALLOWED_NAMES)


def _is_write(call: ast.Call) -> bool:
    name = _name(call.func)
    if name in OPENING:
        return _opens_for_writing(call)
    if name == "dump":
        return ast.unparse(call.args[1]) not in ("sys.stdout", *ALLOWED_NAMES)
    if name == "write_index":
        # It takes a writer as well, which is made of a file.
        return not isinstance(call.args[1], ast.Call)
    if not isinstance(call.func, ast.Attribute):
        return False
    return name in OF_PATHS or (name in TO_A_PLACE and _goes_to_a_place(call))


def _writes(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_write(node)]


def files() -> list[Path]:
    found = [path for place in PLACES for path in sorted((REPOSITORY / place).rglob("*.py"))]
    return [path for path in found if WRITER not in path.relative_to(REPOSITORY).as_posix()]


def lines_that_write(path: Path) -> list[int]:
    return [call.lineno for call in _writes(ast.parse(path.read_text(encoding="utf-8")))]


def test_only_the_one_place_opens_files_for_writing() -> None:
    found = {}
    for path in files():
        name = path.relative_to(REPOSITORY).as_posix()
        lines = lines_that_write(path)
        if lines:
            found[name] = lines
    surplus = {name: lines for name, lines in found.items() if name not in ALLOWED}
    assert surplus == {}, "write with `pslrec.files`, so that files are whole or absent"
    assert set(ALLOWED) <= set(found), "these need no exception any more"


@pytest.mark.parametrize(
    "code",
    [
        "path.write_text('x')",
        "open(path, 'w')",
        "path.open('ab')",
        "path.open(mode='x')",
        "os.open(path, os.O_RDWR | os.O_CREAT)",
        "frame.write_csv(path)",
        "frame.write_parquet(directory / 'x')",
        "lazy.sink_parquet(str(path))",
        "np.savez(path, x=x)",
        "np.save('x', x)",
        "json.dump(found, path.open())",
        "faiss.write_index(index, path)",
        "path.mkdir()",
        "shutil.copytree(one, other)",
        "gzip.open(path, 'wb')",
    ],
)
def test_the_check_sees_what_writes(code: str) -> None:
    assert _writes(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "path.read_text()",
        "open(path)",
        "path.open('rb')",
        "write_text(path, 'x')",
        "frame.write_csv()",
        "frame.write_csv(file)",
    ],
)
def test_the_check_lets_pass_what_does_not(code: str) -> None:
    assert not _writes(ast.parse(code))
