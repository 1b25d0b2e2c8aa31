"""`pslrec serve`: a finished run as a web service."""

import logging
import os
import signal
from pathlib import Path
from typing import Annotated

import typer

TOKEN_VARIABLE = "PSLREC_TOKEN"

logger = logging.getLogger(__name__)


def serve_command(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Directory of a finished run, or a link to one.")
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8000,
    host: Annotated[
        str, typer.Option(help="Only this machine can connect unless another is given.")
    ] = "127.0.0.1",
    titles: Annotated[Path | None, typer.Option(help="A table with item ids and titles.")] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"A file with the token to ask for; or set {TOKEN_VARIABLE}."),
    ] = None,
    largest_k: Annotated[
        int, typer.Option(min=1, help="Longest list that can be asked for.")
    ] = 1000,
    largest_body: Annotated[int, typer.Option(min=1, help="Bytes of a request.")] = 2**20,
    concurrent_requests: Annotated[
        int, typer.Option(min=1, help="Requests in work at once.")
    ] = 256,
    client_seconds: Annotated[
        float, typer.Option(min=0.1, help="Time for a request to arrive.")
    ] = 10.0,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Processor threads for scores.")
    ] = None,
) -> None:
    """Answer requests over HTTP, with a page to look at the model, until Ctrl-C; SIGHUP reads RUN again."""
    import torch

    from pslrec.files import local_path
    from pslrec.serving import Service, ServiceOptions, address_of, is_local_socket, listen, serve

    # One core is kept for the conversation with clients.
    torch.set_num_threads(threads or max((os.cpu_count() or 2) - 1, 1))
    token = _token(token_file)
    local_path(run)
    options = ServiceOptions(
        token=token,
        largest_k=largest_k,
        largest_body=largest_body,
        concurrent_requests=concurrent_requests,
        client_seconds=client_seconds,
    )
    with listen(host, port) as listener:
        service = Service(run, titles=titles, options=options)
        if token is None and not is_local_socket(listener):
            logger.warning(
                "everybody who reaches %s may ask; set %s to ask for a token", host, TOKEN_VARIABLE
            )
        facts = service.model.description
        typer.echo(
            f"serving {run} ({facts['users']:,} users, {facts['items']:,} items) at {address_of(listener)}; Ctrl-C stops",
            err=True,
        )
        serve(service, listener)
    # Whoever asks again has what they want already; a signal now could only interrupt the
    # interpreter in its last lines.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    typer.echo("stopped", err=True)


def _token(file: Path | None) -> str | None:
    from pslrec.errors import ConfigError

    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"--token-file {file} can not be read: {getattr(error, 'strerror', None) or 'not text'}"
        ) from error
    if not token:
        raise ConfigError(f"--token-file {file} is empty; put a token into it")
    return token
