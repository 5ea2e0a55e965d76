"""Uploaded scripts over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from onthedot.errors import ObjectStoreUnavailable
from onthedot.model.script import object_name, script_id
from tests.api.conftest import JOB, problem

CODE = "print('hello')\n"
ID = script_id(CODE.encode())
UPLOAD = {"code": CODE, "name": "hello.py"}


def using(script: str) -> dict[str, Any]:
    return {**JOB, "target": {"type": "script", "script": script}}


async def test_upload_read_list_delete(api):
    made = await api.post("/v1/scripts", json=UPLOAD)
    assert made.status_code == 201
    assert made.headers["location"] == f"/v1/scripts/{ID}"
    view = made.json()
    assert (view["id"], view["name"], view["size"]) == (ID, "hello.py", len(CODE))
    assert (await api.get(f"/v1/scripts/{ID}")).json() == {**view, "jobs": [], "code": CODE}
    assert (await api.get("/v1/scripts")).json() == {"items": [view], "next": None}
    assert (await api.delete(f"/v1/scripts/{ID}")).status_code == 204
    problem(await api.get(f"/v1/scripts/{ID}"), 404)
    problem(await api.delete(f"/v1/scripts/{ID}"), 404)
    assert (await api.get("/v1/scripts")).json()["items"] == []


async def test_the_same_code_again_changes_nothing(api):
    first = await api.post("/v1/scripts", json=UPLOAD)
    again = await api.post("/v1/scripts", json={**UPLOAD, "name": "other.py"})
    assert (again.status_code, again.json()) == (200, first.json())


async def test_the_id_is_the_hash_of_the_utf8(api):
    code = "print('§ é 🎈')\r\n"
    made = (await api.post("/v1/scripts", json={"code": code})).json()
    assert (made["id"], made["name"]) == (script_id(code.encode()), None)
    assert (await api.get(f"/v1/scripts/{made['id']}")).json()["code"] == code


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "code"),
        ({"code": ""}, "code"),
        ({"code": 7}, "code"),
        ({"code": "a\x00b"}, "code"),
        ({"code": CODE, "name": ""}, "name"),
        ({"code": CODE, "interpreter": "bash"}, "interpreter"),
    ],
)
async def test_what_is_wrong_is_named(api, body, path):
    assert [error["path"] for error in problem(await api.post("/v1/scripts", json=body), 422)["errors"]] == [path]


async def test_a_script_has_a_size_limit(api):
    largest = "#" * (1 << 20)
    assert (await api.post("/v1/scripts", json={"code": largest})).status_code == 201
    problem(await api.post("/v1/scripts", json={"code": largest + "#"}), 422)
    problem(await api.post("/v1/scripts", json={"code": "é" * (1 << 19) + "#"}), 413)
    problem(await api.post("/v1/scripts", json={"code": "#" * (5 << 20)}), 413)


@pytest.mark.parametrize("name", ["sha256:", "sha256:" + "0" * 64, "md5:0", "..", "sha256:" + "A" * 64])
async def test_what_is_no_script_is_not_found(api, name):
    problem(await api.get(f"/v1/scripts/{name}"), 404)
    problem(await api.delete(f"/v1/scripts/{name}"), 404)


async def test_who_may_do_what(keyed):
    problem(await keyed["read"].post("/v1/scripts", json=UPLOAD), 403)
    problem(await keyed["nobody"].get("/v1/scripts"), 401)
    assert (await keyed["write"].post("/v1/scripts", json=UPLOAD)).status_code == 201
    assert (await keyed["read"].get(f"/v1/scripts/{ID}")).json()["code"] == CODE
    problem(await keyed["read"].delete(f"/v1/scripts/{ID}"), 403)


async def test_a_tenant_sees_only_its_own(keyed):
    await keyed["write"].post("/v1/scripts", json=UPLOAD)
    other = keyed["other"]
    problem(await other.get(f"/v1/scripts/{ID}"), 404)
    problem(await other.delete(f"/v1/scripts/{ID}"), 404)
    assert (await other.get("/v1/scripts")).json()["items"] == []
    problem(await other.post("/v1/jobs", json=using(ID)), 422)
    assert (await other.post("/v1/scripts", json=UPLOAD)).status_code == 201, "it is new to them"
    assert (await other.delete(f"/v1/scripts/{ID}")).status_code == 204
    assert (await keyed["read"].get(f"/v1/scripts/{ID}")).json()["code"] == CODE, "each has a copy"


async def test_a_script_in_use_stays(api):
    await api.post("/v1/scripts", json=UPLOAD)
    job = (await api.post("/v1/jobs", json=using(ID))).json()
    assert (await api.get(f"/v1/scripts/{ID}")).json()["jobs"] == ["job nightly"]
    refused = problem(await api.delete(f"/v1/scripts/{ID}"), 409)
    assert "used by job nightly" in refused["detail"]
    assert (await api.delete(f"/v1/jobs/{job['id']}")).status_code == 204
    assert (await api.delete(f"/v1/scripts/{ID}")).status_code == 204


async def test_a_job_names_only_scripts_that_there_are(api):
    await api.post("/v1/scripts", json=UPLOAD)
    job = (await api.post("/v1/jobs", json=using(ID))).json()
    nowhere = "sha256:" + "0" * 64
    answers = [
        await api.post("/v1/jobs", json={**using(nowhere), "key": "two"}),
        await api.put(f"/v1/jobs/{job['id']}", json=using(nowhere)),
        await api.put("/v1/jobs/by-key/nightly", json=using(nowhere)),
        await api.patch(f"/v1/jobs/{job['id']}", json={"target": {"script": nowhere}}),
    ]
    for answer in answers:
        (error,) = problem(answer, 422)["errors"]
        assert (error["path"], error["given"]) == ("target.script", nowhere)
        assert "POST /v1/scripts" in error["accepted"]
    batch = (await api.post("/v1/jobs/batch", json=[{**using(ID), "key": "a"}, {**using(nowhere), "key": "b"}])).json()
    assert [item["status"] for item in batch] == [201, 422]
    assert (await api.get(f"/v1/jobs/{job['id']}")).json()["version"] == 1


async def test_upload_and_delete_that_meet_leave_no_row_without_its_object(api, app):
    """Whichever comes last: what is listed can be read."""
    for _ in range(20):
        await asyncio.gather(
            api.post("/v1/scripts", json=UPLOAD), api.delete(f"/v1/scripts/{ID}"), api.post("/v1/scripts", json=UPLOAD)
        )
        listed = (await api.get("/v1/scripts")).json()["items"]
        assert (await api.get(f"/v1/scripts/{ID}")).status_code == (200 if listed else 404)


async def test_an_upload_during_a_delete_keeps_its_object(api, app, monkeypatch):
    """The row is gone, the same script comes again, and only then its object is removed."""
    await api.post("/v1/scripts", json=UPLOAD)
    objects = app.context.service.objects
    delete = objects.delete

    async def late(name: str) -> None:
        assert (await api.post("/v1/scripts", json=UPLOAD)).status_code == 201
        await delete(name)

    monkeypatch.setattr(objects, "delete", late)
    assert (await api.delete(f"/v1/scripts/{ID}")).status_code == 204
    assert (await api.get(f"/v1/scripts/{ID}")).json()["code"] == CODE


async def test_an_object_store_that_is_away_is_503(api, app, monkeypatch):
    async def away(name: str, content: bytes) -> None:
        raise ObjectStoreUnavailable("the object store can't be used: it is away")

    monkeypatch.setattr(app.context.service.objects, "put", away)
    answer = problem(await api.post("/v1/scripts", json=UPLOAD), 503)
    assert answer["type"].endswith("object-store-unavailable")
    assert (await api.get("/v1/scripts")).json()["items"] == [], "there is no row without its object"


async def test_a_lost_object_is_told_and_can_be_uploaded_again(api, app):
    await api.post("/v1/scripts", json=UPLOAD)
    folder = Path(app.context.service.settings.object_store)
    (folder / object_name(1, ID)).unlink()
    problem(await api.get(f"/v1/scripts/{ID}"), 503)
    assert (await api.post("/v1/scripts", json=UPLOAD)).status_code == 200
    assert (await api.get(f"/v1/scripts/{ID}")).json()["code"] == CODE
