"""Authentication and authorization. A route is denied unless it is declared public or names the scope it requires."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import HTTPConnection

from onthedot.api.context import address_of, context_of, service_of
from onthedot.api.forwarded import forwarding_header
from onthedot.api.http.client_connection import ask, asked_by
from onthedot.api.http.if_match import refuse_unversioned
from onthedot.api.http.problems import HttpProblem
from onthedot.api.http.query_params import read_query
from onthedot.api.operations import Access, Operation, operation_of
from onthedot.api.origin import from_elsewhere, host_is_loopback
from onthedot.errors import Forbidden, StoreUnavailable, Unauthorized
from onthedot.model.key import SCOPES
from onthedot.service import Principal, Session

__all__ = ["COOKIE", "bearer_of", "guard", "identify", "may", "session_of", "still_may_listen"]

COOKIE = "otd_session"
ASK_SECONDS = 2.0
"""So long the store is waited for where it is not needed."""
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


async def guard(connection: HTTPConnection) -> None:
    """Called before every handler: returns if the request may go on, raises if not."""
    method = connection.scope["method"]
    declared = operation_of(connection)
    if method not in SAFE_METHODS:
        ask(connection)
    if declared.listed and not declared.query:  # what is asked of a route that takes no parameters is not done
        read_query(connection.scope.get("query_string", b""), ())
    if declared.access == "public":
        if method not in SAFE_METHODS:
            refuse_elsewhere(connection)
            _refuse_condition(connection, declared)
        return
    try:
        principal = await _principal(connection, declared)
    except Unauthorized:
        if declared.page and method in SAFE_METHODS:
            raise HttpProblem(303, "login required", {"location": _login_for(connection)}) from None
        raise
    if not may(principal, declared.access):
        raise Forbidden(f"requires the scope {declared.access!r}; this key has the scope {principal.scope!r}")
    connection.scope["principal"] = principal
    asked_by(principal.name, principal.actor(address_of(connection)))
    if method not in SAFE_METHODS:
        _refuse_condition(connection, declared)


def _refuse_condition(connection: HTTPConnection, declared: Operation) -> None:
    if not declared.conditional and "if-match" in connection.headers:
        refuse_unversioned(connection)


async def _principal(connection: HTTPConnection, declared: Operation) -> Principal:
    if not declared.without_store:
        return await identify(connection)
    try:
        async with context_of(connection).clock.timeout(ASK_SECONDS):
            return await identify(connection)
    except (StoreUnavailable, TimeoutError) as away:
        bearer = bearer_of(connection.headers.get("authorization"))
        principal = service_of(connection).remembered_principal(bearer)
        if principal is None:
            if isinstance(away, StoreUnavailable):
                raise
            raise StoreUnavailable("the store does not respond") from None
        if bearer is None:
            _refuse_unless_local(connection)
        return principal


def _login_for(connection: HTTPConnection) -> str:
    """Where to log in, with the way back. A session that ended is told apart from none."""
    asked = connection.scope["path"]
    if query := connection.scope.get("query_string", b""):
        asked += f"?{query.decode('latin-1')}"
    fields = {} if asked == "/" or len(asked) > 1000 else {"next": asked}
    if session_of(connection) is not None:
        fields["ended"] = "true"
    return f"/login?{urlencode(fields)}" if fields else "/login"


async def identify(connection: HTTPConnection, *, used: bool = True) -> Principal:
    """The principal of a request: by its API key, by its login session, or anybody while the server is open.

    A browser attaches cookies, and reaches an open server, for any page it shows: those two are accepted from
    our own pages only. A key in the header is sent only by who has it.
    """
    bearer = bearer_of(connection.headers.get("authorization"))
    if bearer is not None:
        return await service_of(connection).authenticate(bearer)
    if connection.scope["method"] not in SAFE_METHODS:
        refuse_elsewhere(connection)
    session = session_of(connection)
    if session is not None and not await service_of(connection).is_open():
        return await service_of(connection).authenticate(session, used=used)
    principal = await service_of(connection).authenticate(None)
    _refuse_unless_local(connection)
    return principal


def _refuse_unless_local(connection: HTTPConnection) -> None:
    """An open server is for who is on this machine."""
    host = connection.headers.get("host", "localhost")
    if not host_is_loopback(host):  # a name that somebody made point here (DNS rebinding), or a proxy in front
        raise Forbidden(
            f"without API keys the server answers only on this machine, not under the host name {host[:200]!r}; "
            f"create a key: {service_of(connection).settings.key_command}"
        )
    # Behind a proxy on this machine every request comes from loopback, whoever sent it.
    if header := forwarding_header(connection.headers):
        raise Forbidden(
            f"without API keys the server answers only on this machine, and this request came through a proxy (it has "
            f"the header {header}); create a key: {service_of(connection).settings.key_command}"
        )


def session_of(connection: HTTPConnection) -> Session | None:
    token = connection.cookies.get(COOKIE)
    return None if token is None else Session(token[:200])


async def still_may_listen(connection: HTTPConnection, tenant: int) -> bool:
    """Whether the client of a stream is still authorized: its key may have been revoked, its session may have ended, or
    an open server may have got its first key. While the database is away nothing of that can be known."""
    try:
        return (await identify(connection, used=False)).tenant == tenant
    except (Unauthorized, Forbidden):
        return False
    except StoreUnavailable:
        return True


def may(principal: Principal, access: Access) -> bool:
    return access == "public" or SCOPES.index(principal.scope) >= SCOPES.index(access)


def bearer_of(header: str | None) -> str | None:
    if header is None:
        return None
    scheme, _, key = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthorized("invalid Authorization header; expected: Authorization: Bearer otd_…")
    return key.strip()


def refuse_elsewhere(connection: HTTPConnection) -> None:
    headers = connection.headers
    if from_elsewhere(headers.get("origin"), headers.get("host"), headers.get("sec-fetch-site")):
        raise Forbidden("cross-site request refused")
