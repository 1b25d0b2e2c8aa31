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
# The temperature has the best validation NDCG@20 of PSL-relu among 0.025, 0.05, 0.1 and 0.15; SL takes the same.
SETTINGS = {
    "data.source": "debian",
    "backbone.initialization": "spectral",
    "loss.temperature": 0.05,
    "sampling.negatives": "catalog",
    "training.learning_rate": 0.003,
    "training.epochs": 15,
}


def demo_command() -> None:
    """Describe the embedded Debian packages, train SL and PSL on them, compare, and recommend."""
    from pslrec.cli._describing import show
    from pslrec.data import load_interactions

    console = Console()
    show(
        load_interactions("debian"),
        console,
        title="Debian packages, and the packages they depend on or recommend",
    )
    console.print()
    runs = {loss: _train(loss, console) for loss in ("sl", "psl-relu")}
    dataset = runs["psl-relu"].dataset
    results = {name: _judge(name, dataset) for name in ("popularity", "ease")}
    results |= {f"mf, {name}, exact": result.test for name, result in runs.items()}
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
    with TrainingProgress(Console(stderr=True)) as progress:
        return run(
            RunConfig.from_settings({**SETTINGS, "loss.name": loss}), listeners=[progress.listen]
        )


def _judge(name: str, dataset: "Dataset") -> "EvaluationResult":
    from pslrec.baselines import BASELINES
    from pslrec.evaluation import evaluate

    return evaluate(BASELINES[name]().fit(dataset.train), dataset, k=[20], protocol="strict")


def _comparison(results: "dict[str, EvaluationResult]") -> Table:
    table = Table(
        title="\nThe whole catalogue ranked for every package, test part",
        title_justify="left",
        box=None,
    )
    table.title_style, table.pad_edge = "bold", False
    table.add_column("recommender", no_wrap=True)
    for heading in ("Recall@20", "NDCG@20"):
        table.add_column(heading, justify="right")
    for name, result in results.items():
        table.add_row(name, f"{result['recall@20']:.4f}", f"{result['ndcg@20']:.4f}")
    return table


def _recommendations(scorer: "Scorer", dataset: "Dataset") -> Table:
    table = Table(
        title="\nWhat PSL would add to a package's dependencies", title_justify="left", box=None
    )
    table.title_style, table.pad_edge = "bold", False
    table.add_column("package", no_wrap=True)
    table.add_column(
        f"top {N_SHOWN} of those it was not trained on; [bold]bold[/] ones are in the test part"
    )
    users = dataset.user_vocabulary.rows(SHOWN_PACKAGES)
    for package, user, scores in zip(SHOWN_PACKAGES, users, scorer.score(users), strict=True):
        seen = dataset.train.items[dataset.train.users == user]
        wanted = set(dataset.test.items[dataset.test.users == user].tolist())
        scores[seen.tolist()] = -float("inf")
        best = scores.topk(N_SHOWN).indices.tolist()
        names = zip(best, dataset.item_vocabulary.ids(best), strict=True)
        table.add_row(
            package,
            ", ".join(f"[bold]{name}[/]" if item in wanted else name for item, name in names),
        )
    return table
