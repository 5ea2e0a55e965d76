"""Scripts that try to get out, and scripts that try to use up the machine: each is contained, in every sandbox.

`attacks.py` has the attempts to get out. Each is also made without a sandbox, unless it would do harm, and must succeed
there. Those on the network run in a namespace with nothing but `lo` (`attack_ground.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from onthedot.model.run import Outcome
from onthedot.settings import ScriptSetting
from onthedot.targets.script.kind import Scripts
from tests.services.waiting import until
from tests.targets.attack_ground import on_the_ground
from tests.targets.attacks import ATTACKS, NETWORK_ATTACKS, Attack, code_of
from tests.targets.conftest import Log, MakeCall
from tests.targets.sandboxes import PYTHON, SANDBOXES, python, scripts_in
from tests.targets.sending import send

IDS = [attack.name for attack in ATTACKS]
in_namespaces = pytest.mark.parametrize("sandbox", ["cgroup", "rlimits"])
everywhere = pytest.mark.parametrize("sandbox", SANDBOXES)


@everywhere
@pytest.mark.parametrize("attack", ATTACKS, ids=IDS)
async def test_contained(attack: Attack, sandbox: str, prey: dict[str, Any], make_call: MakeCall):
    prey["hides_host"] = sandbox != "landlock"  # which is no secret, and takes a namespace
    before = Path(prey["writable_file"]).stat()
    outcome = await send(scripts_in(sandbox), make_call(python(code_of(attack)), params=prey))
    told = outcome.detail.get("result")
    if told is None:
        assert outcome.error == "killed by SIGSYS", outcome  # the filter's answer to another architecture
    else:
        assert told["escaped"] is False, told["loot"]
    after = Path(prey["writable_file"]).stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_size) == (before.st_mode, before.st_mtime_ns, before.st_size)


@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if attack.plain], ids=lambda attack: attack.name)
def test_without_a_sandbox_it_succeeds(attack: Attack, prey: dict[str, Any], tmp_path: Path):
    """Otherwise it would prove nothing."""
    if os.geteuid() != 0:
        pytest.skip("only root may do all of it")
    script = tmp_path / "script.py"
    script.write_text(code_of(attack))
    # The sandbox has what was not there before: it is inherited here.
    inherited = os.open("/dev/null", os.O_RDONLY)
    try:
        done = subprocess.run(
            [PYTHON, str(script)],
            input=json.dumps(prey),
            capture_output=True,
            text=True,
            pass_fds=[inherited],
            timeout=30,
            env={"TMPDIR": str(tmp_path)},
        )
    finally:
        os.close(inherited)
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["escaped"] is True, (told, done.stderr)


@everywhere
def test_network_attacks_are_contained(sandbox: str):
    found = on_the_ground(sandbox)
    assert found.keys() == {attack.name for attack in NETWORK_ATTACKS}
    assert {name: told["loot"] for name, told in found.items() if told["escaped"]} == {}


def test_without_a_sandbox_network_attacks_succeed():
    found = on_the_ground("none")
    assert found.keys() == {attack.name for attack in NETWORK_ATTACKS if attack.plain}
    assert {name: told["loot"] for name, told in found.items() if not told["escaped"]} == {}


@everywhere
async def test_a_socket_that_is_a_file_with_network(sandbox: str, make_call: MakeCall):
    """A network is no way to the container engine or the database of the node, which know its user."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        place = Path(folder, "socket")
        server.bind(str(place))
        server.listen()
        place.parent.chmod(0o755)
        place.chmod(0o777)
        code = f"import socket\nsocket.socket(socket.AF_UNIX).connect({str(place)!r})\nprint('reached')"
        scripts = scripts_in(sandbox, ScriptSetting(network=True))
        assert (await send(scripts, make_call(python(code, network=True)))).error == "exit code 1"
        user: dict[str, Any] = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
        plain = subprocess.run([PYTHON, "-c", code], capture_output=True, cwd="/", **user)
        assert plain.stdout == b"reached\n", plain.stderr


def test_there_are_at_least_forty():
    assert len({attack.name for attack in (*ATTACKS, *NETWORK_ATTACKS)}) == len(ATTACKS) + len(NETWORK_ATTACKS) >= 40


# exhaustion


async def run(sandbox: str, make_call: MakeCall, code: str, **fields: Any) -> Outcome:
    """Within a time that a machine under load keeps, too."""
    async with asyncio.timeout(40):
        return await send(scripts_in(sandbox), make_call(python(code, **fields)))


@in_namespaces
async def test_a_fork_bomb(sandbox: str, make_call: MakeCall):
    """It uses up its own processes, not those of this machine; its end is the end of all of them."""
    code = (
        "import os, sys, time\n"
        "count = 0\n"
        "try:\n    while True:\n        if not os.fork(): time.sleep(600)\n        count += 1\n"
        "except OSError: pass\n"
        "print(count)"
    )
    before = len(psutil.pids())
    outcome = await run(sandbox, make_call, code)
    assert 0 < outcome.detail["result"] < 64
    await until(lambda: len(psutil.pids()) < before + 40)


@everywhere
async def test_threads_without_end(sandbox: str, make_call: MakeCall):
    code = (
        "import threading, time\nthreading.stack_size(1 << 20)\ncount = 0\n"
        "try:\n    while count < 100_000:\n"
        "        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n        count += 1\n"
        "except RuntimeError: pass\nprint(count, flush=True)\nimport os; os._exit(0)"
    )
    outcome = await run(sandbox, make_call, code, memory="128M")
    assert outcome.detail["result"] < 2000


@everywhere
async def test_a_memory_bomb(sandbox: str, make_call: MakeCall):
    outcome = await run(sandbox, make_call, "x = bytearray(1 << 20)\nwhile True: x = x + x", memory="64M")
    assert outcome.error == "out of memory (limit 64 MB)"


@everywhere
async def test_timers_without_end(sandbox: str, make_call: MakeCall):
    """The kernel counts them for all programs of a user together: whoever has them all keeps the others from any."""
    code = (
        "import ctypes\nlibc, timer, count = ctypes.CDLL(None), ctypes.c_int(), 0\n"
        "while count < 5000 and not libc.timer_create(1, None, ctypes.byref(timer)): count += 1\nprint(count)"
    )
    assert (await run(sandbox, make_call, code)).detail["result"] <= 256


async def test_memory_of_many_processes_together(make_call: MakeCall):
    code = (
        "import os, time\n"
        "for _ in range(8):\n    if not os.fork():\n        x = bytearray(40 << 20)\n        time.sleep(600)\n"
        "ends = [os.wait()[1] for _ in range(1)]\nraise SystemExit(7)"
    )
    outcome = await run("cgroup", make_call, code, memory="128M")
    assert outcome.error == "out of memory (limit 128 MB)"


@in_namespaces
async def test_memory_that_is_shared(sandbox: str, make_call: MakeCall):
    code = "import mmap\nm = mmap.mmap(-1, 1 << 30)\nfor at in range(0, 1 << 30, 4096): m[at] = 1\nprint('held')"
    outcome = await run(sandbox, make_call, code, memory="64M")
    assert not outcome.ok


@everywhere
async def test_memory_as_files(sandbox: str, make_call: MakeCall):
    code = (
        "import os\nfor n in range(40):\n    f = os.memfd_create('x')\n"
        "    for _ in range(30): os.write(f, bytes(1 << 20))\nprint('held')"
    )
    outcome = await run(sandbox, make_call, code, memory="64M")
    assert not outcome.ok


@in_namespaces
@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
async def test_a_disk_is_not_filled(sandbox: str, place: str, make_call: MakeCall):
    code = (
        "import os\nn = 0\n"
        f"while n < 2000:\n    open('{place}/' + str(n), 'wb').write(bytes(1 << 20)); n += 1\nprint('filled')"
    )
    outcome = await run(sandbox, make_call, code, memory="64M")
    assert not outcome.ok
    assert outcome.detail["exit_code"] in (1, -9)


@in_namespaces
async def test_one_huge_file(sandbox: str, make_call: MakeCall):
    code = "f = open('/tmp/x', 'wb'); f.truncate(1 << 40); print('made')"
    outcome = await run(sandbox, make_call, code, memory="64M")
    assert not outcome.ok


async def test_files_without_number(make_call: MakeCall):
    code = "import os\nfor n in range(1_000_000): os.close(os.open(f'/tmp/{n}', os.O_CREAT))\nprint('made')"
    outcome = await run("cgroup", make_call, code, memory="32M")
    assert not outcome.ok


@everywhere
async def test_a_flood_of_output(sandbox: str, make_call: MakeCall, log: Log):
    code = "import os\nfor _ in range(200): os.write(1, b'x' * 100_000)\nos.write(2, b'end')"
    outcome = await run(sandbox, make_call, code)
    assert outcome.ok
    assert len(log.text) < 9_000_000
    assert "output truncated" in log.text


@everywhere
async def test_output_without_end_is_stopped(sandbox: str, make_call: MakeCall, log: Log):
    scripts = scripts_in(sandbox, grace=0.05)
    running = asyncio.ensure_future(send(scripts, make_call(python("while True: print('x' * 1000)"))))
    await until(lambda: log.text)
    running.cancel()
    await asyncio.wait([running], timeout=30)
    assert running.cancelled()


@everywhere
async def test_one_that_ignores_every_signal(sandbox: str, make_call: MakeCall, log: Log):
    code = (
        "import signal, time\n"
        "for n in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(n, signal.SIG_IGN)\n"
        "print('ready')\nwhile True:\n    try: time.sleep(600)\n    except BaseException: pass"
    )
    running = asyncio.ensure_future(send(scripts_in(sandbox, grace=0.05), make_call(python(code))))
    await until(lambda: log.text == "ready\n")
    running.cancel()
    await asyncio.wait([running], timeout=30)
    assert running.cancelled()


@in_namespaces
async def test_a_daemon_does_not_outlive_its_run(sandbox: str, make_call: MakeCall):
    """Forked twice, in a session of its own, with everything closed: on other days it would be nobody's child."""
    mark = f"onthedot-daemon-{time.monotonic_ns()}"
    code = (
        "import os, sys, time\n"
        "if not os.fork():\n    os.setsid()\n    if not os.fork():\n"
        f"        os.execv('/bin/sh', ['sh', '-c', 'trap \"\" TERM HUP; : {mark}; sleep 30'])\n"
        "    os._exit(0)\ntime.sleep(0.2)\nprint('left')"
    )
    outcome = await run(sandbox, make_call, code)
    assert outcome.ok
    assert [found for found in psutil.process_iter(["cmdline"]) if mark in " ".join(found.info["cmdline"] or [])] == []


@in_namespaces
async def test_a_child_that_keeps_the_output_open_does_not_hold_up_the_run(sandbox: str, make_call: MakeCall):
    code = "import os, time\nif not os.fork(): time.sleep(600)\nprint('done')"
    assert (await run(sandbox, make_call, code)).ok


@in_namespaces
async def test_processors_are_shared_out(sandbox: str, make_call: MakeCall):
    """Half a processor by cgroup; one by affinity, which is as fine as it gets."""
    code = (
        "import os, time\nend = time.monotonic() + 1\n"
        "children = [os.fork() for _ in range(1)]\n"
        "while time.monotonic() < end: pass\n"
        "if children[0]:\n    os.wait()\n    t = os.times()\n"
        "    print(t.user + t.system + t.children_user + t.children_system)"
    )
    used = (await run(sandbox, make_call, code, cpus=0.5)).detail["result"]
    assert used < (0.9 if sandbox == "cgroup" else 1.4)


@in_namespaces
async def test_the_files_of_another_run(sandbox: str, make_call: MakeCall):
    leave = (
        "import os\nfor p in ('/tmp/left', '/dev/shm/left'): open(p, 'w').write('x')\nprint(len(os.listdir('/tmp')))"
    )
    assert (await run(sandbox, make_call, leave)).detail["result"] == 1
    find = "import json, os; print(json.dumps(os.listdir('/tmp') + os.listdir('/dev/shm')))"
    assert (await run(sandbox, make_call, find)).detail["result"] == []


@in_namespaces
async def test_another_run_at_the_same_time(sandbox: str, make_call: MakeCall, log: Log):
    waits = python("import time\nopen('/tmp/mine', 'w').write('x')\nprint('ready')\ntime.sleep(600)")
    running = asyncio.ensure_future(send(scripts_in(sandbox), make_call(waits)))
    await until(lambda: "ready" in log.text)
    look = (
        "import json, os\n"
        "print(json.dumps([len([p for p in os.listdir('/proc') if p.isdecimal()]), os.listdir('/tmp')]))"
    )
    processes, files = (await run(sandbox, make_call, look)).detail["result"]
    assert (processes, files) == (2, []), "itself and its init"
    running.cancel()
    await asyncio.wait([running])


@everywhere
async def test_output_that_imitates_us(sandbox: str, make_call: MakeCall):
    """Nothing that a script prints, or writes to any descriptor it finds, is taken for what only its sandbox tells."""
    code = (
        'import os\ntold = b\'{ "child-pid": 1 }\\n{ "exit-code": 0 }\\n\'\n'
        "for n in range(1, 1000):\n    try: os.write(n, told)\n    except OSError: pass\n"
        'print(\'{"kind": "ok", "exit_code": 0}\')\nraise SystemExit(3)'
    )
    outcome = await run(sandbox, make_call, code)
    assert (outcome.kind, outcome.error) == ("error", "exit code 3")


@everywhere
async def test_a_filter_cannot_be_taken_off(sandbox: str, make_call: MakeCall):
    code = "import ctypes\nlibc = ctypes.CDLL(None)\nprint([libc.prctl(22, 0, 0, 0, 0), libc.prctl(21, 0, 0, 0, 0)][0])"
    assert (await run(sandbox, make_call, code)).detail["result"] == -1


@everywhere
async def test_a_script_that_closes_everything(sandbox: str, make_call: MakeCall):
    code = "import os\nos.closerange(0, 1000)\nwhile True: os.stat('/')"
    running = asyncio.ensure_future(send(scripts_in(sandbox, grace=0.05), make_call(python(code))))
    await asyncio.wait([running], timeout=0.5)
    running.cancel()
    await asyncio.wait([running], timeout=30)
    assert running.cancelled()


async def test_processes_cannot_be_started_without_namespaces(make_call: MakeCall):
    """Where nothing would end them with the script."""
    for code in ("import os; os.fork()", "import subprocess; subprocess.run(['/bin/true'])"):
        outcome = await run("landlock", make_call, code)
        assert outcome.error == "exit code 1"


def test_the_kind_knows_no_way_without_a_sandbox():
    """`send` starts nothing by itself: a script is started by a sandbox or not at all."""
    source = Path(sys.modules[Scripts.__module__].__file__ or "").read_text()
    assert "spawn" not in source
    assert "subprocess" not in source
