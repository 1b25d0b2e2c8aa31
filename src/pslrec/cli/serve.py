"""`pslrec serve`: a finished run as a web service."""

import logging
import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from pslrec.cli._rule_options import ItemTableEncoding, ItemTableFile, table_file

TOKEN_VARIABLE = "PSLREC_TOKEN"

logger = logging.getLogger(__name__)


def serve_command(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Directory of a finished run, or a link to one."),
    ],
    port: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=65535, help="Port to listen on; 0 picks a free one."),
    ] = 8000,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen on; by default only this machine can connect.",
        ),
    ] = "127.0.0.1",
    item_table: ItemTableFile = None,
    item_table_encoding: ItemTableEncoding = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"File with the token that clients must send. Or set {TOKEN_VARIABLE}.",
        ),
    ] = None,
    largest_k: Annotated[
        int, typer.Option(metavar="K", min=1, help="Longest list that clients may ask for.")
    ] = 1000,
    largest_body: Annotated[
        int, typer.Option(metavar="BYTES", min=1, help="Largest request body.")
    ] = 2**20,
    concurrent_requests: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of requests handled at once.")
    ] = 256,
    client_seconds: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.1, help="Close connections whose request takes longer to send."
        ),
    ] = 10.0,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Threads that compute scores. Default: all cores but one."
        ),
    ] = None,
) -> None:
    """Serve recommendations over HTTP, with a page to explore the model, until Ctrl-C.

    SIGHUP reads RUN again.
    """
    import torch

    from pslrec.serving import Service, ServiceOptions, address_of, is_local_socket, listen, serve

    if threads is None:
        # One core is kept for the conversation with clients.
        threads = max((os.cpu_count() or 2) - 1, 1)
    torch.set_num_threads(threads)
    token = _token(token_file)
    titles = table_file(item_table, item_table_encoding)
    options = ServiceOptions(
        token=token,
        largest_k=largest_k,
        largest_body=largest_body,
        concurrent_requests=concurrent_requests,
        client_seconds=client_seconds,
    )
    # The port is taken first, so that one that is in use is known before a large model is read.
    with listen(host, port) as listener:
        service = Service(run, item_table=titles, options=options)
        if token is None and not is_local_socket(listener):
            logger.warning(
                "anybody who can reach %s can send requests; set %s to require a token",
                host,
                TOKEN_VARIABLE,
            )
        facts = service.model.description
        typer.echo(
            f"serving {run} ({facts['users']:,} users, {facts['items']:,} items) "
            f"at {address_of(listener)}; Ctrl-C stops",
            err=True,
        )
        serve(service, listener)
    # The service has stopped already; another signal could only interrupt the interpreter in its
    # last lines, with a traceback.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    typer.echo("stopped", err=True)


def _token(file: Path | None) -> str | None:
    from pslrec.errors import ConfigError

    if file is None:
        # An empty variable means none: a token of no characters would let everybody in.
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise ConfigError(f"`--token-file` {file} cannot be read: {reason}") from error
    if not token:
        raise ConfigError(f"`--token-file` {file} is empty; write a token into it")
    return token
