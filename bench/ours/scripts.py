"""Uploaded scripts, all different: how fast they are stored, and what each takes on disk and in the database.

Through the service, as `POST /v1/scripts` does it: the object, synced to disk, then the row that says whose it is. In a
directory, and in an S3 that the tests use (seaweedfs) where it is installed.
"""

from __future__ import annotations

import asyncio
import os
import random
import string
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import asyncpg

from bench.contest import quantiles
from bench.ours.parts import opened, webhooks
from onthedot.model.script import ScriptUpload
from onthedot.service import DEFAULT_TENANT, Service
from tests.services.s3 import BUCKET, S3Missing, running_s3

__all__ = ["scripts"]

AT_ONCE = 16
AGAIN = 1000
"""Scripts that are uploaded a second time."""
GB = 10**9
_ROWS = """
SELECT pg_total_relation_size('scripts') + pg_total_relation_size('audit_log') AS rows,
       pg_current_wal_lsn() - '0/0'::pg_lsn AS wal
"""


async def scripts(store: str, count: int, size: int, a_day: int, limit_gb: float) -> dict[str, Any]:
    """`count` scripts of `size` bytes; what `a_day` of them would take, and which share of `limit_gb` that is."""
    found: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DISK"))))
        places = {"directory": (str(home / "objects"), home / "objects")}
        try:
            (home / "s3").mkdir()
            url = stack.enter_context(running_s3(home / "s3"))
        except S3Missing:
            pass
        else:
            os.environ |= {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"}
            places["S3 (seaweedfs)"] = (f"s3://{BUCKET}/bench?endpoint={url}", home / "s3")
        for number, (name, (place, disk)) in enumerate(places.items()):
            async with opened(store, webhooks(), object_store=place) as (_, service):
                found[name] = await _stored(store, service, disk, list(_different(count, size, number)))
    ours = found["directory"]
    head = ["object store", "scripts", "per second", "p99 ms", "bytes on disk", "bytes of rows", "bytes of WAL"]
    head += [f"GB for {a_day:,}", f"of {limit_gb:g} GB", "bytes on disk, the same again"]
    rows: list[list[object]] = []
    for name, one in found.items():
        gb = one["disk"] * a_day / GB
        each = [one["rate"], one["p99"], one["disk"], one["rows"], one["wal"]]
        rows.append([name, count, *each, gb, f"{gb / limit_gb:.0%}", one["again"]])
    return {
        "rate": ours["rate"],
        "gb_a_day": ours["disk"] * a_day / GB,
        "again": ours["again"],
        "stores": found,
        "table": {"head": head, "rows": rows},
    }


def _different(count: int, size: int, seed: int) -> Iterator[str]:
    """Scripts of random text: what compresses them gains a fifth, where it would gain more of real ones."""
    rng, letters = random.Random(seed), string.ascii_letters + string.digits
    for number in range(count):
        head = f"# {number}\n"
        yield head + "".join(rng.choices(letters, k=size - len(head)))


async def _stored(store: str, service: Service, disk: Path, codes: list[str]) -> dict[str, float]:
    """Bytes are those that each of them added."""
    database = await asyncpg.connect(store)
    try:
        rows, files = await database.fetchrow(_ROWS), _bytes_of(disk)
        took, seconds = await _uploaded(service, codes, new=True)
        now = await database.fetchrow(_ROWS)
    finally:
        await database.close()
    assert rows is not None
    assert now is not None
    once = _bytes_of(disk)
    same = codes[:AGAIN]
    await _uploaded(service, same, new=False)
    n = len(codes)
    return {
        "rate": n / seconds,
        "p99": quantiles(took)["p99"],
        "disk": (once - files) / n,
        "rows": (now["rows"] - rows["rows"]) / n,
        "wal": float(now["wal"] - rows["wal"]) / n,
        "again": (_bytes_of(disk) - once) / len(same),
    }


async def _uploaded(service: Service, codes: list[str], *, new: bool) -> tuple[list[float], float]:
    """Milliseconds of each, and seconds of all; an error if one was there already, or was not."""
    left, took = iter(codes), list[float]()

    async def upload() -> None:
        for code in left:
            began = time.perf_counter()
            script, is_new = await service.upload_script(DEFAULT_TENANT, ScriptUpload(code=code))
            took.append((time.perf_counter() - began) * 1000)
            if is_new is not new:
                raise RuntimeError(f"script {script.id} was {'' if is_new else 'not '}new")

    began = time.perf_counter()
    await asyncio.gather(*(upload() for _ in range(AT_ONCE)))
    return took, time.perf_counter() - began


def _bytes_of(directory: Path) -> int:
    """Blocks that it takes, with all that is in it."""
    entries = [directory, *directory.rglob("*")] if directory.exists() else []
    return sum(entry.lstat().st_blocks * 512 for entry in entries)
