"""`onthedot echo`: a receiver that logs what arrives."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["echo"]


def echo(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on")] = 5003,
    host: Annotated[str, typer.Option(help="Address to listen on")] = "127.0.0.1",
    delay: Annotated[str, typer.Option(help="Answer this late: 200ms, 3s")] = "0s",
    fail: Annotated[float, typer.Option(min=0, max=1, help="Share of requests that fail, 0 to 1")] = 0.0,
    status: Annotated[int, typer.Option(min=100, max=599, help="Status of those that fail")] = 500,
    drop: Annotated[float, typer.Option(min=0, max=1, help="Share of requests hung up on, 0 to 1")] = 0.0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Don't log what arrives")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line")] = False,
) -> None:
    """Receive webhooks and log them. Can be slow, fail, or hang up: for demos and tests."""
    from onthedot.echo import run_echo
    from onthedot.errors import OnTheDotError
    from onthedot.model.duration import Duration

    try:
        seconds = Duration.parse(delay).seconds
    except ValueError as error:
        raise typer.BadParameter(f"--delay {delay!r}: {error}") from None
    try:
        run_echo(port, host, seconds, fail, drop, as_json, status, quiet)
    except OSError as error:
        raise OnTheDotError(f"can't listen on {host}:{port}: {error.strerror}. Another --port may be free") from None
