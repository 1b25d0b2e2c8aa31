import gzip
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pslrec.data import sources
from pslrec.data.sources import SOURCES, Source, fetch, find_raw
from pslrec.errors import DataError, DownloadError

DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs" / "reference" / "sources.md"
FILES = sorted(
    path.stem for path in Path(sources.__file__).parent.glob("[!_]*.py") if path.stem != "base"
)

each_source = pytest.mark.parametrize(
    "source", [SOURCES[name] for name in SOURCES], ids=list(SOURCES)
)


def write_raw(
    source: Source, directory: Path, text: str | None = None, name: str | None = None
) -> Path:
    """A small file as the publishers would have made it."""
    path = directory / (name or source.raw_file)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = (source.sample if text is None else text).encode()
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(source.member or "", content)
            archive.writestr("README", "about the data")
    else:
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def said_of(source: Source) -> str:
    """How a message names the raw file: a zip together with the file in it."""
    if source.member is None or not source.raw_file.endswith(".zip"):
        return source.raw_file
    return f"{source.raw_file}: {Path(source.member).name}"


@pytest.fixture(autouse=True)
def no_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PSLREC_DATA_DIR", raising=False)
    monkeypatch.setenv("PSLREC_CACHE_DIR", str(tmp_path / "cache"))


def test_there_is_one_file_for_each_source() -> None:
    assert len(FILES) == len(SOURCES)
    assert len({SOURCES[name].stem for name in SOURCES}) == len(SOURCES)
    assert len({SOURCES[name].raw_file for name in SOURCES}) == len(SOURCES)


@each_source
def test_source_says_who_it_is_and_what_may_be_done_with_it(source: Source) -> None:
    assert SOURCES[source.name] is source
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", source.name)
    assert source.title
    assert source.page.startswith("https://")
    assert source.licence.endswith(".")


@each_source
def test_source_can_be_got_directly_or_says_how(source: Source) -> None:
    if source.url is None:
        assert "https://" in source.by_hand
    else:
        assert source.url.startswith("https://")
        assert source.url.endswith("/" + source.raw_file)
    if source.checksum is not None:
        assert re.fullmatch(r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", source.checksum)


@each_source
def test_statistics_are_those_of_a_core(source: Source) -> None:
    counts = source.statistics

    assert counts.n_interactions >= source.k_core * max(counts.n_users, counts.n_items)
    assert counts.density == pytest.approx(counts.n_interactions / counts.n_users / counts.n_items)
    assert counts.density < 0.1


@each_source
def test_raw_file_is_read_whole(source: Source, tmp_path: Path) -> None:
    log = source.read_raw(write_raw(source, tmp_path))

    assert len(log) == len(source.sample.splitlines())
    assert log.timestamps is not None
    assert log.timestamps.min() > 800_000_000
    if source.min_rating is None:
        assert log.ratings is None
    else:
        assert log.ratings is not None
        assert np.all((log.ratings >= 1) & (log.ratings <= 5))


@each_source
def test_every_other_name_is_found_and_read_to_the_same_interactions(
    source: Source, tmp_path: Path
) -> None:
    published = source.read_raw(write_raw(source, tmp_path))
    for name in source.other_files:
        if name.removesuffix(".gz").endswith(".csv") and not source.raw_file.endswith(".csv"):
            continue  # another format, with its own tests
        directory = tmp_path / name.replace("/", "-")
        path = write_raw(source, directory, name=name)

        assert find_raw(source.name, directory) == path
        assert source.read_raw(path).to_frame().equals(published.to_frame())


@each_source
def test_missing_last_newline_and_windows_line_ends_change_nothing(
    source: Source, tmp_path: Path
) -> None:
    published = source.read_raw(write_raw(source, tmp_path)).to_frame()
    for text in (
        source.sample.rstrip("\n"),
        source.sample.replace("\n", "\r\n"),
        source.sample + "\n",
    ):
        assert source.read_raw(write_raw(source, tmp_path, text)).to_frame().equals(published)


@each_source
def test_bad_line_is_named_with_file_and_number(source: Source, tmp_path: Path) -> None:
    n_lines = len(source.sample.splitlines())
    path = write_raw(source, tmp_path, source.sample + "not a record\n")

    place = said_of(source)
    with pytest.raises(DataError, match=rf"{re.escape(place)}: line {n_lines + 1} "):
        source.read_raw(path)


@each_source
def test_empty_and_missing_files_are_said(source: Source, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{re.escape(said_of(source))}: the file is empty"):
        source.read_raw(write_raw(source, tmp_path, ""))
    with pytest.raises(DataError, match=r"nowhere: no such file"):
        source.read_raw(tmp_path / "nowhere")


@each_source
def test_bytes_that_are_no_text_are_said(source: Source, tmp_path: Path) -> None:
    path = tmp_path / (source.member or source.raw_file.removesuffix(".gz"))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(source.sample.encode() + b"\xff\xfe\x00\n")

    with pytest.raises(DataError, match=re.escape(path.name)):
        source.read_raw(path)


@each_source
def test_damaged_archive_is_said(source: Source, tmp_path: Path) -> None:
    path = write_raw(source, tmp_path, source.sample * 500)
    if path.suffix not in {".gz", ".zip"}:
        path = write_raw(source, tmp_path, source.sample * 500, name=source.raw_file + ".gz")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    with pytest.raises(DataError, match="truncated or damaged"):
        source.read_raw(path)


@each_source
def test_file_put_there_by_hand_is_taken_without_network(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pslrec.data.sources._locate.matches", lambda *_: True)
    path = write_raw(source, tmp_path)

    assert fetch(source.name, tmp_path) == path


@each_source
def test_without_network_the_error_says_what_to_put_where(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DownloadError("could not be reached")

    monkeypatch.setattr("pslrec.data.sources._locate.download", fail)
    with pytest.raises(DownloadError) as caught:
        fetch(source.name, tmp_path)

    assert str(tmp_path / source.raw_file) in str(caught.value)
    assert (source.url or source.by_hand) in str(caught.value)


@each_source
def test_documentation_has_the_source_with_its_numbers(source: Source) -> None:
    counts = source.statistics
    row = f"| `{source.name}` | {counts.n_users:,} | {counts.n_items:,} | {counts.n_interactions:,} | {counts.density:.5f} |"

    text = DOCUMENTATION.read_text(encoding="utf-8")
    assert row in text
    assert f"`{source.raw_file}`" in text
