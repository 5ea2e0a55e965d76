"""What `onthedot doctor` says of intakes: whether the broker, the topic and the one for dead letters are there."""

from __future__ import annotations

import asyncio

import msgspec

from onthedot.brokers.clients import CLIENTS
from onthedot.brokers.link import CONNECT_WITHIN, reason
from onthedot.brokers.reader import TopicMissing
from onthedot.intake.intake import subscription_of
from onthedot.intake.intakes import settings_problem
from onthedot.settings import Settings

__all__ = ["IntakeFinding", "examine_intakes"]


class IntakeFinding(msgspec.Struct, frozen=True):
    found: str
    advice: str | None = None  # None: it works


async def examine_intakes(settings: Settings) -> list[IntakeFinding]:
    return list(await asyncio.gather(*(_examine(settings, name) for name in settings.intake)))


async def _examine(settings: Settings, name: str) -> IntakeFinding:
    if (problem := settings_problem(settings, name)) is not None:
        return IntakeFinding(problem, "correct the settings; the node does not start with them")
    setting = settings.intake[name]
    broker = settings.brokers[setting.broker]
    client = CLIENTS[broker.client]
    place = f"{name}: {setting.topic} on {client.title} at {broker.address(None).shown}"
    try:
        async with asyncio.timeout(2 * CONNECT_WITHIN):
            waiting = await client.examine()(
                broker, broker.login(), subscription_of(name, setting), setting.dead_letter
            )
    except TopicMissing as missing:
        return IntakeFinding(f"{place}: {missing}", "create it at the broker, or correct its name in the settings")
    except TimeoutError:
        why = f"no response within {2 * CONNECT_WITHIN:g} s"
    except Exception as error:
        why = reason(error, broker)
    else:
        lag = "" if waiting is None else f", {waiting} messages waiting"
        return IntakeFinding(f"{place} works{lag}; refused messages go to {setting.dead_letter}")
    return IntakeFinding(f"{place}: {why}", f"check that it is running, and that [brokers.{setting.broker}] is correct")
