"""How hard to try, what to do when runs overlap, are late, or are lost."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from onthedot.model.duration import HOUR, Duration
from onthedot.model.struct import Strict

__all__ = ["CatchUp", "CompletedBy", "Delivery", "Overlap", "Policy", "Retry"]

Overlap = Literal["allow", "skip", "queue", "replace"]
CatchUp = Literal["latest", "skip", "all"]
Delivery = Literal["at_least_once", "at_most_once"]
CompletedBy = Literal["answer", "callback"]


class Retry(Strict, frozen=True, kw_only=True):
    """`attempts` counts sends begun, the first one included. Losses (the node died) are counted apart."""

    attempts: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 3
    backoff: Duration = Duration(1000)
    factor: Annotated[float, msgspec.Meta(ge=1, le=100)] = 2.0
    max: Duration = Duration(300_000)
    max_age: Duration | None = None


class Policy(Strict, frozen=True, kw_only=True):
    timeout: Duration | None = None  # None: no limit; the service gives webhooks TIMEOUT_SECONDS
    retry: Retry = Retry()
    overlap: Overlap = "allow"
    catch_up: CatchUp = "latest"
    catch_up_limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 100
    delivery: Delivery = "at_least_once"
    jitter: Duration = Duration(0)
    expires_in: Duration | None = None
    completion: CompletedBy = "answer"  # callback: a 2xx means accepted, and the receiver tells later how it ended
    completion_timeout: Duration = Duration(HOUR)  # how long after that
