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
    roles: Annotated[
        str | None, typer.Option(help="Roles of this node: api, executor or both [default: api,executor]")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of node processes; PostgreSQL only [default: 1]")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(metavar="LABEL,…", help="Labels of this node, such as gpu,eu, that jobs can require")
    ] = None,
    root_path: Annotated[
        str | None,
        typer.Option(metavar="/PREFIX", help="Path under which a reverse proxy serves the API and the dashboard"),
    ] = None,
    jobs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Jobs file to load, and to reload when it changes")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Source name for the file's jobs [default: the file's `source`, else its name]")
    ] = None,
    settings: Settings = None,
) -> None:
    """Start a node. The API, the dashboard and the engine run in one process, on SQLite by default."""
    from onthedot.launcher import launch_scheduler

    launch_scheduler(
        settings,
        store=store,
        host=host,
        port=port,
        roles=roles,
        workers=workers,
        labels=labels,
        root_path=root_path,
        jobs_file_path=jobs,
        jobs_source=source,
    )
