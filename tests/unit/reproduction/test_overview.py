"""The summary of a paper's page: who is counted, the noise, the causes, and the picture."""

from pathlib import Path

import pytest

from pslrec.errors import ConfigError
from pslrec.reporting import Presentation, agreement_of
from pslrec.reproduction import Places, Reproduction
from pslrec.reproduction._overview import read_causes

PAPER = """
title = "A paper"
metrics = ["ndcg@20"]
tolerance = 0.02

[settings]
"training.epochs" = 2
"evaluation.protocol" = "paper"

[datasets]
Debian = "debian"
Other = "other.csv"

[backbones.MF]
name = "mf"

[losses.SL]
name = "sl"

[tables.main]
title = "Table 1"
"""
CAUSES = """
[[causes]]
where = { loss = ["BPR", "SL"], noise = 0.5 }
found = "another draw"

[[causes]]
where = { loss = "BPR" }
tried = "two seeds"
"""
HEADER = (
    "table,dataset,backbone,loss,form,setting,noise,mode,protocol,seed,temperature,learning_rate,"
    "weight_decay,dimension,negatives,ours_ndcg20,published_ndcg20,published_in,selected_on_test,"
    "best_epoch,seconds,commit"
)


def row(
    loss: str,
    ours: float,
    *,
    published: object = 0.1,
    seed: int = 1,
    setting: str = "iid",
    noise: str = "0.0",
    protocol: str = "paper",
    negatives: str = "100",
) -> str:
    return (
        f'main,Debian,MF,{loss},,"{setting}",{noise},sampled,{protocol},{seed},,0.1,0,8,'
        f"{negatives},{ours},{published},table,False,1,1,abc"
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    (tmp_path / "paper.toml").write_text(PAPER)
    page = "<!-- results: summary -->\n<!-- end of results -->\n"
    (tmp_path / "README.md").write_text(page)
    return tmp_path


def page_of(folder: Path, *rows: str) -> str:
    (folder / "results" / "main.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    Reproduction(Places(folder, folder / "runs")).write_pages()
    return (folder / "README.md").read_text()


def test_cells_are_counted_and_those_far_off_are_listed_by_cause(folder: Path) -> None:
    (folder / "causes.toml").write_text(CAUSES)
    text = page_of(
        folder,
        row("SL", 0.1),
        row("SL", 0.15, noise="0.50"),
        row("BPR", 0.09),
        row("PSL", 0.097),
        # None of these is an attempt to come close to what was printed.
        row("SL", 0.3, setting="iid, 2 epochs"),
        row("SL", 0.3, protocol="strict"),
        row("SL", 0.3, negatives="100 distinct"),
        row("SL", 0.3, published="", negatives="50"),
    )
    assert "**4 cells** with a published NDCG@20 have been run here, in 4 runs on Debian" in text
    assert "nothing has been run on Other" in text
    assert "**1 of 4** come out within 2 % of it (sampled: 1 of 4)" in text
    assert "the largest +50.0 % (Debian, MF, SL, p 0.50, iid, 100 negatives)" in text
    assert "Of the 3 cells that are further off, the cause of 1 was found" in text
    listed = text[text.index("Cells further") :]
    causes = [line for line in listed.splitlines() if line.startswith("- ")]
    assert causes == ["- another draw.", "- Not found, tried: two seeds.", "- Not looked into."]
    assert "    - Debian, MF, iid, 100 negatives: PSL -3.0 %" in listed


def test_the_noise_of_seeds_is_that_of_all_cells_together(folder: Path) -> None:
    values = {1: 0.101, 2: 0.100, 3: 0.099}
    rows = [row("SL", value, seed=seed) for seed, value in values.items()]
    # Standard deviation 1 %; t of two degrees of freedom, times the root of two.
    assert "lie within 6.1 % of each other" in page_of(folder, *rows)
    assert "seeds alone is not known yet" in page_of(folder, *rows[:1])


def test_the_picture_has_a_mark_for_every_cell_and_the_page_shows_it(folder: Path) -> None:
    rows = [row("SL", 0.1, noise=str(level / 100)) for level in range(40)]
    text = page_of(folder, *rows, row("BPR", 0.3))
    assert "](results/agreement.svg)" in text
    picture = (folder / "results" / "agreement.svg").read_text()
    assert picture.count("<title>Debian, published NDCG@20 0.1") == 40
    # Ten per cent are the edge, where a mark of its own says so.
    assert picture.count("<title>beyond ± 10 %, at the edge, published NDCG@20 0.1: 10") == 1


def test_without_cells_there_is_nothing_to_sum_up(folder: Path) -> None:
    assert "No cell has both a run of ours and a published value yet." in page_of(folder)
    assert not (folder / "results" / "agreement.svg").exists()
    assert agreement_of([], Presentation()).cells == []


def test_a_cause_says_what_was_found_or_what_was_tried(folder: Path) -> None:
    (folder / "causes.toml").write_text('[[causes]]\nwhere = { loss = "SL" }\n')
    with pytest.raises(ConfigError, match="either `found` or `tried`"):
        read_causes(folder)
