"""A process inherits nothing but what it is given, and cancelled at any instant none is left; on both event loops."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest
import uvloop

from onthedot.model.targets import CommandTarget, FunctionTarget, Target
from onthedot.settings import CommandSetting, Settings
from onthedot.targets import Call, build_targets
from onthedot.targets.process.spawning import signal_group, spawn
from tests.targets.processes import gone
from tests.targets.sending import NotBegun, send

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
            Settings(functions=("sample",), commands={"it": CommandSetting(argv=("/bin/sh", "-c", SCRIPT))}),
            import_paths=[str(tmp_path)],
        )
        targets._kinds[CommandTarget]._grace = 0.01  # type: ignore[attr-defined]
        async with targets:
            for steps in range(12):
                call = Call(run_id="1-1", job_id=1, slot=1, attempt=1, target=target)
                running = asyncio.ensure_future(send(targets, call))
                await after(steps)
                running.cancel()
                await asyncio.wait([running])
                assert running.cancelled() or isinstance(running.exception(), NotBegun)

    before = children()
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(main())
    assert started_since(before) == set()


@pytest.mark.parametrize("loop", LOOPS)
def test_it_inherits_its_standard_streams_and_what_it_is_given(loop: str):
    async def main() -> list[str]:
        given, kept = os.pipe()
        reading, writing = os.pipe()
        for descriptor in (given, kept, writing):
            os.set_inheritable(descriptor, True)  # as a careless library may leave it
        try:
            process = spawn("/bin/ls", "/proc/self/fd", stdout=writing, pass_fds=(given,))
            assert await process.wait() == 0
            return [str(given), *os.read(reading, 1000).decode().split()]
        finally:
            for descriptor in (given, kept, reading, writing):
                os.close(descriptor)

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        given, *seen = runner.run(main())
    beyond = set(seen) - {"0", "1", "2", given}
    assert given in seen
    assert len(beyond) == 1, "the folder that ls reads, and nothing else"


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("pidfd", [True, False])
def test_many_that_end_are_reaped(loop: str, pidfd: bool, monkeypatch: pytest.MonkeyPatch):
    if not pidfd:
        monkeypatch.delattr(os, "pidfd_open")
    with asyncio.Runner(loop_factory=LOOPS[loop]) as first:  # a loop's first use opens what stays open
        first.run(asyncio.sleep(0))
    before, open_before = children(), psutil.Process().num_fds()

    async def main() -> list[int]:
        started = [spawn("/bin/sh", "-c", f"exit {number}") for number in range(20)]
        return await asyncio.gather(*(process.wait() for process in started))

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        assert runner.run(main()) == list(range(20))
    assert started_since(before) == set()
    assert psutil.Process().num_fds() <= open_before


async def test_what_cannot_start_says_so():
    with pytest.raises(FileNotFoundError):
        spawn("/no/such/program")


async def test_a_started_process_leads_its_own_group():
    process = spawn("/bin/sleep", "600")
    assert os.getpgid(process.pid) == os.getsid(process.pid) == process.pid
    signal_group(process.pid, signal.SIGTERM)
    assert (await process.wait(), process.returncode) == (-signal.SIGTERM, -signal.SIGTERM)
    assert gone(process.pid)
    signal_group(process.pid, signal.SIGTERM)  # nobody is there any more
