"""`pslrec demo`: from a log to recommendations, on the data that comes with the package."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from pslrec.cli._telling import notes_console

if TYPE_CHECKING:
    from pslrec.data import Dataset
    from pslrec.evaluation import EvaluationResult, Scorer
    from pslrec.experiment import RunResult

DOMAIN = (
    "Every Debian package names others that it needs: packages are the users here, what they need "
    "are the items, and a fifth of these needs is hidden and has to be guessed."
)
SHOWN_PACKAGES = ("vim", "gimp", "firefox-esr")
N_SHOWN = 5
# What a package depends on follows rules that hold for few packages each, which takes more dimensions
# than the default. Predicting the hidden part alone is better here, by validation.
SETTINGS = {
    "data.source": "debian",
    "backbone.dimension": 256,
    "backbone.predicts": "hidden",
}
# Options of the others, by validation as well.
BASELINES_SHOWN: dict[str, dict[str, float]] = {
    "popularity": {},
    "item-knn": {},
    "ease": {"regularization": 50.0},
}


Serve = Annotated[
    bool, typer.Option("--serve", help="Then serve the model, with a page to explore it.")
]
Port = Annotated[
    int,
    typer.Option(metavar="N", min=0, max=65535, help="Port of --serve; 0 picks a free one."),
]


def demo_command(serve: Serve = False, port: Port = 8000) -> None:
    """Describe the bundled Debian data, train on it, compare with baselines and recommend."""
    from pslrec.cli._describing import show
    from pslrec.data import load_interactions

    if serve:
        # Now rather than after the training: the extra may be missing.
        import pslrec.serving  # noqa: F401

    console = Console()
    console.print(DOMAIN, highlight=False, soft_wrap=True)
    show(
        load_interactions("debian"),
        console,
        title="Debian packages (users) and the packages they depend on or recommend (items)",
    )
    console.print()
    run = _train(console)
    results = {}
    for name, options in BASELINES_SHOWN.items():
        results[name] = _evaluate_baseline(name, options, run.dataset)
    results["pslrec"] = run.test
    console.print(_comparison(results))
    console.print(_meaning(results), highlight=False, soft_wrap=True)
    console.print(_recommendations(run.scorer, run.dataset))
    if serve:
        _serve(run, port)
    else:
        console.print("\nexplore it on a page: pslrec demo --serve", highlight=False)


def _train(console: Console) -> "RunResult":
    from pslrec.cli._progress import TrainingProgress
    from pslrec.config import RunConfig, preset_settings
    from pslrec.experiment import run

    console.print(
        "training PSL-relu exactly, over the whole catalogue; temperature and learning rate are "
        "found by a short race on validation data",
        highlight=False,
    )
    configuration = RunConfig.from_settings({**preset_settings("auto"), **SETTINGS})
    with TrainingProgress(notes_console()) as progress:
        return run(configuration, listeners=[progress.listen])


def _serve(run: "RunResult", port: int) -> None:
    import tempfile

    from pslrec.cli.serve import serve_command
    from pslrec.experiment import save_run

    # The service reads a run from its directory, and nobody needs this one afterwards.
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "demo"
        save_run(run, path)
        serve_command(path, port=port)


def _evaluate_baseline(
    name: str, options: Mapping[str, float], dataset: "Dataset"
) -> "EvaluationResult":
    from pslrec.baselines import BASELINES
    from pslrec.evaluation import evaluate

    fitted = BASELINES[name](**options).fit(dataset.train)
    # As `run` evaluates by default, so that the rows of the table can be compared.
    return evaluate(fitted, dataset, k=[20], protocol="strict")


def _meaning(results: "dict[str, EvaluationResult]") -> str:
    """What the table says, in two sentences."""
    found = 100 * results["pslrec"]["recall@20"]
    return (
        f"For the average package, pslrec has {found:.0f} % of the hidden needs among its first 20 "
        f"guesses. {_lead(results)}"
    )


def _lead(results: "dict[str, EvaluationResult]") -> str:
    ours = results["pslrec"]["ndcg@20"]
    name = "popularity"
    for other, result in results.items():
        if other != "pslrec" and result["ndcg@20"] > results[name]["ndcg@20"]:
            name = other
    theirs = results[name]["ndcg@20"]
    share = 100 * (ours / theirs - 1)
    if share >= 0:
        return f"pslrec leads the best of the others, {name}, by {share:.1f} % of its NDCG@20."
    return f"{name} leads pslrec by {-share:.1f} % of its NDCG@20."


def _comparison(results: "dict[str, EvaluationResult]") -> Table:
    table = _titled_table("Results on the test part, ranking the whole catalogue")
    table.add_column("recommender", no_wrap=True)
    table.add_column("Recall@20", justify="right")
    table.add_column("NDCG@20", justify="right")
    for name, result in results.items():
        table.add_row(name, f"{result['recall@20']:.4f}", f"{result['ndcg@20']:.4f}")
    return table


def _recommendations(scorer: "Scorer", dataset: "Dataset") -> Table:
    table = _titled_table("What PSL would add to a package's dependencies")
    table.add_column("package", no_wrap=True)
    table.add_column(f"top {N_SHOWN} without training items; [bold]bold[/]: in the test part")
    users = dataset.user_vocabulary.rows(SHOWN_PACKAGES)
    for package, user, scores in zip(SHOWN_PACKAGES, users, scorer.score(users), strict=True):
        seen = dataset.train.items[dataset.train.users == user]
        in_test = set(dataset.test.items[dataset.test.users == user].tolist())
        # A package's known dependencies would fill the list.
        scores[seen.tolist()] = -float("inf")
        best = scores.topk(N_SHOWN).indices.tolist()
        names = []
        for item, name in zip(best, dataset.item_vocabulary.ids(best), strict=True):
            names.append(f"[bold]{name}[/]" if item in in_test else str(name))
        table.add_row(package, ", ".join(names))
    return table


def _titled_table(title: str) -> Table:
    table = Table(
        title=f"\n{title}",
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
    )
    # rich wraps a title at the width of its table, however wide the terminal is.
    table.min_width = len(title)
    return table
