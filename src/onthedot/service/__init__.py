"""The service layer: everything a user can do, implemented once for the API, the pages and embedding programs."""

from __future__ import annotations

from onthedot.service.cluster import ClusterHealth
from onthedot.service.creates import BATCH_LIMIT
from onthedot.service.keys import DEFAULT_TENANT, Principal, Session
from onthedot.service.previews import preview_schedule
from onthedot.service.repeats import Repeat
from onthedot.service.service import Service
from onthedot.service.trust import Trust

__all__ = [
    "BATCH_LIMIT",
    "DEFAULT_TENANT",
    "ClusterHealth",
    "Principal",
    "Repeat",
    "Service",
    "Session",
    "Trust",
    "preview_schedule",
]
