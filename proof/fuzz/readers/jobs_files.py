"""A jobs file: Unreadable or Invalid, or jobs that read the same when they are written out and read again."""

from __future__ import annotations

import json
import random

from onthedot.errors import Invalid, Unreadable
from onthedot.jobsfile import parse_jobs
from onthedot.model.decoding import to_builtins
from proof.fuzz.reader import Reader, Wrong

__all__ = ["JOBS_FILES"]

TOML = b"""[[jobs]]
key = "a"
schedule = {every = "1m"}
target = {type = "webhook", url = "https://example.com/"}
[jobs.policy]
timeout = "5s"
"""
YAML = b"""jobs:
  - key: a
    schedule: {cron: "0 3 * * *", tz: Europe/Berlin}
    target: &t {type: webhook, url: "https://example.com/"}
  - {key: b, schedule: {every: 1m}, target: *t, tags: [x, y]}
"""
SHORT = b'[{"identifier": "a", "path": "m", "function_name": "f", "parameters": {"x": 1}, "periodicity": 60}]'
FULL = b"""{"jobs": [{"key": "a", "name": "A", "paused": true, "tags": ["x"], "params": {"n": [1, null, true, "t"]},
 "schedule": {"cron": "0 3 * * *", "tz": "Europe/Berlin", "start": "2026-01-01"},
 "target": {"type": "webhook", "url": "https://example.com/", "headers": {"x-a": "b"}},
 "policy": {"timeout": "5s", "retry": {"attempts": 3}, "overlap": "skip"}}],
 "commands": {"c": {"argv": ["true"]}}}"""


def check(raw: bytes, rng: random.Random) -> bool:
    text = raw.decode("utf-8", "replace")
    extension = _extension(raw, rng)
    try:
        read = parse_jobs(text, extension, f"jobs.{extension}")
    except (Invalid, Unreadable) as refusal:
        if not str(refusal):
            raise Wrong("refused without a word") from None
        return False
    written = json.dumps({"jobs": [to_builtins(spec) for spec in read.specs]})
    if parse_jobs(written, "json", "jobs.json").specs != read.specs:
        raise Wrong(f"read again it is another: {written}")
    return True


def _extension(raw: bytes, rng: random.Random) -> str:
    if rng.randrange(50) == 0:
        return rng.choice(("json", "yaml", "toml"))
    if b"[[" in raw[:10] or b" = " in raw:
        return "toml"
    return "json" if raw[:1] in (b"{", b"[") else "yaml"


JOBS_FILES = Reader(
    "jobs_files",
    check,
    (*(FULL, SHORT, TOML) * 8, YAML),  # reading YAML takes ten times as long
    (
        b"{", b"}", b"[", b"]", b":", b",", b'"', b"'", b"\\u0000", b"\\ud800", b"null", b"true", b"1e400", b"NaN",
        b"jobs", b'"key"', b"schedule", b"cron",
        b"every", b"target", b'"type"', b"webhook", b"function", b"policy", b"timeout", b"&a ", b"*a", b"<<: ",
        b"!!python/object:x ", b"---\n", b"- ",
        b"2026-01-01", b"[[jobs]]\n", b" = ", b"\n", b"  ", b'{"a":' * 60, b"#",
    ),
)  # fmt: skip
