"""`pslrec train`: any loss on any backbone on any data."""

import json
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from pslrec.config import RunConfig

INTERRUPTED = 130

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "-s", metavar="SECTION.KEY=VALUE", help="Any setting, such as loss.temperature=0.1; repeatable."
    ),
]


def train_command(
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="A file, directory, zip, or name; see `pslrec data describe`.")
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="mf, lightgcn, xsimgcl; see `pslrec backbones`.")] = None,
    loss: Annotated[str | None, typer.Option(help="psl-relu, sl, bpr, ...; see `pslrec losses`.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="Settings that belong together: fast, best; what is given beside it wins.")
    ] = None,
    settings: SetOption = None,
    protocol: Annotated[str | None, typer.Option(help="strict, or paper to compare with published numbers.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything random in training.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with settings, such as RUN/config.toml.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Directory for everything the run leaves behind.")
    ] = None,
    refit: Annotated[
        bool, typer.Option("--refit", help="Train again on training and validation data once the epoch is chosen.")
    ] = False,
    warm_start: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Start from the users and items of a finished run.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    threads: Annotated[int | None, typer.Option(min=1, help="Processor threads to use.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON on standard output.")] = False,
) -> None:
    """Train a model, choose its epoch on validation data, and judge it on the test data."""
    import torch

    from pslrec.cli.progress import TrainingProgress
    from pslrec.cli.results import show_metrics
    from pslrec.config import preset_settings
    from pslrec.errors import ConfigError
    from pslrec.experiment import run
    from pslrec.training import TrainingInterrupted

    if resume and out is None:
        raise ConfigError("--resume needs --out, the directory of the run to go on with")
    if resume and out is not None and data is None and config is None and not (out / "config.toml").exists():
        raise ConfigError(f"there is no run in {out} to go on with; give DATA to begin one")
    if threads is not None:
        torch.set_num_threads(threads)
    given = {
        "data.source": data,
        "backbone.name": backbone,
        "loss.name": loss,
        "evaluation.protocol": protocol,
        "training.seed": seed,
        "training.refit": refit or None,
        "training.warm_start": None if warm_start is None else str(warm_start),
    }
    chosen = {name: value for name, value in given.items() if value is not None} | parse_settings(settings or [])
    if preset is not None:
        chosen = preset_settings(preset, loss=chosen.get("loss.name")) | chosen
    configuration = _configuration(chosen, config, out if resume else None)
    try:
        with TrainingProgress(Console(stderr=True)) as progress:
            result = run(configuration, out=out, resume=resume, listeners=[progress.listen])
    except TrainingInterrupted as stop:
        machine = "" if threads is None else f" --threads {threads}"
        message = f"{stop}; go on with: pslrec train --out {shlex.quote(str(out))} --resume{machine}"
        typer.echo("stopped; without --out nothing was saved" if out is None else message, err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        typer.echo(json.dumps(result.metrics))
        return
    console = Console()
    show_metrics(result.metrics, console)
    if out is not None:
        console.print(f"everything is in {out}", highlight=False, soft_wrap=True)


def _configuration(chosen: dict[str, Any], file: Path | None, resumed: Path | None) -> "RunConfig":
    if file is None and resumed is not None and (resumed / "config.toml").exists():
        file = resumed / "config.toml"
    return base_configuration(chosen, file)


def base_configuration(chosen: dict[str, Any], file: Path | None) -> "RunConfig":
    """The settings of a file, if there is one, with those chosen on the command line over them."""
    from pslrec.config import RunConfig

    base = None if file is None else RunConfig.from_toml(file)
    if base is not None:
        # Another loss or backbone does not take over the options of the one in the file.
        for section in ("loss", "backbone"):
            name = chosen.get(f"{section}.name")
            if name is not None and name != getattr(base, section).name:
                base = RunConfig.checked({**base.model_dump(exclude_none=True), section: {"name": name}})
    return RunConfig.from_settings(chosen, base)


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """Settings as `name=value`; values are TOML where they can be, else text."""
    from pslrec.errors import ConfigError

    parsed = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator or not name.strip():
            raise ConfigError(f"`--set {setting}` is not SECTION.KEY=VALUE")
        try:
            parsed[name.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            parsed[name.strip()] = text
    return parsed
