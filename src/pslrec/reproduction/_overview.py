"""The summary of a paper's page: five sentences, a picture, and why cells are far off."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import model_validator

from pslrec.files import write_text
from pslrec.reporting import (
    Agreement,
    Presentation,
    Result,
    agreement_chart,
    agreement_of,
    metric_title,
    position,
    standalone_svg,
)
from pslrec.reproduction._cells import DISTINCT, label_of, loss_label, way_label
from pslrec.reproduction._claims import read_claims
from pslrec.reproduction._grid import Grid
from pslrec.reproduction._layouts import VARIANT_TITLES, percent, variant_of
from pslrec.reproduction._paper import Strict, read_strict
from pslrec.reproduction._published import Row, fits
from pslrec.reproduction._results import Results

NAME = "summary"
PICTURE = Path("results") / "agreement.svg"
SIZE = (600.0, 300.0)
UNKNOWN = "Not looked into"
NOTHING = "No cell has both a run of ours and a published value yet."


class Cause(Strict):
    """Why some cells are far from what was printed; either `found` or `tried` is given.

    Args:
        where: which cells, by columns of the results, each with a value or a list of them.
        found: the cause.
        tried: what was tried to find it, in vain.
    """

    where: dict[str, Any]
    found: str = ""
    tried: str = ""

    @model_validator(mode="after")
    def _is_one(self) -> "Cause":
        if bool(self.found) == bool(self.tried):
            raise ValueError("a cause has either `found` or `tried`")
        return self

    @property
    def text(self) -> str:
        """For the page."""
        return self.found or f"Not found, tried: {self.tried}"


class _CausesFile(Strict):
    causes: tuple[Cause, ...] = ()


def read_causes(folder: Path) -> tuple[Cause, ...]:
    """Read `causes.toml`; nothing where a paper has none.

    Args:
        folder: of the paper.
    """
    path = folder / "causes.toml"
    if not path.exists():
        return ()
    return read_strict(path, _CausesFile, purpose="hold causes").causes


def cause_of(row: Row, causes: tuple[Cause, ...]) -> Cause | None:
    """The first that is about a cell."""
    for cause in causes:
        if fits(row, cause.where):
            return cause
    return None


def presentation_of(grid: Grid) -> Presentation:
    """What reports have to know of a paper.

    Args:
        grid: of the paper.
    """
    paper = grid.paper
    said = read_claims(grid.folder)
    return Presentation(
        title=paper.title,
        tables={name: table.title for name, table in paper.tables.items()},
        losses=list(paper.losses),
        gain=paper.improvement,
        tolerance=paper.tolerance,
        other_reading=said.other_reading_says if said else "",
        protocol=str(paper.settings.get("evaluation.protocol", "strict")),
    )


def write_picture(agreement: Agreement, folder: Path) -> None:
    """Draw every cell of a paper, where there are any."""
    if agreement.cells:
        write_text(folder / PICTURE, standalone_svg(agreement_chart(agreement, SIZE)))


def measured(grid: Grid, results: Results) -> Agreement:
    """The cells of a paper that can be compared, as its own page counts them."""
    rows = []
    for row in results.rows_of_runs():
        # Negatives drawn in another way than the paper's are no attempt to come close.
        if not row["negatives"].endswith(DISTINCT):
            rows.append(row)
    rows.sort(key=lambda row: position(row["dataset"], grid.paper.datasets))
    return agreement_of(rows, presentation_of(grid))


def summary_text(grid: Grid, agreement: Agreement, claims: Sequence[Row]) -> str:
    """The section `summary` of the page.

    Args:
        grid: of the paper.
        agreement: what can be compared.
        claims: rows of `claims.csv`.
    """
    if not agreement.cells:
        return NOTHING
    causes = read_causes(grid.folder)
    explained = [(cell, cause_of(dict(cell.key), causes)) for cell in agreement.far]
    sentences = [
        _extent(grid, agreement),
        _closeness(agreement),
        _noise(agreement),
        _verdicts(claims),
        _search([cause for _, cause in explained]),
    ]
    parts = [
        " ".join(filter(None, sentences)),
        f"![Ours against published, a point per cell]({PICTURE.as_posix()})",
    ]
    if explained:
        parts.append(f"Cells further than {_tolerance(agreement)} from the published value:")
        parts.append("\n".join(_by_cause(agreement, explained)))
    return "\n\n".join(parts)


def _extent(grid: Grid, agreement: Agreement) -> str:
    n_runs = sum(cell.n_runs for cell in agreement.cells)
    run = {cell["dataset"] for cell in agreement.cells}
    unrun = [name for name in grid.paper.datasets if name not in run]
    listed = [name for name in grid.paper.datasets if name in run]
    text = (
        f"**{len(agreement.cells)} cells** with a published {metric_title(agreement.metric)} have "
        f"been run here, in {n_runs} runs on {_joined(listed)}"
    )
    if unrun:
        text += f"; nothing has been run on {_joined(unrun)}"
    return f"{text}."


def _closeness(agreement: Agreement) -> str:
    close = agreement.within(agreement.tolerance)
    every = Counter(_way(cell) for cell in agreement.cells)
    near = Counter(_way(cell) for cell in close)
    by_way = [f"{way}: {near[way]} of {n}" for way, n in every.items()]
    text = (
        f"**{len(close)} of {len(agreement.cells)}** come out within {_tolerance(agreement)} "
        f"of it ({', '.join(by_way)}); the median difference is {percent(agreement.median)}"
    )
    if agreement.far:
        furthest = agreement.far[0]
        difference = percent(agreement.difference(furthest))
        text += f", the largest {difference} ({label_of(furthest.key)})"
    return f"{text}."


def _way(cell: Result) -> str:
    return VARIANT_TITLES[variant_of(cell)[0]]


def _noise(agreement: Agreement) -> str:
    if agreement.noise is None:
        return "How much runs differ by their seeds alone is not known yet: no cell has several."
    inside = agreement.within(agreement.noise)
    return (
        f"Two runs of ours that differ in the seed alone lie within {100 * agreement.noise:.1f} % "
        f"of each other (95 %, from all cells with several seeds): {len(inside)} of "
        f"{len(agreement.cells)} cells are that near to the published value."
    )


def _verdicts(claims: Sequence[Row]) -> str:
    counts = Counter(row["verdict"] for row in claims)
    n_judged = counts["holds"] + counts["fails"] + counts["inside noise"]
    if not n_judged:
        return "No claim of the paper has enough seeds for a verdict."
    return (
        f"Of its claims, {n_judged} have enough seeds for a verdict: {counts['holds']} hold, "
        f"{counts['fails']} fail, {counts['inside noise']} are inside the noise."
    )


def _search(causes: Sequence[Cause | None]) -> str:
    if not causes:
        return ""
    known = [cause for cause in causes if cause is not None]
    n_found = sum(bool(cause.found) for cause in known)
    return (
        f"Of the {len(causes)} cells that are further off, the cause of {n_found} was found, that "
        f"of {len(known) - n_found} was looked for in vain, and that of "
        f"{len(causes) - len(known)} was not looked for."
    )


def _by_cause(agreement: Agreement, explained: Iterable[tuple[Result, Cause | None]]) -> list[str]:
    """A line per cause and below it one per place; what nobody has looked into comes last."""
    groups: dict[str, dict[str, list[str]]] = {}
    unknown: dict[str, list[str]] = {}
    for cell, cause in explained:
        places = unknown
        if cause is not None:
            places = groups.setdefault(cause.text.rstrip("."), {})
        place = f"{cell['dataset']}, {cell['backbone']}, {way_label(cell.key)}"
        difference = percent(agreement.difference(cell))
        places.setdefault(place, []).append(f"{loss_label(cell.key)} {difference}")
    if unknown:
        groups[UNKNOWN] = unknown
    lines = []
    for cause_text, places in groups.items():
        lines.append(f"- {cause_text}.")
        for place, cells in places.items():
            lines.append(f"    - {place}: {'; '.join(cells)}")
    return lines


def _tolerance(agreement: Agreement) -> str:
    return f"{100 * agreement.tolerance:g} %"


def _joined(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
