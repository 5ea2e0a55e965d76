"""How far this installation is trusted, told to what a node may call: at the start, with each beat, with the first key.

While it is open (no key was ever made, and no API is reached from other machines) one person uses it on one machine,
and webhooks may go to private addresses. The store knows it, and each beat's answer says so, to nodes of every role.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from onthedot.settings import Settings
from onthedot.store import Beat, Store
from onthedot.targets import OwnPort, Targets, ports_of_store, read_own_ports

__all__ = ["Trust"]


class Trust:
    def __init__(self, settings: Settings, targets: Targets, closed: Callable[[], None] = lambda: None) -> None:
        """`closed` is called when it is learnt that the installation is no longer open."""
        self._settings = settings
        self._targets = targets
        self._told_closed = closed
        self._database: frozenset[OwnPort] = frozenset()
        self._is_open = False
        self._key_made = False
        self._bindings: tuple[str, ...] = () if settings.binding is None else (settings.binding,)

    async def begin(self, store: Store) -> None:
        """Before the first beat: the jobs of a file are checked by then. Who holds the SQLite file is alone, whatever
        rows a killed node left behind."""
        self._database = await asyncio.to_thread(ports_of_store, self._settings.store)
        is_open = not await store.any_key() if self._settings.is_sqlite else await store.is_open()
        self._tell(is_open and not self._settings.exposed, self._bindings)

    def heard(self, answer: Beat) -> None:
        self._tell(answer.open, answer.bindings)

    def key_made(self) -> None:
        """Here and now: nobody need wait for the next beat, and an answer that is on its way opens nothing again."""
        self._key_made = True
        self._tell(False, self._bindings)

    def _tell(self, is_open: bool, bindings: Iterable[str]) -> None:
        was, self._is_open = self._is_open, is_open and not self._key_made
        self._bindings = tuple(bindings)
        own = (
            self._bindings
            if self._settings.metrics_binding is None
            else (*self._bindings, self._settings.metrics_binding)
        )
        self._targets.trust(is_open=self._is_open, own_ports=self._database | read_own_ports(own))
        if was and not self._is_open:
            self._told_closed()
