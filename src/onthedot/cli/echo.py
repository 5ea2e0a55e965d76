"""`onthedot echo`: a webhook receiver that logs each request."""

from __future__ import annotations

import errno
import os
from typing import Annotated

import typer

from onthedot.cli.values import header_value

__all__ = ["echo"]


def echo(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on")] = 5003,
    host: Annotated[str, typer.Option(help="Address to listen on")] = "127.0.0.1",
    delay: Annotated[str, typer.Option(help="Delay before each response, such as 200ms or 3s")] = "0s",
    fail: Annotated[float, typer.Option(min=0, max=1, help="Fraction of requests to fail, 0 to 1")] = 0.0,
    status: Annotated[int, typer.Option(min=100, max=599, help="HTTP status of failed requests")] = 500,
    drop: Annotated[
        float, typer.Option(min=0, max=1, help="Fraction of requests to drop without a response, 0 to 1")
    ] = 0.0,
    header: Annotated[
        list[str] | None, typer.Option("-H", "--header", help="Header of each response, 'Name: value'; repeatable")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not log requests")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per request")] = False,
) -> None:
    """Receive webhooks and log them. Can delay responses, fail or drop requests, for demos and tests."""
    from onthedot.echo import run_echo
    from onthedot.errors import OnTheDotError
    from onthedot.model.duration import Duration

    try:
        seconds = Duration.parse(delay).seconds
    except ValueError as error:
        raise typer.BadParameter(f"--delay {delay!r}: {error}") from None
    try:
        headers = dict(header_value(item) for item in header or [])
        run_echo(port, host, seconds, fail, drop, as_json, status, quiet, headers)
    except OSError as error:
        # asyncio wraps the system's words in its own
        number = error.errno or 0
        why = os.strerror(number).lower() if number in errno.errorcode else error.strerror
        raise OnTheDotError(f"can't listen on {host}:{port}: {why}; try another --port") from None
