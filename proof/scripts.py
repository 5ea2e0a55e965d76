"""How long a script takes to start in its sandbox, compared with its interpreter alone: `python -m proof.scripts`."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable

from onthedot.model.targets import ScriptTarget
from onthedot.settings import Settings
from onthedot.targets import Call, build_targets
from onthedot.targets.contract import Ended
from onthedot.targets.script.interpreters import interpreters

WANTED_MS = 30.0
CODE = "print(1)"


async def plain() -> None:
    argv = interpreters({})["python"].argv
    done = await asyncio.to_thread(subprocess.run, [*argv, "-c", CODE], capture_output=True, env={}, check=False)
    assert done.stdout == b"1\n"


async def measured(rounds: int) -> tuple[float, float, str]:
    """Medians in milliseconds of the interpreter alone and of a script, one after the other in turn; the sandbox."""
    targets = build_targets(Settings())
    async with targets:
        kind = targets.kind_of(ScriptTarget(code=CODE))

        async def sandboxed() -> None:
            ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
            call = Call(run_id="1-1", job_id=1, slot=1, attempt=1, target=ScriptTarget(code=CODE))
            kind.start(call, time.monotonic(), ended.set_result)
            outcome = (await ended).outcome
            assert outcome is not None
            assert outcome.ok, outcome

        alone, inside = [], []
        for _ in range(rounds):
            alone.append(await _timed(plain))
            inside.append(await _timed(sandboxed))
        (sandbox,) = await kind.diagnose()
    return statistics.median(alone), statistics.median(inside), sandbox.found


async def _timed(action: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await action()
    return (time.perf_counter() - began) * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    alone, inside, sandbox = asyncio.run(measured(parser.parse_args().rounds))
    print(f"{sandbox}")
    print(f"interpreter alone {alone:.1f} ms, script {inside:.1f} ms, sandbox {inside - alone:+.1f} ms (median)")
    print(f"wanted: at most {WANTED_MS:.0f} ms more")
    return 0 if inside - alone <= WANTED_MS else 1


if __name__ == "__main__":
    raise SystemExit(main())
