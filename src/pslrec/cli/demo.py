"""`pslrec demo`: the main job on the data that comes with the package."""

from rich.console import Console
from rich.table import Table


def demo_command() -> None:
    """Describe the embedded Debian packages, split them, and evaluate what everybody gets recommended."""
    from pslrec.baselines import BASELINES
    from pslrec.cli.describing import show
    from pslrec.data import load_interactions
    from pslrec.data.splits import split_by_name
    from pslrec.evaluation import evaluate

    console = Console()
    packages = load_interactions("debian")
    show(packages, console, title="Debian packages, and the packages they depend on or recommend")
    dataset = split_by_name(packages, "iid", validation="fraction")
    table = Table(
        title="\nFull ranking of the catalogue, test part", title_justify="left", title_style="bold", box=None
    )
    table.add_column("recommender", no_wrap=True)
    for heading in ("Recall@20", "NDCG@20"):
        table.add_column(heading, justify="right")
    scorer = BASELINES["popularity"]().fit(dataset.train)
    result = evaluate(scorer, dataset, k=[20], protocol="strict")
    table.add_row("popularity", f"{result['recall@20']:.4f}", f"{result['ndcg@20']:.4f}")
    console.print(table)
