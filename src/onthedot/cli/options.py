"""Options that many commands share, and the client that they configure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from onthedot.client import Client
    from onthedot.model.job import JobView

__all__ = [
    "ApiKey",
    "AsJson",
    "Job",
    "OnFailure",
    "OnFinish",
    "OnSuccess",
    "OnlyKey",
    "OnlyServer",
    "Server",
    "Settings",
    "StoreUrl",
    "authority",
    "connected",
    "find_job",
    "server_url",
    "set_authority",
]

_given_authority: str | None = None
_SERVER_HELP = "Server URL [env: ONTHEDOT_URL; default: http://127.0.0.1:8000]"
_KEY_HELP = "API key [env: ONTHEDOT_KEY]"

Server = Annotated[str | None, typer.Option("--url", "--server", metavar="URL", help=_SERVER_HELP)]
ApiKey = Annotated[str | None, typer.Option("--key", "--api-key", metavar="KEY", help=_KEY_HELP)]
# where --url and --key are fields of a job
OnlyServer = Annotated[str | None, typer.Option("--server", metavar="URL", help=_SERVER_HELP)]
OnlyKey = Annotated[str | None, typer.Option("--api-key", metavar="KEY", help=_KEY_HELP)]
Job = Annotated[str, typer.Argument(metavar="JOB", help="ID or key of the job")]
OnSuccess = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY", help="Run the job with this key after each run that is done; repeatable"),
]
OnFailure = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY", help="Run the job with this key after each run whose last attempt failed; repeatable"),
]
OnFinish = Annotated[
    list[str] | None, typer.Option(metavar="KEY", help="Run the job with this key after both; repeatable")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table")]
StoreUrl = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="Store URL: sqlite:///PATH or postgresql://… [env: ONTHEDOT_STORE]"),
]
Settings = Annotated[
    str | None, typer.Option("--settings", metavar="FILE", help="Settings file [default: onthedot.toml, if it exists]")
]


def server_url(server: str | None, port: int = 8000) -> str:
    url = server or os.environ.get("ONTHEDOT_URL") or f"http://127.0.0.1:{port}"
    return url if "://" in url else f"http://{url}"


@contextmanager
def connected(server: str | None, key: str | None) -> Iterator[Client]:
    from onthedot.client import Client

    with Client(server_url(server), key or os.environ.get("ONTHEDOT_KEY") or None, tries=2, ca=authority()) as client:
        yield client


def authority() -> str | None:
    """The file that `onthedot --ca FILE …` named, or ONTHEDOT_CA."""
    return _given_authority or os.environ.get("ONTHEDOT_CA") or None


def set_authority(file: str | None) -> None:
    """An option of the program and not of each command: called before the command, with None if it was not given."""
    global _given_authority
    _given_authority = file


def find_job(client: Client, name: str) -> JobView:
    """Look a job up by ID or by key; a key may look like a number."""
    from onthedot.errors import NotFound

    if name.isascii() and name.isdecimal() and len(name) < 19:
        try:
            return client.get_job(int(name))
        except NotFound:
            pass
    try:
        return client.get_job_by_key(name)
    except NotFound:
        raise NotFound(f"job {name!r} not found; run `onthedot jobs list` to see all jobs") from None
