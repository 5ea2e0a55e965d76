"""On the Dot's own side of the bench."""

from __future__ import annotations

from bench.contest import play
from bench.ours.creating import create_bulk, create_http, create_one, single_commits
from bench.ours.drain import bare_webhooks, drain, drain_runs, drain_webhooks, drain_workers
from bench.ours.lateness import lateness

play(
    {
        "bare_webhooks": bare_webhooks,
        "create_bulk": create_bulk,
        "create_http": create_http,
        "create_one": create_one,
        "drain": drain,
        "drain_runs": drain_runs,
        "drain_webhooks": drain_webhooks,
        "drain_workers": drain_workers,
        "lateness": lateness,
        "single_commits": single_commits,
    }
)
