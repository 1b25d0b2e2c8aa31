"""`pslrec demo`: from a log to recommendations, on the data that comes with the package."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from pslrec.data import Dataset
    from pslrec.evaluation import EvaluationResult, Scorer
    from pslrec.experiment import RunResult

SHOWN_PACKAGES = ("vim", "gimp", "firefox-esr")
N_SHOWN = 5
# The temperature has the best validation NDCG@20 of PSL-relu among 0.025, 0.05, 0.1 and 0.15; SL
# takes the same. The spectral start makes 15 epochs enough, so that the demo ends within a minute.
SETTINGS = {
    "data.source": "debian",
    "backbone.initialization": "spectral",
    "loss.temperature": 0.05,
    "sampling.negatives": "catalog",
    "training.learning_rate": 0.003,
    "training.epochs": 15,
}


def demo_command() -> None:
    """Describe the bundled Debian data, train SL and PSL on it, compare them and recommend."""
    from pslrec.cli._describing import show
    from pslrec.data import load_interactions

    console = Console()
    show(
        load_interactions("debian"),
        console,
        title="Debian packages (users) and the packages they depend on or recommend (items)",
    )
    console.print()
    runs = {}
    # SL first: it is what the paper compares PSL with.
    for loss in ("sl", "psl-relu"):
        runs[loss] = _train(loss, console)
    dataset = runs["psl-relu"].dataset
    results = {}
    for name in ("popularity", "ease"):
        results[name] = _evaluate_baseline(name, dataset)
    for loss, run in runs.items():
        results[f"mf, {loss}, exact"] = run.test
    console.print(_comparison(results))
    console.print(_recommendations(runs["psl-relu"].scorer, dataset))


def _train(loss: str, console: Console) -> "RunResult":
    from pslrec.cli._progress import TrainingProgress
    from pslrec.config import RunConfig
    from pslrec.experiment import run

    console.print(
        f"training matrix factorisation with {loss}, exactly, over the whole catalogue",
        highlight=False,
    )
    configuration = RunConfig.from_settings({**SETTINGS, "loss.name": loss})
    with TrainingProgress(Console(stderr=True)) as progress:
        return run(configuration, listeners=[progress.listen])


def _evaluate_baseline(name: str, dataset: "Dataset") -> "EvaluationResult":
    from pslrec.baselines import BASELINES
    from pslrec.evaluation import evaluate

    # As `run` evaluates by default, so that the rows of the table can be compared.
    return evaluate(BASELINES[name]().fit(dataset.train), dataset, k=[20], protocol="strict")


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
