"""The settings page: values with their sources and without secrets; keys are made, shown once, and revoked."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest

from onthedot.api.app import App
from onthedot.clock import FakeClock
from onthedot.model.duration import DAY, Duration
from onthedot.model.key import ApiKeySpec
from onthedot.service.settings_in_force import setting_text
from onthedot.settings import BrokerSetting, load_settings
from tests.api.conftest import client_of, serving

OURS = {"origin": "http://localhost:8000"}


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(sqlite_url, fake_clock) as app:
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


def words_of(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def test_where_each_value_comes_from(tmp_path: Path):
    file = tmp_path / "onthedot.toml"
    file.write_text('lease = "9s"\nport = 1\n')
    found = load_settings({"host": "::1"}, {"ONTHEDOT_PORT": "7", "LOG_LEVEL": "DEBUG"}, file)
    assert found.origins == {"lease": str(file), "host": "flag", "port": "$ONTHEDOT_PORT", "log_level": "$LOG_LEVEL"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("postgresql://me:pa:s/s@w@db/x?sslpassword=abc&a=b", "postgresql://me:••••••@db/x?sslpassword=••••••&a=b"),
        ({"b": BrokerSetting(url="nats://u:secret@h"), "a": 1}, "a, b"),
        (("api", "executor"), "api, executor"),
        (None, "none"),
        (True, "yes"),
        (3.0, "3"),
        (Duration(30 * DAY), "30d"),
        (1 << 30, "1,024 MiB"),
    ],
)
def test_a_value_as_text_has_no_secret(value, text):
    assert setting_text(value) == text


async def test_values_are_shown_and_the_store_to_admins_alone(site, app):
    service = app.context.service
    service.settings = msgspec.structs.replace(
        service.settings,
        store="postgresql://u:swordfish@db/x",
        given=frozenset({"store"}),
        origins={"store": "$ONTHEDOT_STORE"},
    )
    said = words_of((await site.get("/settings")).text.replace("<wbr>", ""))
    assert "STORE postgresql://u:••••••@db/x $ONTHEDOT_STORE" in said
    assert "LEASE 5s default" in said
    reader = (await service.create_key(ApiKeySpec(name="r", scope="read"))).key
    as_reader = {"authorization": f"Bearer {reader}"}
    page = (await site.get("/settings", headers=as_reader)).text
    assert "STORE shown to admins" in words_of(page)
    assert "Only an admin key" in page
    items = (await site.get("/v1/settings", headers=as_reader)).json()["items"]
    assert next(each for each in items if each["name"] == "STORE")["value"] is None
    guest = (await service.create_key(ApiKeySpec(name="g", scope="admin", tenant="guests"))).key
    as_guest = {"authorization": f"Bearer {guest}"}
    assert (await site.get("/v1/settings", headers=as_guest)).status_code == 403
    theirs = (await site.get("/settings", headers=as_guest)).text
    assert "swordfish" not in theirs + page
    assert "LEASE" not in theirs


async def test_a_key_is_made_shown_once_and_revoked(site, app):
    wrong = await site.post("/settings/keys", data={"name": "ci", "expires": "soon"}, headers=OURS)
    assert wrong.status_code == 422
    assert 'value="soon"' in wrong.text
    made = await site.post("/settings/keys", data={"name": "<b>ci", "scope": "admin"}, headers=OURS)
    assert made.status_code == 200
    (key,) = set(re.findall(r"otd_[\w-]{43}", made.text))
    assert "<b>ci" not in made.text.replace("<b>The key", "")
    assert "This is the first key" in made.text
    as_admin = {"authorization": f"Bearer {key}", **OURS}
    again = (await site.get("/settings", headers=as_admin)).text
    assert key not in again
    assert key[:12] in again
    other = await app.context.service.create_key(ApiKeySpec(name="old"))
    path = f"/settings/keys/{other.info.id}/revoke"
    assert path in (await site.get("/settings", headers=as_admin)).text
    assert "be undone" in (await site.get(path, headers=as_admin)).text
    assert (await site.post(path, headers=as_admin)).status_code == 303
    assert "revoked" in words_of((await site.get("/settings", headers=as_admin)).text)
    assert (await site.get("/v1/jobs", headers={"authorization": f"Bearer {other.key}"})).status_code == 401
    reader = (await app.context.service.create_key(ApiKeySpec(name="r", scope="write"))).key
    refused = await site.post(
        "/settings/keys", data={"name": "x"}, headers={"authorization": f"Bearer {reader}", **OURS}
    )
    assert refused.status_code == 403
