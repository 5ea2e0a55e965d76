"""Who may do what: every route, every kind of caller."""

from __future__ import annotations

import re

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket

from onthedot.api.app import ROUTES, App
from onthedot.api.auth import COOKIE
from onthedot.api.forwarded import FORWARDED
from onthedot.api.operations import operation
from onthedot.api.routing import ApiRouter, UndeclaredRoute, check_declared
from onthedot.model.duration import Duration
from onthedot.model.key import ApiKeySpec
from onthedot.web import routes as pages
from tests.api.conftest import JOB, client_of, problem, serving

ALL = [endpoint.operation for endpoint in (*ROUTES, *pages)]
SCOPED = [declared for declared in ALL if declared.access != "public"]
PUBLIC = [declared for declared in ALL if declared.access == "public"]
SCOPES = ["read", "write", "admin"]


def named(declared) -> str:
    return f"{declared.method} {declared.path}"


async def call(client: httpx.AsyncClient, declared, **options) -> httpx.Response:
    """A request that gets past the guard or not; what is inside it is nonsense."""
    address = re.sub(r"\{\w+\}", "999999", declared.path)
    content = b"{" if declared.body is not None or declared.method == "POST" else None
    return await client.request(declared.method, address, content=content, **options)


def test_what_is_public_is_a_short_list_that_somebody_thought_about():
    assert {declared.path for declared in PUBLIC} == {
        "/healthz",
        "/readyz",
        "/docs",
        "/docs/style.css",
        "/openapi.json",
        "/login",
        "/logout",
        "/static/{name}",
        "/v1/runs/{run_id}/complete",  # with the token of a callback, and nothing else
        "/v1/runs/{run_id}/progress",
        "/ping/{token}",  # the token is the credential of one job's check-ins
        "/ping/{token}/{signal}",
    }


ADMINS = ("/v1/keys", "/v1/nodes/{node_id}/drain", "/nodes/{node_id}/drain", "/settings/keys")


WHOLE_INSTALLATION = ("/v1/pause", "/v1/resume", "/pause-all", "/resume-all", "/v1/alerts/test", "/alerts/test")


def test_writing_needs_write_and_keys_need_admin():
    for declared in SCOPED:
        if declared.path.startswith(ADMINS) or declared.path in WHOLE_INSTALLATION:
            assert declared.access == "admin"
        elif declared.method == "GET" or declared.path in ("/v1/preview", "/v1/plan"):
            assert declared.access == "read"
        else:
            assert declared.access == "write"


async def test_without_a_key_nothing_but_the_public_routes_answers(keyed):
    for declared in SCOPED:
        answer = await call(keyed["nobody"], declared)
        if declared.page and declared.method == "GET":
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("/login")
        elif declared.page:
            assert answer.status_code == 401
            assert "Your session has ended" in answer.text
        else:
            problem(answer, 401)
            assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_key_opens_what_its_scope_covers_and_nothing_more(keyed, scope):
    for declared in SCOPED:
        if declared.path == "/v1/events":
            continue  # would listen for ever: test_events has it
        answer = await call(keyed[scope], declared)
        if SCOPES.index(scope) < SCOPES.index(declared.access):
            assert answer.status_code == 403, named(declared)
            assert declared.access in (answer.text if declared.page else problem(answer, 403)["detail"])
        else:
            assert answer.status_code not in (401, 403), f"{named(declared)}: {answer.text}"
            assert answer.status_code < 500, f"{named(declared)}: {answer.text}"


async def test_public_routes_answer_anybody(keyed):
    for declared in PUBLIC:
        assert (await call(keyed["nobody"], declared)).status_code in (200, 303, 400, 401, 404), named(declared)


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        "otd_abc",
        "Bearer otd_wrong",
        "Bearer otd_" + "x" * 5000,
        "Bearer \x7f",
        "Bearer otd_a otd_b",
        "",
        "Bearer ééé",
    ],
)
async def test_anything_but_a_key_is_401(app, keyed, header):
    client = keyed["nobody"]
    answer = await client.get("/v1/jobs", headers={"authorization": header.encode("latin-1")})
    problem(answer, 401)


async def test_a_wrong_key_is_401_even_while_the_server_is_open(api):
    problem(await api.get("/v1/jobs", headers={"authorization": "Bearer otd_wrong"}), 401)


async def test_open_until_the_first_key_is_made(api, app):
    assert (await api.get("/v1/jobs")).status_code == 200
    made = await api.post("/v1/keys", json={"name": "first", "scope": "admin"})
    assert made.status_code == 201
    problem(await api.get("/v1/jobs"), 401)
    key = made.json()["key"]
    assert (await api.get("/v1/jobs", headers={"authorization": f"bearer {key}"})).status_code == 200


async def test_a_revoked_key_is_dead_at_once_here_and_nobody_is_let_in_without(api, app):
    made = (await api.post("/v1/keys", json={"name": "first", "scope": "admin"})).json()
    async with client_of(app, made["key"]) as client:
        assert (await client.delete(f"/v1/keys/{made['info']['id']}")).status_code == 204
        problem(await client.get("/v1/jobs"), 401)
    problem(await api.get("/v1/jobs"), 401)


async def test_an_expired_key_is_401(app, keyed, fake_clock):
    short = await app.context.service.create_key(ApiKeySpec(name="short", scope="read", expires=Duration(60_000)))
    async with client_of(app, short.key) as client:
        assert (await client.get("/v1/jobs")).status_code == 200
        await fake_clock.advance(61)
        problem(await client.get("/v1/jobs"), 401)


async def test_asked_for_keys_means_closed_from_the_start(sqlite_url, fake_clock):
    async with serving(sqlite_url, fake_clock, auth=("keys",)) as app, client_of(app) as client:
        problem(await client.get("/v1/jobs"), 401)


async def test_bound_to_more_than_this_machine_means_closed(sqlite_url, fake_clock):
    async with serving(sqlite_url, fake_clock, host="0.0.0.0") as app, client_of(app) as client:
        problem(await client.get("/v1/jobs"), 401)


@pytest.mark.parametrize("host", ["evil.com", "localhost.evil.com:8000", "192.168.0.7:8000"])
async def test_open_does_not_answer_to_a_name_that_was_made_to_point_here(api, host):
    problem(await api.get("/v1/jobs", headers={"host": host}), 403)
    problem(await api.post("/timers", json={"seconds": 1, "url": "http://127.0.0.1:1/"}, headers={"host": host}), 403)


async def test_with_a_key_any_name_will_do(keyed):
    assert (await keyed["read"].get("/v1/jobs", headers={"host": "scheduler.example.com"})).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.com"},
        {"origin": "null"},
        {"origin": "http://localhost:9000"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_another_sites_page_can_not_write_through_a_browser(api, headers):
    problem(await api.post("/v1/jobs", json=JOB, headers=headers), 403)
    assert (await api.get("/v1/jobs")).json()["items"] == []


async def test_our_own_page_can(api):
    own = {"origin": "http://localhost:8000", "sec-fetch-site": "same-origin"}
    assert (await api.post("/v1/jobs", json=JOB, headers=own)).status_code == 201


async def test_no_answer_invites_other_origins(api):
    answer = await api.get("/v1/jobs", headers={"origin": "http://evil.com"})
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    preflight = await api.request("OPTIONS", "/v1/jobs", headers={"origin": "http://evil.com"})
    assert problem(preflight, 405)
    assert preflight.headers["allow"] == "GET, POST"


async def test_the_cookie_is_as_good_as_the_key_but_only_from_our_own_pages(app, keyed):
    key = keyed["write"].headers["authorization"].removeprefix("Bearer ")
    session, _ = await app.context.service.log_in(key)
    cookie = {"cookie": f"{COOKIE}={session.token}"}
    client = keyed["nobody"]
    assert (await client.get("/v1/jobs", headers=cookie)).status_code == 200
    problem(await client.post("/v1/jobs", json=JOB, headers={**cookie, "origin": "http://evil.com"}), 403)
    own = {**cookie, "origin": "http://localhost:8000"}
    assert (await client.post("/v1/jobs", json=JOB, headers=own)).status_code == 201
    problem(await client.get("/v1/keys", headers=cookie), 403)
    problem(await client.get("/v1/jobs", headers={"cookie": f"{COOKIE}=otd_old"}), 401)


async def test_an_old_cookie_is_no_hindrance_while_the_server_is_open(api):
    assert (await api.get("/v1/jobs", headers={"cookie": f"{COOKIE}=otd_old"})).status_code == 200


@pytest.mark.parametrize("header", FORWARDED)
async def test_an_open_server_refuses_what_came_through_a_proxy(api, header):
    """Behind a proxy on this machine everybody comes from loopback."""
    for method, address in (("GET", "/v1/jobs"), ("POST", "/v1/jobs"), ("GET", "/"), ("GET", "/v1/keys")):
        body = {"json": JOB} if method == "POST" else {}
        answer = await api.request(method, address, headers={header: "203.0.113.7"}, **body)
        detail = problem(answer, 403)["detail"] if address != "/" else answer.text
        assert answer.status_code == 403
        assert header in detail
        assert "onthedot keys create --name me --scope admin --url http://127.0.0.1:8000" in detail
    assert (await api.get("/healthz", headers={header: "x"})).status_code == 200
    assert (await api.get("/v1/jobs")).json()["items"] == []


WELL_KNOWN = [
    "Forwarded",
    "Via",
    "X-Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Prefix",
    "X-Forwarded-Ssl",
    "X-Forwarded-Scheme",
    "X-Forwarded-User",
    "X-Real-IP",
    "Client-IP",
    "X-Host",
    "X-ProxyUser-Ip",
    "Proxy-Client-IP",
    "WL-Proxy-Client-IP",
    "X-Original-URL",
    "X-Rewrite-URL",
    "CDN-Loop",
    "CF-Ray",
    "CF-Connecting-IP",
    "Fastly-Client-IP",
    "X-Azure-ClientIP",
    "X-Azure-SocketIP",
    "X-Vercel-Forwarded-For",
]


@pytest.mark.parametrize("header", WELL_KNOWN)
async def test_headers_of_well_known_proxies_are_known(api, header):
    detail = problem(await api.get("/v1/jobs", headers={header: "203.0.113.7"}), 403)["detail"]
    assert f"it has the header {header.lower()})" in detail


@pytest.mark.parametrize("header", ["X-Request-Id", "Traceparent", "X-Team", "X-Forward"])
async def test_other_headers_do_not_tell_of_a_proxy(api, header):
    assert (await api.get("/v1/jobs", headers={header: "203.0.113.7"})).status_code == 200


async def test_with_a_key_a_proxy_may_stand_in_front(keyed):
    answer = await keyed["read"].get("/v1/jobs", headers={"x-forwarded-for": "203.0.113.7", "host": "otd.example"})
    assert answer.status_code == 200


@operation("GET", "/declared", "read", answers={200: "text/plain"})
async def declared_route(request):
    """A route that says who may call it."""
    raise AssertionError


async def secrets(request: Request) -> PlainTextResponse:
    return PlainTextResponse("secrets")


async def socket(websocket: WebSocket) -> None:
    await websocket.accept()


def around(app):
    async def serve(scope, receive, send):
        await app(scope, receive, send)

    return serve


def wrapped(app: App) -> Route:
    """A declared route with something in front of its guard."""
    route = Route("/wrapped", ApiRouter([declared_route]).routes[0].app)  # type: ignore[attr-defined]
    route.app = around(route.app)
    return route


@pytest.mark.parametrize(
    "made",
    [
        lambda app: Route("/forgotten", secrets),
        lambda app: WebSocketRoute("/forgotten", socket),
        lambda app: Mount("/forgotten", app=around(app)),
        wrapped,
    ],
    ids=["a function", "a websocket", "a mount", "a wrapper"],
)
async def test_a_route_that_is_not_declared_is_found_and_denied(app, made):
    route: BaseRoute = made(app)
    app.router.routes.append(route)
    with pytest.raises(UndeclaredRoute, match=route.path):  # type: ignore[attr-defined]
        check_declared(app.router.routes)
    if not isinstance(route, WebSocketRoute):  # of which the middleware lets none in
        async with client_of(app) as client:
            below = "/x" if isinstance(route, Mount) else ""
            problem(await client.get(f"{route.path}{below}"), 403)  # type: ignore[attr-defined]


def test_what_is_declared_is_all_that_is_routed(app):
    routed = [endpoint.operation for route in app.router.routes for endpoint in route.app.endpoints.values()]
    assert sorted(map(named, routed)) == sorted(map(named, ALL)) == sorted(map(named, app.operations))


def test_every_route_of_the_contract_is_there():
    assert isinstance(App, type)
    there = {(declared.method, re.sub(r"\{\w+\}", "{}", declared.path)) for declared in ALL}
    assert there >= {
        ("POST", "/timers"),
        ("GET", "/timers/{}"),
        ("POST", "/v1/jobs"),
        ("GET", "/v1/jobs"),
        ("GET", "/v1/jobs/{}"),
        ("PUT", "/v1/jobs/{}"),
        ("PATCH", "/v1/jobs/{}"),
        ("DELETE", "/v1/jobs/{}"),
        ("PUT", "/v1/jobs/by-key/{}"),
        ("POST", "/v1/jobs/batch"),
        ("POST", "/v1/jobs/{}/run"),
        ("POST", "/v1/jobs/{}/pause"),
        ("POST", "/v1/jobs/{}/resume"),
        ("POST", "/v1/jobs/{}/backfill"),
        ("GET", "/v1/jobs/{}/runs"),
        ("GET", "/v1/jobs/{}/explain"),
        ("GET", "/v1/runs"),
        ("GET", "/v1/runs/{}"),
        ("GET", "/v1/runs/{}/logs"),
        ("POST", "/v1/runs/{}/cancel"),
        ("POST", "/v1/runs/{}/retry"),
        ("GET", "/v1/dead"),
        ("POST", "/v1/dead/redrive"),
        ("POST", "/v1/preview"),
        ("GET", "/v1/nodes"),
        ("GET", "/v1/stats"),
        ("GET", "/v1/events"),
        ("GET", "/v1/keys"),
        ("POST", "/v1/keys"),
        ("DELETE", "/v1/keys/{}"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        ("GET", "/docs"),
        ("GET", "/openapi.json"),
        ("GET", "/"),
    }
