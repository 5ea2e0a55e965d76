"""Scripts in containers, of a real engine: what they get, how they end, and that none gets out.

The attempts of `attacks.py` are made here, too: all in one container, each by a process of its own, because an engine
takes a second for each. Those on the network run in a namespace with nothing but `lo`, with an engine of its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from onthedot.model.run import Outcome
from onthedot.settings import ContainerSetting, ScriptSetting
from onthedot.targets.container.kind import Containers
from onthedot.targets.container_engine import deadline
from onthedot.targets.container_engine.access import EngineAddress
from onthedot.targets.script import kind as script_kind
from onthedot.targets.script import probe
from onthedot.targets.script.engine_creation import EngineChoice
from onthedot.targets.script.engine_sandbox import EngineSandbox
from onthedot.targets.script.kind import Scripts
from onthedot.targets.script.probe import NoSandbox
from tests.services.container_engine import EngineServer, running_engine
from tests.services.debian import ProgramMissing
from tests.services.missing import missing
from tests.services.python_image import PYTHON_IMAGE, import_python
from tests.services.waiting import until
from tests.targets.attack_ground import on_the_ground
from tests.targets.attacks import ATTACKS, NETWORK_ATTACKS, code_of, one_by_one
from tests.targets.conftest import SLOT, Log, MakeCall
from tests.targets.sandboxes import NoObjects, python, scripts_by
from tests.targets.sending import NotBegun, send

# The first test may have to install the engine.
pytestmark = pytest.mark.timeout(300)
OURS = "0123456789abcdef"


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineServer]:
    try:
        with running_engine() as server:
            import_python(server)
            yield server
    except ProgramMissing as why:
        missing(why)


def kind_of(engine: EngineServer, **options: Any) -> Scripts:
    kind = scripts_by(engine, **options)
    kind.belong_to(OURS)
    return kind


@pytest.fixture
async def scripts(engine: EngineServer) -> AsyncIterator[Scripts]:
    async with kind_of(engine) as kind:
        yield kind
    assert engine.containers() == {}, "nothing is left of any script"


async def run(scripts: Scripts, make_call: MakeCall, code: str, **fields: Any) -> Outcome:
    async with asyncio.timeout(60):
        return await send(scripts, make_call(python(code, **fields)))


# attempts to get out

ABOUT_ITS_OWN_FILE = [attack for attack in ATTACKS if "__file__" in attack.body]


async def test_no_attempt_gets_out(scripts: Scripts, make_call: MakeCall, prey: dict[str, Any]):
    attacks = [attack for attack in ATTACKS if attack not in ABOUT_ITS_OWN_FILE]
    outcome = await send(scripts, make_call(python(one_by_one(attacks)), params=prey))
    found = outcome.detail["result"]
    assert found.keys() == {attack.name for attack in attacks}
    assert {name: told["loot"] for name, told in found.items() if told["escaped"]} == {}
    assert len(found) >= 40


@pytest.mark.parametrize("attack", ABOUT_ITS_OWN_FILE, ids=lambda attack: attack.name)
async def test_its_own_file_is_all_it_has_and_can_not_be_changed(attack, scripts, make_call, prey):
    outcome = await send(scripts, make_call(python(code_of(attack)), params=prey))
    assert outcome.detail["result"]["escaped"] is False, outcome


async def test_attempts_on_the_network():
    found = on_the_ground("engine")
    assert found.keys() == {attack.name for attack in NETWORK_ATTACKS}
    assert {name: told["loot"] for name, told in found.items() if told["escaped"]} == {}


# attempts to use up the machine


async def test_a_fork_bomb_uses_up_its_own_processes(scripts: Scripts, make_call: MakeCall):
    code = (
        "import os, time\ncount = 0\n"
        "try:\n    while True:\n        if not os.fork(): time.sleep(600)\n        count += 1\n"
        "except OSError: pass\nprint(count)"
    )
    assert 0 < (await run(scripts, make_call, code)).detail["result"] < 64


async def test_memory_and_files_count_as_memory(scripts: Scripts, make_call: MakeCall):
    bomb = "x = bytearray(1 << 20)\nwhile True: x = x + x"
    fills = "n = 0\nwhile n < 2000:\n    open(f'/tmp/{n}', 'wb').write(bytes(1 << 20)); n += 1\nprint('filled')"
    outcome, filled = await asyncio.gather(
        run(scripts, make_call, bomb, memory="64M"),
        send(scripts, make_call(python(fills, memory="64M"), run_id="8-1")),
    )
    assert outcome.error == "out of memory (limit 64 MB)"
    assert not filled.ok


async def test_limits_of_one_process(scripts: Scripts, make_call: MakeCall):
    names = "FSIZE", "NOFILE", "CORE"
    code = f"import resource\nprint([resource.getrlimit(getattr(resource, 'RLIMIT_' + n))[1] for n in {names}])"
    assert (await run(scripts, make_call, code, memory="64M")).detail["result"] == [64 << 20, 256, 0]


async def test_a_flood_of_output(scripts: Scripts, make_call: MakeCall, log: Log):
    assert (await run(scripts, make_call, "import os\nfor _ in range(100): os.write(1, b'x' * 100_000)")).ok
    assert len(log.text) < 9_000_000
    assert "output truncated" in log.text


# what it gets, and how it ends


async def test_params_variables_arguments_and_the_last_line_as_the_result(scripts, make_call, log):
    code = (
        "import json, os, sys\nprint('to the log')\nprint('and this', file=sys.stderr)\n"
        "told = [len(json.load(sys.stdin)['day']), os.environ['ONTHEDOT_RUN_ID'], os.environ['MODE'], sys.argv[1:]]\n"
        "print(json.dumps([*told, os.getuid(), os.getcwd(), os.listdir('/tmp')]))"
    )
    fields = {"args": ["--all"], "env": {"MODE": "fast"}}
    call = make_call(python(code, **fields), params={"day": "ä" * 300_000})
    outcome = await send(scripts, call)
    result = [300_000, call.run_id, "fast", ["--all"], 65534, "/tmp", []]
    assert outcome.detail == {"exit_code": 0, "result": result}, outcome
    assert "to the log" in log.text
    assert "and this" in log.text


@pytest.mark.parametrize(
    ("code", "error"),
    [("raise SystemExit(3)", "exit code 3"), ("import os; os.kill(os.getpid(), 11)", "killed by SIGSEGV")],
)
async def test_every_other_end_is_an_error(scripts: Scripts, make_call: MakeCall, code: str, error: str):
    assert (await run(scripts, make_call, code)).error == error


async def test_cancelled_it_is_asked_and_then_killed(engine: EngineServer, make_call: MakeCall, log: Log):
    asked = "import signal, sys, time\nsignal.signal(15, lambda *_: print('asked', flush=True))\nprint('ready')\n"
    async with kind_of(engine, grace=0.5) as scripts:
        running = asyncio.ensure_future(send(scripts, make_call(python(f"{asked}while True: time.sleep(600)"))))
        await until(lambda: "ready" in log.text)
        running.cancel()
        await asyncio.wait([running], timeout=30)
        assert running.cancelled()
    assert "asked" in log.text
    assert engine.containers() == {}


async def test_cancelled_while_it_starts_nothing_is_left(engine: EngineServer, make_call: MakeCall):
    async with kind_of(engine) as scripts:
        running = asyncio.ensure_future(send(scripts, make_call(python("import time; time.sleep(600)"))))
        await until(lambda: engine.containers())
        running.cancel()
        await asyncio.wait([running], timeout=30)
        assert running.cancelled()
        await until(lambda: engine.containers() == {})


# what a node that was killed leaves behind


def left(engine: EngineServer, name: str = f"script-7-{SLOT}-1", installation: str = OURS) -> None:
    labels = {"onthedot.installation": installation, "onthedot.kind": "script", "onthedot.seconds": "600"}
    body = {"Image": PYTHON_IMAGE, "Cmd": ["sleep", "600"], "Labels": labels, "HostConfig": {"NetworkMode": "none"}}
    engine.ask("POST", f"/containers/create?name={name}", json.dumps(body).encode())
    engine.ask("POST", f"/containers/{name}/start")


async def test_the_next_who_runs_the_try_replaces_its_container(engine, scripts, make_call):
    left(engine)
    assert (await run(scripts, make_call, "print(1)")).detail["result"] == 1


async def test_a_container_of_another_installation_is_left_alone(engine, scripts, make_call):
    left(engine, installation="another")
    outcome = await run(scripts, make_call, "print(1)")
    assert outcome.error == f"the container script-7-{SLOT}-1 is not of this installation"
    engine.ask("DELETE", f"/containers/script-7-{SLOT}-1?force=1")


async def test_when_the_try_is_over_it_is_swept(engine: EngineServer, scripts: Scripts):
    left(engine, "script-8-1-2")
    left(engine, "script-8-2-1", installation="another")
    assert list(await scripts.inventory()) == ["8-1-2"]
    await scripts.remove("8-1-2")
    assert list(engine.containers()) == ["script-8-2-1"]
    engine.ask("DELETE", "/containers/script-8-2-1?force=1")


async def test_the_kind_container_does_not_take_it_for_its_own(engine: EngineServer):
    left(engine, "script-8-3-1")
    async with Containers(ContainerSetting(socket=engine.url, images=("*",))) as containers:
        containers.belong_to(OURS)
        assert list(await containers.inventory()) == []
    engine.ask("DELETE", "/containers/script-8-3-1?force=1")


def test_only_where_containers_may_be_left_there_is_something_to_sweep(engine: EngineServer):
    choice = EngineChoice(EngineAddress(engine.url), PYTHON_IMAGE)
    assert Scripts(ScriptSetting(), NoObjects(), choice=choice).profile.leaves_behind
    assert not Scripts(ScriptSetting(), NoObjects()).profile.leaves_behind


async def test_it_has_a_deadline_of_its_own(engine: EngineServer, make_call: MakeCall, log: Log, monkeypatch):
    monkeypatch.setattr(deadline, "AFTER", 0.5)
    monkeypatch.setattr(script_kind, "GRACE", 0.0)
    kind = kind_of(engine)
    running = asyncio.ensure_future(send(kind, make_call(python("import time; time.sleep(600)"), timeout=1.0)))
    outcome = await asyncio.wait_for(running, 30)  # nobody stops it here
    assert outcome.error == "killed by SIGKILL"


# without the engine


async def test_without_the_engine_scripts_wait_and_go_on_when_it_is_back(engine, scripts, make_call, log):
    code = "import time\nprint('ready')\ntime.sleep(600)"
    running = asyncio.ensure_future(send(scripts, make_call(python(code))))
    await until(lambda: "ready" in log.text)
    assert scripts.capabilities() == ["script:python"]
    engine.stop(kill=True)
    await until(lambda: scripts.capabilities() == [])
    with pytest.raises(NotBegun):
        await send(scripts, make_call(python("print(1)"), run_id="8-1"))
    engine.start()
    outcome = await asyncio.wait_for(running, 60)
    assert outcome.error == "the container engine went away while the script ran"
    await until(lambda: scripts.capabilities() == ["script:python"])
    assert (await send(scripts, make_call(python("print(1)"), run_id="8-1"))).ok


# which sandbox is taken


@pytest.fixture
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "bubblewrap_program", lambda: None)
    monkeypatch.setattr(probe, "abi", lambda: 0)
    monkeypatch.setattr(probe, "_known", {})


async def test_it_is_taken_where_nothing_else_works_and_the_doctor_says_so(engine: EngineServer, nothing_else: None):
    choice = EngineChoice(EngineAddress(engine.url), PYTHON_IMAGE)
    setting = ScriptSetting(interpreters={"python": ("/usr/bin/python3",), "node": ("/usr/bin/node",)})
    kind = Scripts(setting, NoObjects(), choice=choice)
    (found,) = await kind.diagnose()
    assert found.found.startswith(f"python in containers of {PYTHON_IMAGE} (Docker ")
    assert "node: /usr/bin/node does not run in the sandbox: a trial ended with 127" in found.found
    async with kind:
        assert kind.capabilities() == ["script:python"]


async def test_what_else_works_is_taken_first(engine: EngineServer):
    assert not isinstance(
        await probe.find_sandbox(EngineChoice(EngineAddress(engine.url), PYTHON_IMAGE)), EngineSandbox
    )


@pytest.mark.parametrize(
    ("socket", "image", "why"),
    [
        (None, "registry.test/none:1", "does not have the image registry.test/none:1: pull it first"),
        ("unix:///nobody.sock", PYTHON_IMAGE, "No such file or directory"),
    ],
)
async def test_why_it_can_not_be_taken_is_said(engine, nothing_else, socket, image, why):
    found = await probe.find_sandbox(EngineChoice(EngineAddress(socket or engine.url), image))
    assert isinstance(found, NoSandbox)
    assert "bubblewrap is not installed; Landlock: the kernel has ABI 0" in found.why
    assert why in found.why


async def test_an_engine_that_is_started_after_the_node_is_found(engine, nothing_else, monkeypatch, tmp_path):
    monkeypatch.setattr(script_kind, "LOOK_AGAIN", 0.1)
    place = tmp_path / "engine.sock"
    choice = EngineChoice(EngineAddress(f"unix://{place}"), PYTHON_IMAGE)
    async with Scripts(ScriptSetting(), NoObjects(), choice=choice) as kind:
        assert kind.capabilities() == []
        place.symlink_to(engine.socket)
        await until(lambda: kind.capabilities() == ["script:python"])
