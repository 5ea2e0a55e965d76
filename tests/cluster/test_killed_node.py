"""What a node that was killed had started ends with it, before another node starts it again."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cluster.nodes import Cluster, post
from tests.services.waiting import until
from tests.targets.processes import gone

# Says every 20 ms how long the machine is up, and has a child that would go on without it.
BEAT = "sleep 600 & echo $$ $! > group-$$; while :; do cut -d' ' -f1 /proc/uptime >> pulse-$$; sleep 0.02; done"


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[Path]:
    """Where they say who they are; none outlives the test, though it fails."""
    yield tmp_path
    for group in tmp_path.glob("group-*"):
        with suppress(ProcessLookupError):
            os.killpg(int(group.name.removeprefix("group-")), signal.SIGKILL)


async def test_a_command_that_may_not_overlap_ends_before_another_node_starts_it(
    postgres_url: str, cluster: Cluster, groups: Path
):
    """Seen: it went on, and another node ran it beside that."""
    offered = {"ONTHEDOT_COMMANDS": json.dumps({"beat": {"argv": ["/bin/sh", "-c", BEAT]}})}
    first = cluster.start("--store", postgres_url, env=offered)
    await first.ready()
    job = {
        "schedule": {"in": "1ms"},
        "target": {"type": "command", "command": "beat"},
        "policy": {"overlap": "skip"},
    }
    await post(first, "/v1/jobs", job)
    (begun,) = await until(lambda: [*groups.glob("pulse-*")], "it runs")
    second = cluster.start("--store", postgres_url, env=offered)
    await second.ready()
    group = [int(pid) for pid in (groups / begun.name.replace("pulse", "group")).read_text().split()]
    assert len(group) == 2
    assert not any(gone(pid) for pid in group)
    first.signal(signal.SIGKILL)
    await until(lambda: all(gone(pid) for pid in group), "its processes are gone", 4)
    assert [*groups.glob("pulse-*")] == [begun], "no node has started it again yet"
    last = float(begun.read_text().split()[-1])
    again = await until(lambda: {*groups.glob("pulse-*")} - {begun}, "the other node starts it", 30)
    assert last < float((await until(again.pop().read_text, "it lives")).split()[0])
    assert last == float(begun.read_text().split()[-1])
