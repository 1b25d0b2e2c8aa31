"""`pslrec report`, from the command line to a browser."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pslrec.config import RunConfig
from pslrec.experiment import run
from pslrec.reporting import reproduction_report

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "reproductions" / "psl-neurips-2024"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def runs(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs")
    for loss in ("sl", "psl-relu"):
        settings: dict[str, Any] = {
            "data.source": str(log),
            "loss.name": loss,
            "sampling.negatives": 5,
        }
        settings |= {"training.epochs": 2, "training.validate_every": 1, "backbone.dimension": 4}
        run(RunConfig.from_settings(settings), out=directory / loss)
    return directory


def test_report_command_writes_one_file(pslrec, runs, tmp_path):
    code, out, err = pslrec(
        "report", runs / "sl", runs / "psl-relu", "--out", tmp_path / "made" / "r.html"
    )
    assert code == 0, err
    assert "the report is in" in out
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["r.html"]
    assert "Comparison of 2 runs" in (tmp_path / "made" / "r.html").read_text()


def test_report_command_takes_a_reproduction(pslrec, tmp_path):
    code, _, err = pslrec("report", RESULTS, "-o", tmp_path / "r.html")
    assert code == 0, err
    assert "compared with the published numbers" in (tmp_path / "r.html").read_text()


def test_report_command_explains_what_it_can_not_take(pslrec, runs, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    shop = tmp_path / "shop"
    shop.mkdir()
    # Somebody's own data is not a table of results.
    (shop / "log.csv").write_text("user,item\nann,tea\n")
    (shop / "kauf.csv").write_bytes("Käufer;Ware\nJörg;Käse\n".encode("latin-1"))
    for arguments, message in [
        ((tmp_path / "nowhere",), "there is no directory"),
        ((empty,), "holds neither a run nor the results of a reproduction; RUN must be"),
        ((shop,), "holds neither a run nor the results of a reproduction; RUN must be"),
        ((runs,), f"it holds runs: pslrec report {runs}/psl-relu {runs}/sl"),
        ((runs / "sl", RESULTS), "give it alone"),
        ((runs / "sl", "-o", empty), "must be a file such as report.html"),
    ]:
        code, _, err = pslrec("report", *arguments)
        assert code == 2
        assert message in err
        assert "Traceback" not in err
        assert len(err.strip().splitlines()) == 1


MEASURE = """
<script>
const rows = (table) => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent);
const table = [...document.querySelectorAll("table")].find((one) => one.tBodies[0].rows.length > 2);
const before = rows(table);
table.tHead.rows[0].cells[0].click();
table.tHead.rows[0].cells[0].click();
const charts = [...document.querySelectorAll("svg.chart")].map((chart) => {
  const box = chart.getBoundingClientRect();
  const inside = [...chart.querySelectorAll("text")].filter((text) => {
    const own = text.getBoundingClientRect();
    return own.left < box.left - 1 || own.right > box.right + 1 || own.bottom > box.bottom + 1;
  }).map((text) => text.textContent);
  const lines = [...chart.querySelectorAll(".line, .bar")].filter((line) => line.getBBox().width > 5).length;
  return {width: box.width, height: box.height, lines, outside: inside};
});
const found = {charts, wide: document.documentElement.scrollWidth, window: window.innerWidth, before, after: rows(table),
  ground: getComputedStyle(document.documentElement).backgroundColor};
const note = document.createElement("pre");
note.id = "found";
note.textContent = JSON.stringify(found);
document.body.append(note);
</script>
"""


def opened(page: Path, width: int, *options: str) -> tuple[dict[str, Any], str]:
    """What a browser makes of a page: measures taken by a script put into a copy of it, and the messages of its console."""
    text = page.read_text(encoding="utf-8")
    policy = re.search(r'<meta http-equiv="Content-Security-Policy"[^>]*>', text)
    assert policy is not None
    copy = page.with_name("measured.html")
    copy.write_text(
        text.replace(policy.group(), "").replace("</body>", f"{MEASURE}</body>"), encoding="utf-8"
    )
    messages = ""
    for file in (page, copy):
        done = subprocess.run(
            [
                str(CHROMIUM),
                *(
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--enable-logging=stderr",
                    "--hide-scrollbars",
                ),
                *(
                    f"--window-size={width},900",
                    f"--user-data-dir={page.parent / 'profile'}",
                    *options,
                ),
                *("--dump-dom", file.as_uri()),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        messages += "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, messages
    return json.loads(
        found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    ), messages


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize("kind", ["runs", "reproduction"])
@pytest.mark.parametrize("width", [1200, 500])
def test_report_opens_in_a_browser_with_charts_drawn(kind, width, pslrec, runs, tmp_path):
    page = tmp_path / "report.html"
    if kind == "runs":
        assert pslrec("report", runs / "sl", runs / "psl-relu", "--out", page)[0] == 0
    else:
        reproduction_report(RESULTS / "results", page)
    found, messages = opened(page, width)
    assert messages == ""
    assert len(found["charts"]) >= 3
    for chart in found["charts"]:
        assert chart["width"] > 250
        assert chart["height"] > 60  # a single bar
        assert chart["lines"] >= 1
        assert chart["outside"] == []
    assert found["wide"] <= found["window"]
    assert sorted(found["before"]) == sorted(found["after"])
    assert found["before"] != found["after"]


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_report_is_dark_where_that_is_preferred(tmp_path):
    page = reproduction_report(RESULTS / "results", tmp_path / "report.html")
    light, _ = opened(page, 800)
    dark, _ = opened(page, 800, "--blink-settings=preferredColorScheme=0")
    assert light["ground"] == "rgb(255, 255, 255)"
    assert dark["ground"] == "rgb(20, 24, 31)"
