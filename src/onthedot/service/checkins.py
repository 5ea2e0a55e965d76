"""Check-ins: jobs that run elsewhere report here. The token of the ping URL is the only credential."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.errors import NotFound
from onthedot.model.job import JobView
from onthedot.model.ping import Ping, job_of_token, ping_path, ping_token
from onthedot.model.secret_text import MASK
from onthedot.service.base import ServiceBase
from onthedot.service.callbacks import tell_end
from onthedot.store import CheckIn
from onthedot.telemetry import emit

__all__ = ["CheckinVerbs"]


class CheckinVerbs(ServiceBase):
    async def pinged_job(self, token: str) -> int:
        """The id in the token. NotFound: it is not one of ours."""
        job_id = job_of_token(await self.installation_secret(), token)
        if job_id is None:
            raise _unknown()
        return job_id

    async def check_in(self, job_id: int, told: CheckIn) -> Ping:
        """A job reports. NotFound: it was deleted, or has another target now."""
        done = await self.store.check_in(job_id, told)
        if done is None:
            raise _unknown()
        names = {"tenant": done.tenant, "job_id": done.job_id, "key": done.key}
        emit("ping.received", **names, signal=told.signal, run_id=done.ping.run_id, late_for=done.ping.late_for)
        for item in done.ended:
            tell_end(item, done.key)
        if done.ended and done.laned:
            await self.hint_now()
        return done.ping

    async def with_ping(self, jobs: Sequence[JobView], base: str, *, reveal: bool) -> list[JobView]:
        """Jobs with the URLs at which they report, and what they last did; those that run here as they are. `base`:
        where the API is reached; `reveal`: who asks may change jobs, and so may know where to report for them."""
        reporting = [job.id for job in jobs if job.target.report_within is not None]
        if not reporting:
            return list(jobs)
        secret = await self.installation_secret()
        last = await self.store.last_pings(reporting)
        base = self.settings.public_url or base
        shown = []
        for job in jobs:
            if job.target.report_within is not None:
                token = ping_token(secret, job.id) if reveal else MASK
                job = msgspec.structs.replace(
                    job, ping_url=base + ping_path(token), ping_token=token, last_ping=last.get(job.id)
                )
            shown.append(job)
        return shown

    async def recent_pings(self, job_id: int) -> list[Ping]:
        return await self.store.recent_pings(job_id)


def _unknown() -> NotFound:
    return NotFound("no job reports at this URL")
