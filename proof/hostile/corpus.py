"""The requests: each as large, deep, many or slow as the API takes it, and then some."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

__all__ = ["Request", "corpus"]

HOOK = {"type": "webhook", "url": "http://127.0.0.1:9/never"}
NIGHTLY = {"cron": "0 3 * * *", "tz": "Europe/Berlin"}
NDJSON = "application/x-ndjson"


class Request(msgspec.Struct, frozen=True):
    name: str
    method: str
    path: str
    body: bytes | None = None
    media: str = "application/json"


def job(**fields: Any) -> dict[str, Any]:
    return {"schedule": NIGHTLY, "target": HOOK, **fields}


def jobs(number: int, filler: int, **fields: Any) -> list[dict[str, Any]]:
    return [job(key=f"job-{n}", params={"text": "x" * filler}, **fields) for n in range(number)]


def text(value: Any) -> bytes:
    return json.dumps(value).encode()


def sync(listed: Any, **more: Any) -> bytes:
    return text({"source": "hostile.json", "jobs": listed, **more})


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def _post(name: str, path: str, body: bytes, media: str = "application/json") -> Request:
    return Request(name, "POST", path, body, media)


def _syncs(scale: float) -> Iterator[Request]:
    number = max(10, int(10_000 * scale))
    filler = 1400
    path = "/v1/jobs/sync"
    yield _post("sync: 16 MB, all wrong", path, sync([{"key": n, "x": "y" * filler} for n in range(number)]))
    yield _post("sync: 16 MB, wrong URLs", path, sync(jobs(number, filler, target={**HOOK, "url": "nope"})))
    yield _post("sync: dry run", path, sync(jobs(number, filler), dry_run=True))
    yield _post("sync: 16 MB, new", path, sync(jobs(number, filler)))
    yield _post("sync: the same again", path, sync(jobs(number, filler)))
    yield _post("sync: all changed", path, sync(jobs(number, filler, name="another")))
    yield _post("sync: keys twice", path, sync([*jobs(number // 2, filler), *jobs(number // 2, filler)]))
    yield _post("sync: one long text", path, sync([job(key="a", params={"a": "x" * int(15e6 * scale)})]))
    yield _post("sync: many small values", path, sync([job(key="a", params={"a": [0] * int(7e6 * scale)})]))
    yield _post("sync: many names", path, sync([job(key="a", params={f"n{i}": i for i in range(int(8e5 * scale))})]))
    yield _post("sync: no jobs at all", path, sync([[[]]] * int(2e6 * scale)))
    yield _post("sync: escapes", path, sync([job(key="a", params={"a": "\u00e9" * int(2.5e6 * scale)})]))
    yield from _plans(scale)
    yield Request("list 500 of them", "GET", "/v1/jobs?limit=500")
    yield Request("search them", "GET", "/v1/jobs?limit=500&q=" + "x" * 150)
    yield Request("the page", "GET", "/")
    yield _post("sync: prune all", path, sync([], prune=True))


def _batches(scale: float) -> Iterator[Request]:
    number = max(10, int(5_000 * scale))
    path = "/v1/jobs/batch"
    filler = 2900
    listed = [job(params={"text": "x" * filler}) for _ in range(number)]
    yield _post("batch: 5,000, 16 MB", path, text(listed))
    yield _post("batch: 5,000 lines", path, b"\n".join(map(text, listed)), NDJSON)
    yield _post("batch: 5,000 wrong", path, text([{"x": "y" * filler, "schedule": 1, "target": []}] * number))
    yield _post("batch: 5,000 crons", path, text([_rare(n) for n in range(number)]))
    yield _post("batch: 8 million zeros", path, b"[" + b"0," * int(8e6 * scale) + b"0]")
    yield _post("batch: 16 million line ends", path, b"\n" * int(16e6 * scale), NDJSON)
    yield _post("batch: 8 million bad lines", path, b"0\n" * int(8e6 * scale), NDJSON)
    yield _post("batch: blanks", path, b"[" + b" " * int(16e6 * scale) + b"]")
    yield _post("batch: one deep item", path, b"[" * int(16e6 * scale))
    yield _post("batch: one long text", path, b'["' + b"x" * int(16e6 * scale) + b'"]')
    yield _post("batch: long numbers", path, b"[" + b"9" * int(16e6 * scale) + b"]")
    yield _post("batch: one large job", path, text([job(params={"a": [{}] * int(3e6 * scale)})]))


def _plans(scale: float) -> Iterator[Request]:
    number, path = max(10, int(1_000 * scale)), "/v1/plan"
    rare = [{**_rare(n), "key": f"rare-{n}"} for n in range(number)]
    often = [job(key=f"often-{n}", schedule={"every": f"{60 + n % 7}s"}) for n in range(number)]
    many = {f"n{n}": 0 for n in range(30)}
    yield _post("plan: 1,000 jobs", path, text({"jobs": [job(key=f"p-{n}", params=many) for n in range(number)]}))
    yield _post("plan: 4 MB", path, text({"jobs": jobs(number, 3900), "days": 366}))
    yield _post("plan: rare crons", path, text({"jobs": rare, "days": 366}))
    yield _post("plan: each minute", path, text({"jobs": often, "days": 366}))
    yield _post("plan: jobs that are stored", path, text({"jobs": jobs(number, 10, name="changed")}))
    yield _post("plan: all wrong", path, text({"jobs": [{"x": "y" * 3000, "schedule": 1}] * number}))
    yield _post("plan: one large job", path, text({"jobs": [job(key="a", params={"a": [{}] * int(1e6 * scale)})]}))
    yield _post("plan: too many", path, text({"jobs": [job()] * 2000}))
    yield _post("plan: unknown fields", path, text({"jobs": [], **{f"f{n}": 1 for n in range(60_000)}}))
    yield _post("plan: a large patch", path, text({"key": "job-1", "patch": {"params": {"a": [0] * 250_000}}}))
    yield _post("plan: many removed", path, text({"removed": [f"job-{n:0190}" for n in range(1000)]}))
    yield _post("plan: no jobs", path, b'{"jobs":[' + b"0," * int(2e6 * scale) + b"0]}")


def _rare(n: int) -> dict[str, Any]:
    return job(schedule={"cron": f"{n % 60} {n // 60 % 24} 29 2 {n % 7}", "tz": "America/New_York"})


def _single() -> Iterator[Request]:
    mib = 1 << 20
    for method, path in (("POST", "/v1/jobs"), ("PUT", "/v1/jobs/by-key/k")):
        yield Request(f"{method} a megabyte of params", method, path, text(job(params={"a": "x" * (mib - 2000)})))
        yield Request(f"{method} many names", method, path, text(job(params={f"n{i}": 0 for i in range(60_000)})))
        yield Request(f"{method} many zeros", method, path, text(job(params={"a": [0] * 250_000})))
        yield Request(f"{method} lists in lists", method, path, text(job(params={"a": [[]] * 200_000})))
        yield Request(f"{method} many tags", method, path, text(job(tags=[f"t{n}" for n in range(100_000)])))
        yield Request(f"{method} the same tag", method, path, text(job(tags=["t"] * 200_000)))
        yield Request(f"{method} many headers", method, path, text(_headers(40_000)))
        yield Request(f"{method} one long header", method, path, text(_headers(1, "x" * 1_000_000)))
        yield Request(f"{method} a long URL", method, path, text(job(target={**HOOK, "url": _long_url()})))
        yield Request(f"{method} many exclusions", method, path, text(_excluding(60_000)))
        yield Request(f"{method} unknown fields", method, path, text({f"f{n}": 1 for n in range(60_000)}))
        yield Request(f"{method} deep", method, path, text(job(params=deep(300))))
        yield Request(f"{method} deeper", method, path, b'{"params":' * 100_000)
        yield Request(f"{method} numbers", method, path, b'{"a":[' + b"1e308," * 150_000 + b"0]}")
        yield Request(f"{method} slow numbers", method, path, text(job(params={"a": [1e308] * 19_000})))
        yield Request(f"{method} long number", method, path, b'{"a":' + b"9" * 1_000_000 + b"}")
        yield Request(f"{method} escapes", method, path, b'{"a":"' + rb"\u0000" * 150_000 + b'"}')
        yield Request(f"{method} a long key", method, path, text(job(key="k" * 1_000_000)))
        yield Request(f"{method} a long zone", method, path, text(job(schedule={**NIGHTLY, "tz": "Z/" * 400_000})))
        yield Request(f"{method} a long cron", method, path, text(job(schedule={"cron": "*," * 400_000})))
        yield Request(f"{method} a long duration", method, path, text(job(schedule={"every": "1s" * 400_000})))
        yield Request(f"{method} a long date", method, path, text(job(schedule={"at": "2026-01-01T" + "0" * 900_000})))
    patch = {"params": {f"n{i}": None for i in range(60_000)}}
    yield Request("PATCH many names", "PATCH", "/v1/jobs/1", text(patch))
    yield Request("PATCH deep", "PATCH", "/v1/jobs/1", text({"params": deep(300)}))
    yield Request("PATCH large", "PATCH", "/v1/jobs/1", text({"params": {"a": [0] * 250_000}}))
    yield Request("timer: large", "POST", "/timers", text({"seconds": 60, "url": _long_url(), "x": "y" * 900_000}))
    yield Request("key: long name", "POST", "/v1/keys", text({"name": "n" * 1_000_000, "scope": "read"}))


def _headers(number: int, value: str = "y") -> dict[str, Any]:
    return job(target={**HOOK, "headers": {f"x-{n}": value for n in range(number)}})


def _long_url() -> str:
    return "http://" + "a." * 400_000 + "example/"


def _excluding(number: int) -> dict[str, Any]:
    dates = [f"20{26 + n // 9000}-{1 + n // 28 % 12:02}-{1 + n % 28:02}" for n in range(number)]
    return job(schedule={**NIGHTLY, "exclude": dates})


def _previews() -> Iterator[Request]:
    schedules: dict[str, dict[str, Any]] = {
        "leap days": {"cron": "0 0 29 2 *"},
        "leap days in a zone": {"cron": "0 0 29 2 *", "tz": "America/New_York"},
        "leap Mondays": {"cron": "0 0 */29 2 MON", "tz": "America/New_York"},
        "fifth weekdays": {"cron": "0 0 * * MON#5", "tz": "Europe/Berlin"},
        "every second": {"cron": "* * * * * *", "tz": "Australia/Lord_Howe"},
        "a second a year": {"cron": "59 59 23 31 12 *", "tz": "Africa/Casablanca"},
        "never": {"cron": "0 0 31 2 *"},
        "almost never": {"cron": "0 0 */31 */2 */7", "tz": "America/New_York"},
        "all of it": {"cron": ",".join(map(str, range(60))) + " " + ",".join(map(str, range(60))) + " * * * *"},
        "every ms": {"every": "1ms"},
        "far": {"every": "36500d"},
        "until soon": {"cron": "0 0 29 2 *", "end": "2027-01-01"},
        "excluded": {**NIGHTLY, "exclude": [f"2027-{m:02}-{d:02}" for m in range(1, 13) for d in range(1, 29)]},
        "all excluded": {"cron": "0 0 1 1 *", "exclude": [f"{year}-01-01" for year in range(2000, 4000)]},
        "rrule": {"rrule": "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30"},
    }
    for name, schedule in schedules.items():
        yield _post(f"preview: {name}", "/v1/preview", text({"schedule": schedule, "count": 1000}))
    for after in ("0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z", "1900-01-01T00:00:00Z"):
        asked = {"schedule": schedules["leap days in a zone"], "count": 1000, "after": after}
        yield _post(f"preview: after {after[:4]}", "/v1/preview", text(asked))


def _reads() -> Iterator[Request]:
    yield Request("many parameters", "GET", "/v1/jobs?" + "&".join(f"p{n}=1" for n in range(8000)))
    yield Request("one parameter often", "GET", "/v1/jobs?" + "&".join(["tag=a"] * 8000))
    yield Request("a long search", "GET", "/v1/jobs?q=" + "%25" * 18_000)
    yield Request("a long cursor", "GET", "/v1/jobs?cursor=" + "A" * 60_000)
    yield Request("a long path", "GET", "/" + "a/" * 30_000)
    yield Request("escaped path", "GET", "/" + "%2e" * 20_000)
    yield Request("a long id", "GET", "/v1/jobs/" + "9" * 60_000)
    yield Request("explain in year 9999", "GET", "/v1/jobs/1/explain?at=9999-12-31T00:00:00Z")
    for path in ("/openapi.json", "/docs", "/metrics", "/v1/nodes", "/v1/dead", "/", "/readyz"):
        yield Request(f"GET {path}", "GET", path)
    yield Request("many cookies", "GET", "/#cookies")


def corpus(scale: float = 1.0) -> Iterator[Request]:
    """`scale`: of what is measured in megabytes."""
    parts: tuple[Callable[[], Iterator[Request]], ...] = (
        _reads,
        _single,
        _previews,
        lambda: _batches(scale),
        lambda: _syncs(scale),
    )
    for part in parts:
        yield from part()
