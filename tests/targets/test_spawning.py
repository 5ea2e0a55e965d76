"""Cancelled at any instant, a start leaves no process behind; on both event loops."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest
import uvloop

from onthedot.model.target import CommandTarget, FunctionTarget, Target
from onthedot.settings import CommandSetting
from onthedot.targets import Call, build_targets, spawning
from onthedot.targets.spawning import signal_group, spawn
from tests.services.waiting import until
from tests.targets.processes import gone

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
SCRIPT = "trap '' TERM; while :; do sleep 600; done"


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def started_since(before: set[int]) -> set[int]:
    return children() - before


async def after(steps: int) -> None:
    """Let the loop turn so many times."""
    for _ in range(steps):
        await asyncio.sleep(0)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("kind", ["command", "function"])
def test_cancelled_at_any_instant_nothing_is_left(tmp_path: Path, loop: str, kind: str):
    (tmp_path / "sample.py").write_text("import time\ndef work(): time.sleep(600)\n")
    target: Target = CommandTarget(command="it") if kind == "command" else FunctionTarget(function="sample:work")

    async def main() -> None:
        targets = build_targets(
            version="1",
            functions=["sample"],
            import_paths=[str(tmp_path)],
            commands={"it": CommandSetting(argv=("/bin/sh", "-c", SCRIPT))},
        )
        targets._kinds["command"]._grace = 0.01  # type: ignore[attr-defined]
        async with targets:
            for steps in range(12):
                call = Call(run_id="1-1", job_id=1, slot=1, attempt=1, target=target)
                running = asyncio.ensure_future(targets.send(call))
                await after(steps)
                running.cancel()
                await asyncio.wait([running])
                assert running.cancelled()

    before = children()
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(main())
    assert started_since(before) == set()


@pytest.mark.parametrize("loop", LOOPS)
def test_cancelled_twice_while_starting(loop: str):
    before = children()

    async def main() -> list[int]:
        pids = []
        for steps in range(6):
            starting = asyncio.ensure_future(spawn("/bin/sh", "-c", SCRIPT))
            await after(steps)
            starting.cancel()
            await asyncio.sleep(0)
            starting.cancel()
            await asyncio.wait([starting])
            if not starting.cancelled():
                process = starting.result()
                signal_group(process.pid, signal.SIGKILL)
                await process.wait()
                pids.append(process.pid)
        await until(lambda: not spawning._killing and not started_since(before))
        return pids

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        pids = runner.run(main())
    assert all(gone(pid) for pid in pids)


async def test_what_cannot_start_says_so():
    with pytest.raises(FileNotFoundError):
        await spawn("/no/such/program")


async def test_a_started_process_leads_its_own_group():
    process = await spawn("/bin/sleep", "600")
    assert os.getpgid(process.pid) == os.getsid(process.pid) == process.pid
    signal_group(process.pid, signal.SIGTERM)
    assert await process.wait() == -signal.SIGTERM
    signal_group(process.pid, signal.SIGTERM)  # nobody is there any more
