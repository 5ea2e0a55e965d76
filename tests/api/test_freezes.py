"""POST /v1/pause and /v1/resume: the whole installation."""

from __future__ import annotations


async def test_pause_and_resume_with_a_note(api):
    answer = await api.post("/v1/pause", json={"note": "database <upgrade>"})
    assert answer.status_code == 200
    freeze = answer.json()["freeze"]
    assert (answer.json()["paused"], freeze["note"]) == (True, "database <upgrade>")
    assert (await api.get("/v1/stats")).json()["freeze"] == freeze
    for page in ("/", "/jobs", "/jobs/new", "/runs", "/dead", "/upcoming", "/nodes", "/destinations", "/settings"):
        shown = await api.get(page)
        assert "database &lt;upgrade&gt;" in shown.text, page
    assert (await api.get("/v1/audit")).json()["items"][0]["verb"] == "freeze"
    answer = await api.post("/v1/resume")
    assert (answer.status_code, answer.json()) == (200, {"paused": False, "freeze": None})
    assert (await api.get("/v1/stats")).json()["freeze"] is None
    assert "upgrade" not in (await api.get("/jobs")).text
    assert (await api.post("/v1/resume")).status_code == 200, "resumed twice is once"


async def test_without_a_body_it_has_no_note(api):
    assert (await api.post("/v1/pause")).json()["freeze"]["note"] is None
    assert (await api.post("/v1/pause", json={})).json()["freeze"]["note"] is None


async def test_what_is_wrong_changes_nothing(api):
    for body, path in (({"note": 1}, "note"), ({"note": "x" * 1001}, "note"), ({"until": "1h"}, "until")):
        answer = await api.post("/v1/pause", json=body)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["path"] == path
    assert (await api.get("/v1/stats")).json()["freeze"] is None


async def test_only_admins_of_the_default_tenant_may(app, keyed):
    for name, status in (("nobody", 401), ("read", 403), ("write", 403), ("other", 403)):
        for verb in ("pause", "resume"):
            assert (await keyed[name].post(f"/v1/{verb}")).status_code == status, (name, verb)
    assert (await keyed["admin"].post("/v1/pause", json={"note": "n"})).status_code == 200
    assert (await keyed["read"].get("/v1/stats")).json()["freeze"]["note"] == "n"


async def test_the_installation_stays_ready(api):
    before = (await api.get("/readyz")).status_code
    await api.post("/v1/pause")
    assert (await api.get("/readyz")).status_code == before
