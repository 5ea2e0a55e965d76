"""Variables that Kubernetes sets in each pod for each Service of its namespace, unless `enableServiceLinks` is false.

A Service named `onthedot` gives ONTHEDOT_PORT=tcp://10.0.0.7:80 and ONTHEDOT_SERVICE_HOST, one named `postgres` gives
POSTGRES_PORT: names of settings, and names of none, that nobody wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["without_service_links"]

_NAME = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)|_PORT_\d+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?")
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def without_service_links(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The same outside of a pod, where such a name is a mistake."""
    if "KUBERNETES_SERVICE_HOST" not in environ:
        return environ
    return {name: value for name, value in environ.items() if not _is_link(name, value)}


def _is_link(name: str, value: str) -> bool:
    if name.endswith("_PORT") and _ADDRESS.match(value):
        return True
    found = _NAME.search(name)
    return found is not None and found.end() == len(name)
