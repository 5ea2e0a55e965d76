"""Many at once: one durable answer per item, in order."""

from __future__ import annotations

import json

import pytest

from tests.api.conftest import JOB, problem

NDJSON = {"content-type": "application/x-ndjson"}


def job(number: int, **fields):
    return {**JOB, "key": f"job-{number}", **fields}


async def test_each_item_gets_its_answer_in_order(api):
    answer = await api.post("/v1/jobs/batch", json=[job(1), {"key": "bad"}, job(2), 7, job(3, target={"type": "x"})])
    assert answer.status_code == 200, answer.text
    items = answer.json()
    assert [item["status"] for item in items] == [201, 422, 201, 422, 422]
    assert [item.get("key") for item in items] == ["job-1", None, "job-2", None, None]
    assert {error["path"] for error in items[1]["errors"]} == {"schedule", "target"}
    assert items[4]["errors"][0]["path"] == "target.type"
    for item in (items[0], items[2]):
        assert (await api.get(f"/v1/jobs/{item['id']}")).json()["key"] == item["key"]


async def test_lines_work_like_a_list_and_a_line_that_is_no_json_is_its_own_400(api):
    lines = [json.dumps(job(1)), "", "{nonsense", '"text"', "  ", json.dumps(job(2))]
    answer = await api.post("/v1/jobs/batch", content="\r\n".join(lines), headers=NDJSON)
    assert [item["status"] for item in answer.json()] == [201, 400, 422, 201]
    assert "not valid JSON" in answer.json()[1]["detail"]


async def test_the_same_key_twice_in_one_batch_is_a_conflict_for_the_second(api, new_job):
    await new_job(key="taken")
    answer = await api.post("/v1/jobs/batch", json=[job(1), job(1, name="again"), job(2), job(3, key="taken")])
    assert [item["status"] for item in answer.json()] == [201, 409, 201, 409]
    listed = (await api.get("/v1/jobs?q=job-1")).json()["items"]
    assert [found["name"] for found in listed] == [None]


@pytest.mark.parametrize("body", ["{}", "1", "null", '"x"'])
async def test_a_batch_is_a_list(api, body):
    problem(await api.post("/v1/jobs/batch", content=body), 422)


async def test_an_empty_batch_is_answered_with_nothing(api):
    assert (await api.post("/v1/jobs/batch", json=[])).json() == []
    assert (await api.post("/v1/jobs/batch", content=b"\n\n", headers=NDJSON)).json() == []


async def test_more_than_five_thousand_are_too_many(api):
    many = json.dumps([0] * 5001)
    assert "5000" in problem(await api.post("/v1/jobs/batch", content=many), 413)["detail"].replace(",", "")
    problem(await api.post("/v1/jobs/batch", content=b"0\n" * 5001, headers=NDJSON), 413)


async def test_a_thousand_are_written_and_all_are_there(api):
    answer = await api.post("/v1/jobs/batch", json=[job(number) for number in range(1000)])
    assert {item["status"] for item in answer.json()} == {201}
    assert len({item["id"] for item in answer.json()}) == 1000
    page = (await api.get("/v1/jobs?limit=500")).json()
    assert len(page["items"]) == 500
    assert len((await api.get(page["next"])).json()["items"]) == 500


async def test_a_batch_sent_again_under_its_key_makes_nothing_new(api):
    headers = {"idempotency-key": "batch-1"}
    body = [job(1), {"key": "bad"}, job(2)]
    first = (await api.post("/v1/jobs/batch", json=body, headers=headers)).json()
    again = (await api.post("/v1/jobs/batch", json=body, headers=headers)).json()
    assert first == again
    assert len((await api.get("/v1/jobs")).json()["items"]) == 2


async def test_a_batch_takes_up_to_sixteen_mebibytes(api):
    padded = job(1, params={"x": "y" * (2 << 20)})
    assert (await api.post("/v1/jobs", json=padded)).status_code == 413
    answer = await api.post("/v1/jobs/batch", json=[job(2), padded, job(3)])
    assert [item["status"] for item in answer.json()] == [201, 413, 201]
    many = [job(n, params={"x": "y" * 900_000}) for n in range(10, 27)]
    assert {item["status"] for item in (await api.post("/v1/jobs/batch", json=many)).json()} == {201}
    problem(await api.post("/v1/jobs/batch", content=b" " * ((16 << 20) + 1)), 413)


async def test_hazards_in_one_item_leave_the_others_alone(api):
    deep: dict[str, object] = {"a": None}
    for _ in range(80):
        deep = {"a": deep}
    items = [job(1), job(2, params=deep), job(3, name="a\x00b"), job(4, params={"n": 10**30}), job(5)]
    answer = await api.post("/v1/jobs/batch", content=json.dumps(items))
    assert [item["status"] for item in answer.json()] == [201, 422, 422, 422, 201]


async def test_a_job_without_a_key_says_so(api):
    (item,) = (await api.post("/v1/jobs/batch", json=[{**JOB, "key": None}])).json()
    assert (item["status"], item["key"]) == (201, None)


async def test_another_body_under_the_same_idempotency_key_is_refused_whole(api):
    once = {"Idempotency-Key": "batch"}
    first = (await api.post("/v1/jobs/batch", json=[job(1)], headers=once)).json()
    assert (await api.post("/v1/jobs/batch", json=[job(1)], headers=once)).json() == first
    refused = problem(await api.post("/v1/jobs/batch", json=[job(1), job(2)], headers=once), 422)
    assert refused["errors"][0]["given"] == "batch"
    assert (await api.get("/v1/jobs/by-key/job-2")).status_code == 404
