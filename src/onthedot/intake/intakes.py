"""All intakes of a node, from its start to its end."""

from __future__ import annotations

import asyncio
from typing import Self

from onthedot.brokers.clients import CLIENTS
from onthedot.clock import Clock
from onthedot.errors import SettingsError
from onthedot.intake.intake import Intake
from onthedot.service import Service
from onthedot.settings import Settings

__all__ = ["Intakes", "check_intakes", "settings_problem"]


class Intakes:
    def __init__(self, settings: Settings, service: Service, clock: Clock) -> None:
        self._intakes = [
            Intake(name, setting, settings.brokers[setting.broker], service, clock)
            for name, setting in settings.intake.items()
        ]

    def troubles(self) -> dict[str, str]:
        """By name: "ok", or why no messages are carried out at present."""
        return {intake.name: intake.trouble or "ok" for intake in self._intakes}

    async def __aenter__(self) -> Self:
        for intake in self._intakes:
            await asyncio.to_thread(intake.load)
            intake.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.gather(*(intake.stop() for intake in self._intakes))


def check_intakes(settings: Settings) -> None:
    """SettingsError if one of them can't work with these settings, whatever its broker says."""
    problems = [settings_problem(settings, name) for name in settings.intake]
    if found := [problem for problem in problems if problem is not None]:
        raise SettingsError("\n".join(found))


def settings_problem(settings: Settings, name: str) -> str | None:
    setting = settings.intake[name]
    if setting.broker not in settings.brokers:
        known = ", ".join(sorted(settings.brokers)) or "none; add [brokers.NAME] url"
        return f"intake.{name}.broker: {setting.broker[:100]!r} is not configured. Configured: {known}"
    client = CLIENTS[settings.brokers[setting.broker].client]
    if not client.installed:
        return f"intake.{name}: the client for {client.title} is not installed: {client.install}"
    for field, topic in (("topic", setting.topic), ("dead_letter", setting.dead_letter)):
        if not client.takes(topic):
            return f"intake.{name}.{field}: {topic[:200]!r} is not valid. Accepted: {client.accepted}"
    return None
