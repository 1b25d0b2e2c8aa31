"""The real program on good and bad data: what it prints, what it writes, how it ends."""

import gzip
import json
import re
import resource
import signal
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from command_line import start

from pslrec.cli.doctor import EXTRAS
from pslrec.data import load, read_interactions, read_published

REPOSITORY = Path(__file__).resolve().parents[2]
USER_ERROR = 2
INTERRUPTED = 130


@pytest.fixture
def ratings(tmp_path):
    """A log of 30 users and 12 items in which everybody has at least 10 interactions."""
    path = tmp_path / "ratings.csv"
    lines = [
        f"u{user},i{item},{1 + (user * item) % 5},{1000 + user + item}"
        for user in range(30)
        for item in range(12)
    ]
    path.write_text("\n".join(["reviewerID,asin,overall,unixReviewTime", *lines]))
    return path


@pytest.fixture
def split(tmp_path):
    def split(train, test, **lists):
        directory = tmp_path / "split"
        directory.mkdir()
        for name, content in {"train": train, "test": test, **lists}.items():
            (directory / f"{name}.tsv").write_text(content)
        return directory

    return split


def test_help_lists_the_verbs(pslrec):
    code, out, _ = pslrec("--help")
    assert code == 0
    assert all(verb in out for verb in ("data", "demo", "doctor"))
    _, out, _ = pslrec("data", "--help")
    assert all(verb in out for verb in ("describe", "prepare", "split", "fetch"))


def test_version_is_printed(pslrec):
    assert re.fullmatch(r"pslrec \d+\.\d+\.\d+\S*\n", pslrec("--version")[1])


def test_doctor_reports_the_compiled_module_and_libraries(pslrec):
    code, out, _ = pslrec("doctor")
    assert code == 0
    for word in ("torch", "polars", "kernels", "compiled", "cache", "extras"):
        assert word in out


def test_doctor_looks_for_a_package_of_each_extra(pslrec):
    declared = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for extra, module in EXTRAS.items():
        packages = [re.split(r"[\[<>=~!]", requirement)[0] for requirement in declared[extra]]
        assert module in [
            re.sub(r"-(cpu|python)$", "", package).replace("-", "_") for package in packages
        ]


def test_describe_counts_the_published_electronic_data(pslrec, data_directory):
    path = data_directory / "iid" / "amazon2014-electronic.zip"
    code, out, error = pslrec("data", "describe", path)
    assert code == 0
    assert re.search(r"users +13,455\n", out)
    assert re.search(r"items +8,360\n", out)
    assert re.search(r"interactions +234,521\n", out)
    assert re.search(r"train +182,398\n *test +52,123\n", out)
    assert re.search(r"8-15 +█+ +8,856 users\n", out)
    assert error == ""


def test_describe_prints_the_guess_of_columns_to_standard_error(pslrec, ratings):
    code, out, error = pslrec("data", "describe", ratings)
    assert code == 0
    guess = "user = `reviewerID`, item = `asin`, rating = `overall`, timestamp = `unixReviewTime`"
    assert error == f"{ratings}: read {guess}\n"
    assert "reviewerID" not in out


def test_quiet_leaves_notes_out(pslrec, ratings):
    assert pslrec("--quiet", "data", "describe", ratings)[2] == ""


def test_describe_as_json_is_one_object(pslrec, ratings):
    code, out, _ = pslrec("data", "describe", ratings, "--json")
    record = json.loads(out)
    assert code == 0
    assert (record["users"], record["items"], record["interactions"]) == (30, 12, 360)
    assert record["density"] == 1.0
    assert record["gini"] == pytest.approx(0)


def test_describe_of_a_split_as_json_counts_its_parts(pslrec, split):
    path = split("user\titem\n1\t1\n1\t2\n2\t1\n", "user\titem\n2\t2\n")
    record = json.loads(pslrec("data", "describe", path, "--json")[1])
    assert (record["train"], record["test"], record["interactions"]) == (3, 1, 4)


def test_describe_says_when_a_split_is_shifted(pslrec, tmp_path):
    parts = tmp_path / "parts"
    assert pslrec("data", "split", "synthetic", "--method", "popularity", "--out", parts)[0] == 0
    code, out, _ = pslrec("data", "describe", parts)
    assert code == 0
    assert "test pairs and pairs held out at random" in out
    assert re.search(r"popularity .* -\d+\.\d %", out)
    assert re.search(
        r"test pairs have less popular items.* than pairs held out at random: .*"
        r"; validation carved out at random will mislead\n",
        out,
    )
    record = json.loads(pslrec("data", "describe", parts, "--json")[1])
    assert record["exchangeability"]["test"]["verdict"] == "shifted"
    code, out, _ = pslrec("data", "describe", parts, "--exchangeability", "off")
    assert code == 0
    assert "held out at random" not in out


def test_describe_says_when_too_few_pairs_can_be_compared(pslrec, split):
    path = split("user\titem\n1\t1\n1\t2\n2\t1\n", "user\titem\n2\t2\n")
    code, out, _ = pslrec("data", "describe", path)
    assert code == 0
    assert "cannot tell whether test pairs are like pairs held out at random: 0 users" in out


def test_names_with_brackets_are_printed_as_they_are(pslrec, ratings, tmp_path):
    path = tmp_path / "[bold] data[1] [red.csv"
    path.write_bytes(ratings.read_bytes())
    code, out, _ = pslrec("data", "describe", path)
    assert code == 0
    assert str(path) in out


def test_columns_and_separator_can_be_given(pslrec, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("who\twhat\thow\nann\ttea\tgood\nbob\tmilk\tbad\n")
    code, out, _ = pslrec(
        "data",
        "describe",
        path,
        "--user-column",
        "who",
        "--item-column",
        "what",
        "--separator",
        "\\t",
    )
    assert code == 0
    assert re.search(r"interactions +2\n", out)


def test_file_without_header_and_odd_columns_can_be_read(pslrec, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("ann,tea,good\nbob,milk,bad\n")
    code, _, error = pslrec("data", "describe", path, "--no-header", "--rating-column", "")
    assert code == 0
    assert "line 1 is taken as data, not as names of columns" in error


def test_prepare_writes_what_it_says(pslrec, ratings, tmp_path):
    out_path = tmp_path / "new" / "prepared.tsv"
    code, out, _ = pslrec(
        "data", "prepare", ratings, "--out", out_path, "--k-core", "5", "--minimum-rating", "2"
    )
    assert code == 0
    prepared = read_interactions(out_path)
    assert f"wrote {len(prepared)} of 360 interactions to {out_path}" in out
    assert prepared.ratings.min() == 2


def test_prepare_keeps_weights(pslrec, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,item\n1,1\n1,1\n2,2\n")
    assert (
        pslrec(
            "data",
            "prepare",
            path,
            "--out",
            tmp_path / "b.csv",
            "--k-core",
            "0",
            "--weights",
            "count",
        )[0]
        == 0
    )
    assert read_interactions(tmp_path / "b.csv").weights.tolist() == [2, 1]


def test_split_writes_a_directory_that_is_read_back(pslrec, ratings, tmp_path):
    code, out, _ = pslrec(
        "data",
        "split",
        ratings,
        "--out",
        tmp_path / "parts",
        "--validation",
        "paper",
        "--method",
        "popularity",
    )
    assert code == 0
    counts = {name: len(part) for name, part in read_published(tmp_path / "parts").parts().items()}
    shown = ", ".join(f"{count} {name}" for name, count in counts.items())
    assert out == f"wrote {shown} interactions to {tmp_path / 'parts'}\n"
    assert list(counts) == ["train", "validation", "test"]
    assert pslrec("data", "describe", tmp_path / "parts")[0] == 0


def test_split_with_the_same_seed_writes_the_same_bytes(pslrec, ratings, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert pslrec("data", "split", ratings, "--out", tmp_path / name, "--seed", seed)[0] == 0
    first, second, third = ((tmp_path / name / "train.tsv").read_bytes() for name in "abc")
    assert first == second != third


def test_repair_drops_what_would_be_refused(pslrec, split):
    path = split("user\titem\n1\t1\n1\t2\n2\t1\n", "user\titem\n2\t2\n1\t1\n")
    code, out, error = pslrec("data", "describe", path, "--repair")
    assert code == 0
    assert re.search(r"test +1\n", out)
    assert error == "1 test pairs were removed: they are in training or validation as well\n"


GOOD = "user,item\na,x\nb,y\n"
TRAIN = "user\titem\n1\t1\n1\t2\n2\t1\n"
# What the file is called, what is in it, and what is said about it after its name.
BAD_FILES = {
    "ambiguous columns": ("a.csv", "user,uid,item\n1,2,3\n", ": `user`, `uid` could all be the user column; the header is"),
    "missing columns": ("a.csv", "name,item\n1,2\n", ": no user column found among `name`, `item`; if these are data"),
    "wrong separator": ("a.csv", "user^item\n1^2\n", ": no user and no item column found among `user^item`; if ',' is not"),
    "unclosed quote": ("a.csv", 'user,item\na,"b\nc,d\n', ": line 2 has a quotation mark that is not closed"),
    "bad encoding": ("a.csv", "user,item\nö,b\n".encode("latin-1"), ": line 2 is not UTF-8 text; in cp1252"),
    "empty file": ("a.csv", "", ": the file is empty"),
    "header only": ("a.csv", "user,item\n", ": there are no interactions in it"),
    "NaN rating": ("a.csv", "user,item,rating\na,b,nan\n", ": line 2: `rating` must be a finite number, got `nan`"),
    "infinite rating": ("a.csv", "user,item,rating\na,b,-inf\n", ": line 2: `rating` must be a finite number, got `-inf`"),
    "decimal comma": ("a.csv", "user;item;rating\na;b;4,5\n", ": line 2: `rating` must be a finite number, got `4,5`, write a"),
    "negative time": ("a.csv", "user,item,ts\na,b,-5\n", ": line 2: `ts` must not be before 1970, got `-5`"),
    "one user only": ("a.csv", "user,item\na,b\na,c\n", ": all interactions are of one user, `a`, and nothing can be learnt"),
    "duplicate columns": ("a.csv", "user,item,user\n1,2,3\n", ": column `user` appears 2 times; rename or remove the others"),
    "duplicate keys": ("a.jsonl", '{"user":1,"user":2,"item":3}\n', ": line 1 has `user` more than once; rename or remove"),
    "truncated gzip": ("a.csv.gz", gzip.compress(GOOD.encode() * 50)[:-9], ": the gzip file is truncated or damaged"),
    "truncated zip": ("a.zip", b"PK\x03\x04" + bytes(20), ": not a zip, or it is truncated or damaged"),
    "not parquet": ("a.parquet", "x", ": not a Parquet file that can be read"),
    "unknown ending": ("a.xyz", GOOD, ": files ending in `.xyz` are not known; name the format with `format=`"),
    "control characters": ("a.csv", "a\x1b[31m\u2028c,b\n1,2\n", ": no user and no item column found among `a\\x1b[31m"),
    "ends of lines in an id": ("a.csv", 'user,item\n"a\nb",1\n"a\nb",2\n', ": all interactions are of one user, `a\\nb`"),
}  # fmt: skip


def assert_one_sentence(code, out, error, message):
    assert code == USER_ERROR
    assert out == ""
    assert error.startswith(f"error: {message}"), error
    assert error.count("\n") == 1
    assert error.endswith("\n")
    assert "Traceback" not in error


@pytest.mark.parametrize("what", BAD_FILES)
@pytest.mark.parametrize("verb", ["describe", "prepare", "split"])
def test_bad_file_is_one_clear_sentence_and_nothing_is_written(pslrec, tmp_path, what, verb):
    name, content, message = BAD_FILES[what]
    path, target = tmp_path / name, tmp_path / "out.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    arguments = ["--quiet", "data", verb, path, *(() if verb == "describe" else ("--out", target))]
    assert_one_sentence(*pslrec(*arguments), f"{path}{message}")
    assert list(tmp_path.iterdir()) == [path]


def test_missing_file(pslrec, tmp_path):
    assert_one_sentence(
        *pslrec("data", "describe", tmp_path / "no.csv"), f"{tmp_path}/no.csv: no such file"
    )


def test_unknown_name(pslrec):
    assert_one_sentence(
        *pslrec("data", "describe", "nothing"),
        "nothing: no such file, and no data set of that name; the names are",
    )


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (
            "user\titem\n1\t1\n",
            "1 test pair is in training or validation as well, the first is user `1` with item `1`",
        ),
        (
            "user\titem\n1\t9\n",
            "1 test pair is of items that are never trained on, the first is user `1` with item `9`",
        ),
        (
            "user\titem\n9\t1\n",
            "1 test pair is of users that are never trained on, the first is user `9` with item `1`",
        ),
    ],
)
def test_leaking_split(pslrec, split, test, message):
    path = split(TRAIN, test)
    assert_one_sentence(
        *pslrec("data", "describe", path),
        f"{path}: {message}; remove them, or read with `repair=True`",
    )


def test_zip_with_unsafe_paths(pslrec, tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train.tsv", TRAIN)
        archive.writestr("test.tsv", "user\titem\n2\t2\n")
        archive.writestr("../../evil", "x")
    assert_one_sentence(
        *pslrec("data", "describe", path),
        f"{path}: the zip has an unsafe path `../../evil` and was not unpacked",
    )


def test_everything_filtered_out(pslrec, ratings, tmp_path):
    result = pslrec(
        "-q", "data", "prepare", ratings, "--out", tmp_path / "b.csv", "--k-core", "1000000"
    )
    assert_one_sentence(
        *result,
        "nothing is left of 162 interactions in the 1000000-core; the largest core that is not empty is 7: ",
    )
    assert not (tmp_path / "b.csv").exists()


def test_ids_with_commas_quotes_and_unicode_are_fine(pslrec, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('user,item\n"a,b","x""y"\n日本,"new\nline"\n')
    assert pslrec("data", "prepare", path, "--out", tmp_path / "b.csv", "--k-core", "0")[0] == 0
    assert read_interactions(tmp_path / "b.csv").to_frame().rows() == [
        ("a,b", 'x"y'),
        ("日本", "new\nline"),
    ]


@pytest.mark.parametrize("verb", ["prepare", "split"])
@pytest.mark.parametrize("place", ["a regular file", "/proc"])
def test_place_that_can_not_be_written(pslrec, ratings, tmp_path, verb, place):
    if place == "a regular file":
        place = tmp_path / "file"
        place.write_text("")
    before = sorted(tmp_path.iterdir())
    target = f"{place}/out.csv"
    result = pslrec(
        "-q",
        "data",
        verb,
        ratings,
        "--out",
        target,
        *(("--k-core", "0") if verb == "prepare" else ()),
    )
    assert_one_sentence(*result, f"{target} cannot be written")
    assert sorted(tmp_path.iterdir()) == before


def test_directory_that_is_full_is_not_overwritten(pslrec, ratings, tmp_path):
    result = pslrec("data", "split", ratings, "--out", tmp_path)
    assert_one_sentence(
        *result, f"{tmp_path} exists already and is not empty; choose another place or remove it"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--method", "random"),
            "unknown split `random`. Available: iid, leave-one-out, none, popularity, temporal",
        ),
        (("--train-fraction", "1.5"), "`train_fraction` must lie between 0 and 1, got 1.5"),
        (
            ("--method", "leave-one-out", "--train-fraction", "0.5"),
            "the split `leave-one-out` has no `train_fraction`",
        ),
        (("--separator", ""), "`separator` must be one or more characters"),
        (("--format", "csv"), "unknown format `csv`"),
        (
            ("--user-column", "nobody"),
            "{path}: there is no column `nobody` for the user; the columns are",
        ),
        (
            ("--method", "temporal", "--time-column", ""),
            "a temporal split needs timestamps, the interactions have none",
        ),
    ],
)
def test_bad_options_are_one_clear_sentence(pslrec, ratings, tmp_path, arguments, message):
    result = pslrec("-q", "data", "split", ratings, "--out", tmp_path / "parts", *arguments)
    assert_one_sentence(*result, message.format(path=ratings))
    assert not (tmp_path / "parts").exists()


def test_unknown_option_is_refused_with_the_same_code(pslrec):
    code, _, error = pslrec("data", "describe", "debian", "--nonsense")
    assert code == USER_ERROR
    assert "Traceback" not in error


def test_interrupt_stops_at_once_without_traceback_and_leaves_nothing(tmp_path):
    script = tmp_path / "script.py"
    # The program is stopped for certain while it writes: the write waits for the signal.
    script.write_text(
        "import signal, time\n"
        "import polars as pl\n"
        # A shell starts what it runs in the background with the signal ignored, and so would be this program.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from pslrec.cli import main\n"
        "def slow(frame, file, **options):\n"
        "    file.write(b'half')\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
        "pl.DataFrame.write_csv = slow\n"
        "main()\n"
    )
    (tmp_path / "a.csv").write_text(GOOD)
    target = tmp_path / "out"
    target.mkdir()
    command = [
        sys.executable,
        str(script),
        "-q",
        "data",
        "prepare",
        "a.csv",
        "--out",
        str(target / "b.csv"),
        "--k-core",
        "0",
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=30)
    assert (process.returncode, out, error) == (INTERRUPTED, "", "stopped\n")
    assert list(target.iterdir()) == []


def test_reader_that_goes_away_is_no_error(ratings):
    with start("-q", "data", "describe", ratings) as process:
        process.stdout.close()
        error = process.stderr.read()
        process.wait(timeout=60)
    assert "Traceback" not in error


def test_terminal_that_knows_ascii_only_gets_stand_ins(ratings):
    with start("data", "describe", ratings, env={"PYTHONIOENCODING": "ascii"}) as process:
        out, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert re.search(r"interactions +360\n", out)


def test_help_comes_at_once():
    def seconds(run):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def ask_for_help():
        with start("--help") as process:
            process.communicate(timeout=60)

    def import_what_draws_help():
        program = "import typer.rich_utils, rich.markdown"
        subprocess.run([sys.executable, "-c", program], check=True)

    # Time of the processor, of which other programs on the machine take nothing away; in units of
    # what every such program needs, as processors differ. Importing torch alone takes nine of these.
    needed = min(seconds(import_what_draws_help) for _ in range(3))
    assert min(seconds(ask_for_help) for _ in range(3)) < 3 * needed


def test_installed_program_runs():
    program = Path(sys.executable).with_name("pslrec")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("pslrec ")


def test_embedded_data_needs_no_network(pslrec):
    code, out, _ = pslrec("data", "describe", "debian")
    assert code == 0
    assert re.search(rf"interactions +{len(load('debian')):,}\n", out)
