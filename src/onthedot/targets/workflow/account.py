"""Whose account of AWS the credentials of this node belong to. To be asked needs no permission."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from onthedot.settings import AwsSetting

__all__ = ["found_account"]

WITHIN = 5.0


async def found_account(setting: AwsSetting) -> str | None:
    """Its number; None: AWS does not tell now, or the endpoint of the settings is not that of STS."""
    from onthedot.targets.aws.client import ask, make_client  # takes half a second

    assert setting.found_region is not None
    try:
        async with asyncio.timeout(WITHIN), AsyncExitStack() as opening:
            client = await make_client("sts", setting, setting.found_region, opening, connections=1, read_within=WITHIN)
            account = str((await ask(client, "get_caller_identity", {})).get("Account"))
    except Exception:  # whoever answers in its place may answer anything; without it, the region has to do
        return None
    return account if len(account) == 12 and account.isascii() and account.isdigit() else None
