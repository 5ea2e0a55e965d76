"""Where the receivers of this node's calls tell later how they ended."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from onthedot.model.callback import callback_token, callback_url
from onthedot.model.run import ClaimedRun

__all__ = ["CallbackUrls"]


class CallbackUrls:
    """`base`: what PUBLIC_URL says, or where this node's own API is reached. A node without either uses the API of
    another one on this machine, if that listens on loopback: who reaches one, reaches both."""

    def __init__(self, base: str | None) -> None:
        self.secret: str | None = None  # the installation's, once it is known
        self._base = base
        self._neighbour: str | None = None

    def heard(self, bindings: Iterable[str]) -> None:
        """Where the API listens on this machine, by the last beat."""
        if self._base is None:
            self._neighbour = next((f"http://{each}" for each in bindings if _is_loopback(each)), None)

    def url_of(self, run: ClaimedRun) -> str | None:
        """The same for every send of a try. None: nobody could call back."""
        base = self._base or self._neighbour
        if base is None or self.secret is None:
            return None
        return callback_url(base, run.id, callback_token(self.secret, run.id, run.tries + 1))


def _is_loopback(binding: str) -> bool:
    host = binding.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
