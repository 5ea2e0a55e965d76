"""On the Dot's own side of the bench."""

from __future__ import annotations

from bench.contest import play
from bench.ours.bulkhead import bulkhead
from bench.ours.creating import (
    create_bulk,
    create_http,
    create_http_bare,
    create_http_bulk,
    create_one,
    single_commits,
)
from bench.ours.drain import bare_webhooks, drain, drain_and_claim, drain_runs, drain_webhooks, drain_workers
from bench.ours.lateness import bare_timer, lateness
from bench.ours.listing import listing
from bench.ours.mix import mix
from bench.ours.pages import pages
from bench.ours.queues import drain_queue
from bench.ours.seeding import seed
from bench.ours.soak import soak

play(
    {
        "bare_timer": bare_timer,
        "bare_webhooks": bare_webhooks,
        "bulkhead": bulkhead,
        "create_bulk": create_bulk,
        "create_http": create_http,
        "create_http_bare": create_http_bare,
        "create_http_bulk": create_http_bulk,
        "create_one": create_one,
        "drain": drain,
        "drain_and_claim": drain_and_claim,
        "drain_queue": drain_queue,
        "drain_runs": drain_runs,
        "drain_webhooks": drain_webhooks,
        "drain_workers": drain_workers,
        "lateness": lateness,
        "listing": listing,
        "mix": mix,
        "pages": pages,
        "seed": seed,
        "single_commits": single_commits,
        "soak": soak,
    }
)
