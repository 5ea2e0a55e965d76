"""A jobs file that names a module, a function and a program that are not there: told at the start, by the doctor, and
on the page, before the first run fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.nodes import post
from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.waiting import until


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    (tmp_path / "work.py").write_text("raise SystemExit('imported')\ndef good(): ...\n")
    short = {"periodicity": "1d"}
    document = {
        "commands": {"tool": {"argv": ["/no/such/tool"]}},
        "jobs": [
            {"identifier": "fine", "path": "work", "function_name": "good", **short},
            {"identifier": "no-function", "path": "work", "function_name": "gone", **short},
            {"identifier": "no-module", "path": "absent.work", "function_name": "good", **short},
            {"key": "no-program", "schedule": {"every": "1d"}, "target": {"type": "command", "command": "tool"}},
        ],
    }
    (tmp_path / "jobs.json").write_text(json.dumps(document))
    return tmp_path / "jobs.json"


TOLD = (
    "1 job (no-function) will fail: {}/work.py does not define a function 'gone'",
    "1 job (no-module) will fail: module 'absent' not found",
    "1 job (no-program) will fail: program '/no/such/tool' not found",
)


async def test_it_is_told_at_the_start_and_on_the_page(sqlite_url, cluster, jobs, tmp_path):
    node = cluster.start("--store", sqlite_url, "--jobs", str(jobs))
    await node.ready()
    for line in TOLD:
        assert line.format(tmp_path) in node.output()
    assert "(fine)" not in node.output()
    status, page = await ask(node, "GET", "/jobs")
    assert status == 200
    assert page.count("Will fail: ") == 3
    assert "Will fail: program" in page
    (tmp_path / "work.py").write_text("def good(): ...\ndef gone(): ...\n")
    status, page = await ask(node, "GET", "/jobs")
    assert page.count("Will fail: ") == 2
    text = jobs.read_text().replace("absent.work", "absent.again")
    jobs.write_text(text)
    await until(lambda: node.output().count("module 'absent' not found") == 2, "it is told when read again", 20)
    assert await node.stop() == 0


async def test_the_doctor_tells_it_too(sqlite_url, jobs, tmp_path, free_port):
    doctor = NodeProcess("doctor", "--store", sqlite_url, directory=tmp_path, port=free_port())
    assert await doctor.exited() == 1
    for line in TOLD:
        assert line.format(tmp_path) in doctor.output()
    assert "(fine)" not in doctor.output()
    assert "correct the name, or install it on this node" in doctor.output()


async def test_the_doctor_counts_dead_letters(store_url, cluster, tmp_path, free_port):
    node = cluster.start("--store", store_url)
    await node.ready()
    target = {"type": "webhook", "url": "http://127.0.0.1:9/"}
    await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": target, "policy": {"retry": {"attempts": 1}}})

    async def dead() -> bool:
        return len((await ask(node, "GET", "/v1/dead"))[1]["items"]) == 1

    await until(dead, "it is a dead letter", 20)
    for url in (node.url, None):  # through the server that holds the file, then on the store itself
        if url is None:
            assert await node.stop() == 0
        arguments = ["--url", url] if url else []
        doctor = NodeProcess("doctor", "--store", store_url, *arguments, directory=tmp_path, port=free_port())
        assert await doctor.exited() == 0, doctor.output()
        assert "1 dead letter\n" in doctor.output()
        assert "onthedot dead list" in doctor.output()
