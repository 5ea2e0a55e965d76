"""Who changed what, over HTTP."""

from __future__ import annotations

from tests.api.conftest import JOB, problem


async def test_changes_are_listed_with_filters(api):
    job = (await api.post("/v1/jobs", json=JOB)).json()
    address = f"/v1/jobs/{job['id']}"
    await api.patch(address, json={"name": "x"})
    await api.post(f"{address}/pause", json={"note": "why not"})
    await api.delete(address)
    found = (await api.get("/v1/audit")).json()
    assert found["next"] is None
    assert [(each["verb"], each["actor"], each["summary"]) for each in found["items"]] == [
        ("delete", "open", None),
        ("pause", "open", "why not"),
        ("edit", "open", "name"),
    ]
    assert found["items"][-1]["version_after"] == 2
    for query in (f"job={job['id']}&limit=2", f"job={JOB['key']}&limit=2"):
        page = (await api.get(f"/v1/audit?{query}")).json()
        assert len(page["items"]) == 2
        assert [each["verb"] for each in (await api.get(page["next"])).json()["items"]] == ["edit"]
    assert len((await api.get("/v1/audit?verb=pause&actor=open")).json()["items"]) == 1
    assert (await api.get("/v1/audit?actor=nobody")).json()["items"] == []
    for wrong in ("verb=create", "since=yesterday", "a=1", "limit=0"):
        problem(await api.get(f"/v1/audit?{wrong}"), 422)


async def test_addresses_are_for_admins_and_tenants_are_apart(keyed):
    job = (await keyed["write"].post("/v1/jobs", json=JOB)).json()
    await keyed["write"].post(f"/v1/jobs/{job['id']}/pause")
    (seen,) = (await keyed["admin"].get("/v1/audit?verb=pause")).json()["items"]
    assert (seen["actor"], seen["actor_kind"], bool(seen["key_id"]), bool(seen["address"])) == (
        "write",
        "key",
        True,
        True,
    )
    (read,) = (await keyed["read"].get("/v1/audit?verb=pause")).json()["items"]
    assert read == {**seen, "address": None}
    assert (await keyed["other"].get("/v1/audit?verb=pause")).json()["items"] == []
