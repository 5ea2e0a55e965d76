"""How long a transaction may wait for its client, and the server for one that is gone.

Not all servers have each of these settings, so that they can't be asked for when a connection is opened.
"""

from __future__ import annotations

from onthedot.store.postgres.address import Address

__all__ = ["limit_transactions", "transaction_timeout"]

LONGEST = 60_000
"""ms that a transaction may take, or six times the deadline of a call. Ours take milliseconds."""

HUNG_UP = 1000
"""ms after which a server that waits for a lock, say, looks whether its client is still there. A node gives up a way
that is silent and asks again over another one: without this, the transaction that it has given up waits on, keeps what
it has locked, and is carried out in full before the server finds nobody to answer to. With eight nodes that did so,
none recorded anything for ten seconds."""


def limit_transactions(address: Address, *, here: bool = False) -> str:
    """`here`: only for the transaction that it is asked in."""
    texts = [transaction_timeout(max(LONGEST, int(6000 * address.timeout)), here=here), _notice_hang_up(here=here)]
    return "; ".join(texts)


def transaction_timeout(ms: int, *, here: bool = False) -> str:
    return _set("transaction_timeout", ms, 170000, here=here)


def _notice_hang_up(*, here: bool) -> str:
    """A server that can't tell refuses to be asked for it: one that does not run on Linux, perhaps."""
    return _set("client_connection_check_interval", HUNG_UP, 140000, here=here) + " AND version() LIKE '%linux%'"


def _set(name: str, ms: int, since: int, *, here: bool) -> str:
    version = f"current_setting('server_version_num')::int >= {since}"
    return f"SELECT set_config('{name}', '{ms}', {str(here).lower()}) WHERE {version}"
