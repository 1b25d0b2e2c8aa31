"""How a report shows the results of a paper."""

from pslrec.reporting import Presentation
from pslrec.reproduction import _claims
from pslrec.reproduction._grid import Grid


def presentation_of(grid: Grid) -> Presentation:
    """What reports have to know of a paper.

    Args:
        grid: of the paper.
    """
    paper = grid.paper
    said = _claims.read_claims(grid.folder)
    return Presentation(
        title=paper.title,
        tables={name: table.title for name, table in paper.tables.items()},
        losses=list(paper.losses),
        gain=paper.improvement,
        tolerance=paper.tolerance,
        other_reading=said.other_reading_says if said else "",
        protocol=str(paper.settings.get("evaluation.protocol", "strict")),
    )
