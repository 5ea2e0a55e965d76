"""One service of AWS, as one node uses it: its client is made with the first call, and made anew when AWS no longer
accepts who we are, because keys are changed where we found them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import Any

from onthedot.errors import NotAvailable
from onthedot.settings import AwsSetting
from onthedot.targets.aws.failure import AwsFailed
from onthedot.targets.contract import TargetDiagnosis
from onthedot.telemetry import emit

__all__ = ["AwsService", "NotAllowedYet"]

INSTALL = "pip install 'onthedot[aws]'"
DIAGNOSE_WITHIN = 5.0


class NotAllowedYet(Exception):
    """While the client was made, the call lost its right to begin."""


def _always() -> bool:
    return True


class AwsService:
    def __init__(self, name: str, title: str, setting: AwsSetting, *, connections: int, read_within: float) -> None:
        """`name`: as its client calls it. `read_within`: seconds in which it answers anything."""
        self.title = title
        self._name, self._setting = name, setting
        self._connections, self._read_within = connections, read_within
        self._client: Any = None
        self._making: asyncio.Lock = asyncio.Lock()
        self._open = AsyncExitStack()
        self._old: list[AsyncExitStack] = []
        self._trouble: str | None = None

    @property
    def region(self) -> str | None:
        return self._setting.found_region

    @property
    def is_usable(self) -> bool:
        return self.region is not None and find_spec("aiobotocore") is not None

    @property
    def address(self) -> str:
        return self._setting.endpoint or f"AWS {self.region}"

    def refuse_if_unusable(self, path: str, given: str) -> None:
        """Raises NotAvailable with what would help."""
        if find_spec("aiobotocore") is None:
            problem = "not available: the client for AWS is not installed"
            raise NotAvailable.one(path, problem, given=given, accepted=INSTALL)
        if self.region is None:
            problem = "not available: no region of AWS is configured on this node"
            accepted = '[aws] region = "eu-central-1" in onthedot.toml, or the variable AWS_REGION'
            raise NotAvailable.one(path, problem, given=given, accepted=accepted)

    async def ask(self, operation: str, *, may_begin: Callable[[], bool] = _always, **arguments: Any) -> dict[str, Any]:
        """Raises AwsFailed."""
        from onthedot.targets.aws.client import ask

        client = self._client
        if client is None:
            client = await self._made()
            if not may_begin():
                raise NotAllowedYet
        try:
            answer = await ask(client, operation, arguments)
        except AwsFailed as failed:
            if failed.is_login or not failed.answered:
                self._tell(str(failed))
            if failed.is_login and client is self._client:
                self._client = None
                self._old.append(self._open.pop_all())
            raise
        self._trouble = None
        return answer

    async def _made(self) -> Any:
        from onthedot.targets.aws.client import make_client

        async with self._making:
            if self._client is None:
                for old in self._old[:-1]:  # nobody uses it any more; of the last one, somebody may wait for an answer
                    await old.aclose()
                del self._old[:-1]
                assert self.region is not None
                self._client = await make_client(
                    self._name,
                    self._setting,
                    self.region,
                    self._open,
                    connections=self._connections,
                    read_within=self._read_within,
                )
            return self._client

    def _tell(self, why: str) -> None:
        if self._trouble is None:  # once until it works again, not with every call
            emit("aws.unavailable", service=self._name, error=why)
        self._trouble = why

    async def warm_up(self) -> None:
        """The client is loaded before the first call is due."""
        if self.is_usable:
            await self._made()

    async def close(self) -> None:
        self._client = None
        for old in (*self._old, self._open):
            await old.aclose()
        self._old.clear()

    async def diagnosis(self, operation: str, **arguments: Any) -> list[TargetDiagnosis]:
        """Of a service that was not used yet: an operation that needs a login and changes nothing. Not being allowed
        to do this one says nothing of others."""
        told = self._setting.region is not None
        if find_spec("aiobotocore") is None:
            return [TargetDiagnosis(self.title, "the client for AWS is not installed", INSTALL)] if told else []
        if self.region is None:
            return []
        try:
            async with asyncio.timeout(DIAGNOSE_WITHIN):
                await self.ask(operation, **arguments)
        except TimeoutError:
            why = f"no response within {DIAGNOSE_WITHIN:g} s"
        except AwsFailed as failed:
            if failed.is_denied:
                return [TargetDiagnosis(self.title, f"{self.address} is reachable, login accepted")]
            why = str(failed)
        else:
            return [TargetDiagnosis(self.title, f"{self.address} is reachable, login accepted")]
        finally:
            await self.close()
        advice = "check region and endpoint of [aws], and the credentials of AWS (environment, profile or role)"
        return [TargetDiagnosis(self.title, f"{self.address}: {why}", advice, is_error=told)]
