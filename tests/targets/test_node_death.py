"""A worker never outlives its node, and the real loop of a node (uvloop) runs all of it."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest
import uvloop

from onthedot.echo import EchoServer
from onthedot.model.targets import CommandTarget, FunctionTarget, Target, WebhookTarget
from onthedot.settings import CommandSetting, Settings
from onthedot.targets import Call, EgressRule, build_targets
from tests.services.waiting import until
from tests.targets.processes import gone
from tests.targets.sending import send

NODE = """
import asyncio, sys
from onthedot.model.targets import FunctionTarget
from onthedot.settings import Settings
from onthedot.targets import Call, build_targets
from tests.targets.sending import send

async def main():
    async with build_targets(Settings(functions=("sample",)), import_paths=[sys.argv[1]]) as targets:
        await asyncio.gather(*(send(targets, Call(
            run_id="1", job_id=1, slot=1, attempt=1, target=FunctionTarget(function=f"sample:{name}"),
            log=lambda text: print(text, end="", flush=True),
        )) for name in ("idle", "busy")))

asyncio.run(main())
"""
SAMPLE = """
import os, time
def idle():
    print("idle", os.getpid())
def busy():
    print("busy", os.getpid())
    while True:
        time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_workers_die_with_their_node(tmp_path: Path, how: signal.Signals):
    (tmp_path / "sample.py").write_text(SAMPLE)
    node = await asyncio.create_subprocess_exec(
        sys.executable, "-c", NODE, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert node.stdout is not None
    lines = [(await node.stdout.readline()).decode().split() for _ in range(2)]
    workers = {name: int(pid) for name, pid in lines}
    assert set(workers) == {"idle", "busy"}
    assert not any(gone(pid) for pid in workers.values())
    node.send_signal(how)
    assert await node.wait() == -how
    for pid in workers.values():
        await until(partial(gone, pid), "the worker is gone")


async def test_a_worker_whose_node_hangs_up_ends_by_itself(tmp_path: Path):
    """Where no signal tells of the node's death, the closed socket does."""
    from onthedot.targets.function.pool import WorkerPool
    from onthedot.targets.function.worker import WorkerProcess

    worker = await WorkerProcess.start([str(tmp_path)], WorkerPool(1, []))
    worker._calls.close()
    await asyncio.wait_for(worker.gone(), 10)
    assert not psutil.pid_exists(worker.pid)


def test_all_kinds_on_uvloop(tmp_path: Path):
    (tmp_path / "sample_uv.py").write_text(
        "import os, time\n"
        "def work(n):\n    print('working')\n    return n\n"
        "def crash():\n    os._exit(3)\n"
        "def hang():\n    print('hanging')\n    time.sleep(600)\n"
    )

    async def main() -> dict[str, object]:
        seen: dict[str, object] = {}
        commands = {
            "it": CommandSetting(argv=("/bin/sh", "-c", "echo hello; exit 2")),
            "hang": CommandSetting(argv=("/bin/sh", "-c", "echo hanging; exec sleep 600")),
        }
        targets = build_targets(
            Settings(functions=("sample_uv",), commands=commands),
            egress=EgressRule(allow_private=True),
            import_paths=[str(tmp_path)],
        )

        async def called(target: Target, texts: list[str], **params: object) -> object:
            call = Call(run_id="1-1", job_id=1, slot=1, attempt=1, target=target, params=params, log=texts.append)
            return await send(targets, call)

        async with EchoServer() as echo, targets:
            for name, target, params in (
                ("webhook", WebhookTarget(url=echo.url, body=1), {}),
                ("function", FunctionTarget(function="sample_uv:work"), {"n": 5}),
                ("crash", FunctionTarget(function="sample_uv:crash"), {}),
                ("command", CommandTarget(command="it"), {}),
            ):
                texts: list[str] = []
                seen[name] = (await called(target, texts, **params), "".join(texts))
            for name, target in (
                ("hanging function", FunctionTarget(function="sample_uv:hang")),
                ("hanging command", CommandTarget(command="hang")),
            ):
                texts = []
                running = asyncio.ensure_future(called(target, texts))
                await until(lambda told=texts: "".join(told) == "hanging\n")  # type: ignore[misc,arg-type]
                running.cancel()
                await asyncio.wait([running])
                seen[name] = running.cancelled()
        return seen

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        seen = runner.run(main())
    text = json.dumps({name: str(value) for name, value in seen.items()})
    assert "'status_code': 200" in text
    assert seen["function"][0].detail == {"result": 5}  # type: ignore[index]
    assert seen["function"][1] == "working\n"  # type: ignore[index]
    assert "exit code 3" in text
    assert seen["command"][0].detail == {"exit_code": 2}  # type: ignore[index]
    assert seen["command"][1] == "hello\n"  # type: ignore[index]
    assert seen["hanging function"] is seen["hanging command"] is True
