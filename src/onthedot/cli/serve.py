"""`onthedot serve`: start a node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onthedot.cli.options import Settings, StoreUrl

__all__ = ["serve"]


def serve(
    store: StoreUrl = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on [default: 8000]")] = None,
    roles: Annotated[str | None, typer.Option(help="api, executor [default: api,executor]")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Node processes; PostgreSQL only [default: 1]")] = None,
    jobs: Annotated[Path | None, typer.Option(metavar="FILE", help="Jobs file to load and follow")] = None,
    source: Annotated[
        str | None, typer.Option(help="Name to keep the file's jobs under [default: its `source`, else its name]")
    ] = None,
    settings: Settings = None,
) -> None:
    """Start a node. API, page and engine run in one process, on SQLite unless told otherwise."""
    from onthedot.launcher import launch_scheduler

    launch_scheduler(
        settings,
        store=store,
        host=host,
        port=port,
        roles=roles,
        workers=workers,
        jobs_file_path=jobs,
        jobs_source=source,
    )
