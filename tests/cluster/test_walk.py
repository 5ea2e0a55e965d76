"""A new user's walk, with real processes, on both stores."""

from __future__ import annotations

import json
import signal

from tests.cluster.walking import ask
from tests.services.waiting import until


async def timer(node, seconds: int, url: str) -> int:
    status, made = await ask(node, "POST", "/timers", {"seconds": seconds, "url": url})
    assert status == 201, made
    assert made["time_left"] == seconds
    return int(made["id"])


async def done(node, key: str) -> list[str]:
    _, job = await ask(node, "GET", f"/v1/jobs/by-key/{key}")
    _, page = await ask(node, "GET", f"/v1/jobs/{job['id']}/runs?status=DONE")
    return [run["id"] for run in page["items"]]


async def test_the_walk(store_url, launch, echo, samples, tmp_path):
    node = await launch("--store", store_url, "--jobs", str(samples))
    assert node.url in node.output()
    assert "8 from jobs.json (8 new)" in node.output()

    # a timer made by HTTP fires on echo: once, not early, and soon
    first = await timer(node, 1, echo.url)
    await until(lambda: echo.arrivals(first), "the timer fires")
    (arrival,) = echo.arrivals(first)
    assert (arrival["method"], arrival["headers"]["x-onthedot-job"]) == ("POST", str(first))
    assert arrival["late_ms"] >= 0
    assert (await ask(node, "GET", f"/timers/{first}")) == (200, {"id": first, "time_left": 0})

    # the sample jobs run, and their logs are where they belong
    ticks = await until(lambda: done(node, "tick"), "a sample job is done")
    log = tmp_path / "logs" / "tick" / f"{ticks[-1]}.log"
    await until(log.exists, f"{log} is written")
    status, text = await ask(node, "GET", f"/v1/runs/{ticks[-1]}/logs")
    assert status == 200
    assert text

    # kill -9 right after a timer was acknowledged, and one for much later too
    later = await timer(node, 3600, echo.url)
    soon = await timer(node, 1, echo.url)
    node.kill()
    assert echo.arrivals(soon) == []

    # restarted on the same store: nothing is lost, what came due meanwhile fires once, the same file changes nothing
    node = await launch("--store", store_url, "--jobs", str(samples))
    assert "8 from jobs.json (unchanged)" in node.output()
    await until(lambda: echo.arrivals(soon), "the timer that came due meanwhile fires")
    status, left = await ask(node, "GET", f"/timers/{later}")
    assert status == 200
    assert 3500 < left["time_left"] <= 3600
    await until(lambda: _newer(node, ticks), "the sample jobs go on")
    _, page = await ask(node, "GET", f"/v1/runs?job_id={soon}")
    assert [run["status"] for run in page["items"]] == ["DONE"]
    assert len(echo.arrivals(soon)) == 1
    assert len(echo.arrivals(first)) == 1

    # the orderly stop
    assert await node.stop() == 0


async def _newer(node, seen: list[str]) -> bool:
    return bool(set(await done(node, "tick")) - set(seen))


async def test_a_timer_is_on_the_dot(store_url, launch, echo):
    node = await launch("--store", store_url)
    made = [await timer(node, 2, echo.url) for _ in range(10)]
    arrivals = await until(lambda: [echo.arrivals(one)[0] for one in made if echo.arrivals(one)][9:], "all ten fire")
    assert arrivals
    late = [item["late_ms"] for one in made for item in echo.arrivals(one)]
    assert len(late) == 10
    assert min(late) >= 0
    assert max(late) < 1000  # the bench measures milliseconds on a quiet machine; this one is shared


async def test_the_jobs_file_is_followed(sqlite_url, launch, tmp_path, echo):
    path = tmp_path / "mine.json"

    def write(*keys: str) -> None:
        jobs = ",\n".join(
            f'{{"key": "{key}", "schedule": {{"every": "1h"}}, "target": {{"type": "webhook", "url": "{echo.url}"}}}}'
            for key in keys
        )
        path.write_text(f'{{"jobs": [\n{jobs}\n]}}')

    write("a", "b")
    node = await launch("--store", sqlite_url, "--jobs", str(path))

    async def keys() -> set[str]:
        _, page = await ask(node, "GET", "/v1/jobs")
        return {job["key"] for job in page["items"]}

    async def are(*wanted: str) -> bool:
        return await keys() == set(wanted)

    assert await are("a", "b")
    write("b", "c")
    await until(lambda: are("b", "c"), "the changed file is applied")
    path.write_text('{"jobs": [{"key": "d"}]}')
    node.signal(signal.SIGHUP)
    await until(lambda: "jobs file not applied: it is invalid" in node.output(), "a bad file is said")
    assert await are("b", "c")
    write("e")
    node.signal(signal.SIGHUP)
    await until(lambda: are("e"), "SIGHUP loads the file")


async def test_a_second_signal_stops_at_once(sqlite_url, launch, samples):
    node = await launch("--store", sqlite_url, "--jobs", str(samples), env={"ONTHEDOT_GRACE": "1h"})
    _, job = await ask(node, "GET", "/v1/jobs/by-key/sleeper")
    _, run = await ask(node, "POST", f"/v1/jobs/{job['id']}/run")

    async def executing() -> bool:
        _, now = await ask(node, "GET", f"/v1/runs/{run['id']}")
        return bool(now["status"] == "EXECUTING")

    await until(executing, "the long run executes")
    node.signal(signal.SIGTERM)

    async def stopping() -> bool:
        status, _ = await ask(node, "GET", "/readyz")
        return status == 503

    await until(stopping, "the node says that it stops")
    assert node.exit_code is None
    node.signal(signal.SIGTERM)
    assert await node.exited() == 0
    assert "Traceback" not in node.output()


async def test_a_reloaded_file_may_name_new_code(sqlite_url, launch, tmp_path):
    """A module and a command that nobody had registered at the start; and code that changed since."""
    (tmp_path / "first.py").write_text("def work():\n    print('one')\n")
    path = tmp_path / "jobs.json"

    def job(key: str, module: str) -> dict[str, str]:
        return {"identifier": key, "path": module, "function_name": "work", "periodicity": "1h"}

    path.write_text(json.dumps({"jobs": [job("a", "first")]}))
    node = await launch("--store", sqlite_url, "--jobs", str(path))
    assert "one" in await printed(node, "a")

    (tmp_path / "second.py").write_text("def work():\n    print('two')\n")
    (tmp_path / "first.py").write_text("def work():\n    print('another one')\n")
    told = {"key": "c", "schedule": {"every": "1h"}, "target": {"type": "command", "command": "hello"}}
    commands = {"hello": {"argv": ["echo", "three"]}}
    path.write_text(json.dumps({"jobs": [job("a", "first"), job("b", "second"), told], "commands": commands}))
    node.signal(signal.SIGHUP)
    await until(lambda: "jobs file applied" in node.output(), "the file is applied")
    assert "two" in await printed(node, "b")
    assert "three" in await printed(node, "c")
    assert "another one" in await printed(node, "a")

    async def shown() -> bool:
        _, page = await ask(node, "GET", "/v1/nodes")
        return {"function:first", "function:second", "command:hello"} <= set(page["items"][0]["offers"])

    await until(shown, "the next beat tells the others")

    # a file that is refused registers nothing
    path.write_text(json.dumps({"jobs": [job("d", "third"), {**told, "schedule": {"every": "soon"}}]}))
    node.signal(signal.SIGHUP)
    await until(lambda: "jobs file not applied: it is invalid" in node.output(), "it is refused")
    spec = {"schedule": {"in": "1h"}, "target": {"type": "function", "function": "third:work"}}
    assert (await ask(node, "POST", "/v1/jobs", spec))[0] == 422


async def printed(node, key: str) -> str:
    _, job = await ask(node, "GET", f"/v1/jobs/by-key/{key}")
    _, run = await ask(node, "POST", f"/v1/jobs/{job['id']}/run")

    async def ended() -> bool:
        return bool((await ask(node, "GET", f"/v1/runs/{run['id']}"))[1]["status"] == "DONE")

    await until(ended, f"{key} is done")
    return str((await ask(node, "GET", f"/v1/runs/{run['id']}/logs"))[1])
