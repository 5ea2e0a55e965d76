"""On the Dot's own side of the bench."""

from __future__ import annotations

import sys
from importlib import import_module

from bench.contest import play

SCENARIOS = {
    "bare_timer": "lateness",
    "bare_webhooks": "drain",
    "bulk_pause": "bulk",
    "bulkhead": "bulkhead",
    "create_bulk": "creating",
    "create_http": "creating",
    "create_http_bare": "creating",
    "create_http_bulk": "creating",
    "create_one": "creating",
    "dashboards": "dashboards",
    "drain": "drain",
    "drain_and_claim": "drain",
    "drain_queue": "queues",
    "drain_runs": "drain",
    "drain_webhooks": "drain",
    "drain_workers": "drain",
    "full_soak": "full_soak",
    "lateness": "lateness",
    "listing": "listing",
    "mix": "mix",
    "next_minute": "next_minute",
    "pages": "pages",
    "scripts": "scripts",
    "seed": "seeding",
    "single_commits": "creating",
    "soak": "soak",
    "tenants": "tenants",
}
"""Each is a function of the module that is named. Only that one is loaded: all of them take two seconds."""

if (name := sys.argv[1]) not in SCENARIOS:
    sys.exit(f"there is no scenario {name!r}; there are {', '.join(SCENARIOS)}")
play({name: getattr(import_module(f"bench.ours.{SCENARIOS[name]}"), name)})
