"""`pslrec stress`: how losses bear a shift of popularity and false negatives, on any data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from pslrec.cli.train import SetOption, base_configuration, parse_settings

if TYPE_CHECKING:
    import polars as pl

    from pslrec.reproduction.stress import StressProgress

INTERRUPTED = 130
MODES = ("catalog", "sampled")


def stress_command(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A file, directory, zip, or name.")],
    losses: Annotated[str, typer.Option(help="Which to compare; the first is what the others are compared with.")] = (
        "sl,psl-relu"
    ),
    mode: Annotated[
        str, typer.Option(help="catalog (exact) or sampled (the number of negatives is the loss's own).")
    ] = ("catalog"),
    backbone: Annotated[str | None, typer.Option(help="mf, lightgcn, xsimgcl.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="Settings that belong together, such as fast; see `train`.")
    ] = None,
    noise: Annotated[
        str, typer.Option(help="Probabilities of a false negative; empty for none.")
    ] = "0.05,0.1,0.2,0.3,0.5",
    shift: Annotated[str, typer.Option(help="Strengths of the popularity shift; empty for none.")] = "0,0.5,1",
    seeds: Annotated[str, typer.Option(help="Of training, such as 2024,2025,2026.")] = "2024",
    settings: SetOption = None,
    settings_for: Annotated[
        list[str] | None,
        typer.Option("--for", metavar="LOSS:SECTION.KEY=VALUE", help="A setting of one loss; repeatable."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with settings, such as best.toml.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Directory; stress-DATA if not given.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Processor threads to use.")] = None,
) -> None:
    """Draw the curves of losses under a shift of popularity and under false negatives.

    Every point is a run of its own. Repeat the command to go on with one that was stopped.
    """
    import torch

    from pslrec.cli.progress import TrainingProgress
    from pslrec.config import preset_settings
    from pslrec.errors import ConfigError
    from pslrec.losses import LOSSES
    from pslrec.reproduction.stress import StressPlan, stress, summarize
    from pslrec.reproduction.stress_report import write_stress
    from pslrec.training import TrainingInterrupted

    if mode not in MODES:
        raise ConfigError(f"`--mode` must be one of {', '.join(MODES)}, got {mode!r}")
    if threads is not None:
        torch.set_num_threads(threads)
    chosen: dict[str, Any] = {"data.source": data, **({} if backbone is None else {"backbone.name": backbone})}
    if mode == "catalog":
        chosen["sampling.negatives"] = "catalog"
    names = [name.strip() for name in losses.split(",") if name.strip()]
    # Settings of a loss are for those that take them, so the first one's name must not refuse them.
    common = parse_settings(settings or [])
    shared = {name: value for name, value in common.items() if not name.startswith("loss.")}
    options = {loss: _options(loss, common, settings_for or []) for loss in names}
    if mode == "sampled" and "sampling.negatives" not in common:
        options = {loss: {"sampling.negatives": LOSSES[loss].default_negatives, **own} for loss, own in options.items()}
    plan = StressPlan(
        losses=names,
        noise=_numbers(noise, "noise"),
        shift=_numbers(shift, "shift"),
        seeds=[int(seed) for seed in _numbers(seeds, "seeds")],
        options=options,
    )
    _check_for(settings_for or [], names)
    if preset is not None:
        # Its loss is not asked for, and its temperature holds for the losses that have one.
        chosen = preset_settings(preset) | chosen
    configuration = base_configuration(chosen | shared, config)
    directory = out or Path(f"stress-{Path(data).name.partition('.')[0]}")
    console = Console(stderr=True)
    try:
        with TrainingProgress(console if console.is_terminal else Console(quiet=True)) as bar:
            runs = stress(
                configuration, plan, out=directory, watch=lambda done: _show(done, console), listeners=[bar.listen]
            )
    except TrainingInterrupted:
        typer.echo("stopped; all of it is saved, and the same command goes on", err=True)
        raise typer.Exit(INTERRUPTED) from None
    write_stress(runs, directory, base=names[0], name=Path(data).name.partition(".")[0])
    _show_summary(summarize(runs, names[0]), names[0], Console())
    Console().print(f"curves and tables are in {directory}", highlight=False, soft_wrap=True)


def _options(loss: str, common: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    import inspect

    from pslrec.losses import LOSSES

    taken = inspect.signature(LOSSES[loss]).parameters
    found = {
        name: value
        for name, value in common.items()
        if name.startswith("loss.") and name.removeprefix("loss.") in taken
    }
    own = [text.partition(":")[2] for text in texts if text.partition(":")[0].strip() == loss]
    return found | parse_settings(own)


def _check_for(texts: list[str], losses: list[str]) -> None:
    from pslrec.errors import ConfigError

    for text in texts:
        loss, separator, _ = text.partition(":")
        if not separator or loss.strip() not in losses:
            raise ConfigError(
                f"`--for {text}` is not LOSS:SECTION.KEY=VALUE with one of the losses {', '.join(losses)}"
            )


def _numbers(text: str, name: str) -> list[float]:
    from pslrec.errors import ConfigError

    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ConfigError(f"`--{name}` must be numbers such as 0.1,0.5, got {text!r}") from None


def _show(done: "StressProgress", console: Console) -> None:
    from pslrec.cli.progress import clock

    left = f", {clock(done.seconds_left)} left" if done.seconds_left else ""
    console.print(
        f"run {done.n_done}/{done.n_cells}: {done.cell.described()}: NDCG@20 {done.value:.4f}{left}",
        highlight=False,
        soft_wrap=True,
    )


def _show_summary(summary: "pl.DataFrame", base: str, console: Console) -> None:
    from pslrec.reproduction.stress_report import AXES, TITLES, shown_row

    for test in summary["test"].unique(maintain_order=True).to_list():
        table = Table(title=f"\n{TITLES[test]}: test part, gains over {base}", title_justify="left", box=None)
        table.title_style, table.pad_edge = "bold", False
        table.add_column(AXES[test].rpartition(" of ")[0] if test == "shift" else "p", justify="right")
        table.add_column("loss")
        for heading in ("NDCG@20", "Recall@20", "gain in NDCG", "in Recall"):
            table.add_column(heading, justify="right")
        for row in summary.iter_rows(named=True):
            if row["test"] == test:
                table.add_row(*shown_row(row, base))
        console.print(table)
