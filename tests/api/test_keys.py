"""API keys over HTTP: shown once, listed by their first characters, revoked."""

from __future__ import annotations

import pytest

from tests.api.conftest import paths, problem


async def test_a_key_is_shown_once_and_then_only_its_beginning(keyed):
    admin = keyed["admin"]
    made = await admin.post("/v1/keys", json={"name": "ci", "scope": "write", "expires": "90d"})
    assert made.status_code == 201, made.text
    key, info = made.json()["key"], made.json()["info"]
    assert key.startswith("otd_")
    assert len(key) > 40
    assert made.headers["location"] == f"/v1/keys/{info['id']}"
    assert (info["name"], info["scope"], info["tenant"], info["revoked_at"]) == ("ci", "write", "default", None)
    assert info["expires_at"] == "2024-02-12T22:13:20.000Z"
    listed = await admin.get("/v1/keys")
    assert key not in listed.text
    (found,) = [item for item in listed.json()["items"] if item["id"] == info["id"]]
    assert found == info
    assert key.startswith(found["prefix"])


async def test_a_revoked_key_stays_in_the_list_with_its_date(keyed):
    admin = keyed["admin"]
    info = (await admin.post("/v1/keys", json={"name": "ci"})).json()["info"]
    assert (await admin.delete(f"/v1/keys/{info['id']}")).status_code == 204
    (found,) = [item for item in (await admin.get("/v1/keys")).json()["items"] if item["id"] == info["id"]]
    assert found["revoked_at"] == "2023-11-14T22:13:20.000Z"


async def test_keys_of_another_tenant(keyed):
    admin = keyed["admin"]
    made = (await admin.post("/v1/keys", json={"name": "theirs", "tenant": "acme", "scope": "admin"})).json()
    assert made["info"]["id"] not in [item["id"] for item in (await admin.get("/v1/keys")).json()["items"]]
    (listed,) = (await admin.get("/v1/keys?tenant=acme")).json()["items"]
    assert listed == made["info"]
    problem(await admin.get("/v1/keys?tenant=nobody"), 404)
    bearer = {"authorization": f"Bearer {made['key']}"}
    assert (await admin.get("/v1/keys?tenant=acme", headers=bearer)).json()["items"] == [listed]
    problem(await admin.get("/v1/keys?tenant=default", headers=bearer), 403)
    problem(await admin.delete(f"/v1/keys/{listed['id']}"), 404)
    assert (await admin.delete(f"/v1/keys/{listed['id']}?tenant=acme")).status_code == 204


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, ["name"]),
        ({"name": ""}, ["name"]),
        ({"name": "x" * 201}, ["name"]),
        ({"name": "x", "scope": "root"}, ["scope"]),
        ({"name": "x", "expires": "-1d"}, ["expires"]),
        ({"name": "x", "tenant": 7}, ["tenant"]),
        ({"name": "x", "key": "otd_mine"}, ["key"]),
    ],
)
async def test_a_wrong_key_says_what_is_wrong(keyed, body, wrong):
    assert paths(problem(await keyed["admin"].post("/v1/keys", json=body), 422)) == wrong


@pytest.mark.parametrize("key_id", ["0", "x", "999999", "9" * 30])
async def test_revoking_what_is_not_there_is_404(keyed, key_id):
    problem(await keyed["admin"].delete(f"/v1/keys/{key_id}"), 404)


async def test_the_default_tenants_admin_makes_keys_for_others(keyed):
    made = await keyed["admin"].post("/v1/keys", json={"name": "x", "tenant": "third"})
    assert made.json()["info"]["tenant"] == "third"


async def test_another_tenants_admin_makes_keys_for_its_own_only(keyed):
    other = keyed["other"]
    made = await other.post("/v1/keys", json={"name": "x", "scope": "admin"})
    assert (made.status_code, made.json()["info"]["tenant"]) == (201, "other")
    assert (await other.post("/v1/keys", json={"name": "x", "tenant": "other"})).status_code == 201
    problem(await other.post("/v1/keys", json={"name": "x", "tenant": "third"}), 403)
    assert {item["tenant"] for item in (await other.get("/v1/keys")).json()["items"]} == {"other"}


async def test_a_key_that_is_over_before_it_begins_is_refused_or_dead(keyed, app):
    made = await keyed["admin"].post("/v1/keys", json={"name": "x", "expires": "0s"})
    if made.status_code == 201:
        headers = {"authorization": f"Bearer {made.json()['key']}"}
        problem(await keyed["nobody"].get("/v1/jobs", headers=headers), 401)
    else:
        problem(made, 422)
