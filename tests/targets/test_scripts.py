"""Scripts as real processes, in each sandbox."""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from onthedot.errors import Invalid, NotAvailable
from onthedot.model.run import Outcome
from onthedot.model.script import object_name, script_id
from onthedot.model.targets import ScriptTarget
from onthedot.objects import open_objects
from onthedot.settings import ScriptSetting, Settings
from onthedot.targets import build_targets
from onthedot.targets.script.kind import Scripts
from onthedot.targets.script.probe import REMEDY, NoSandbox, Probed, probe
from tests.services.waiting import until
from tests.targets.conftest import Log, MakeCall
from tests.targets.processes import gone
from tests.targets.sandboxes import SANDBOXES, NoObjects, python, sandbox_named, scripts_in
from tests.targets.sending import send


@pytest.fixture(params=SANDBOXES)
def scripts(request: pytest.FixtureRequest) -> Scripts:
    return scripts_in(request.param)


@pytest.fixture
def in_namespaces() -> Scripts:
    """For what a script can't do without processes or files of its own."""
    return scripts_in("cgroup")


async def test_the_last_json_line_is_the_result(scripts: Scripts, make_call: MakeCall, log: Log):
    code = 'import json\nprint("working")\nprint(json.dumps({"rows": [1, 2]}))\n'
    outcome = await send(scripts, make_call(python(code)))
    assert outcome == Outcome(kind="ok", detail={"exit_code": 0, "result": {"rows": [1, 2]}})
    assert log.text == 'working\n{"rows": [1, 2]}\n'


@pytest.mark.parametrize("code", ["print('no JSON here')", "pass", "print('{\"a\": 1}'); print('done')", "print('{')"])
async def test_without_json_on_the_last_line_it_is_done_without_a_result(make_call: MakeCall, code: str):
    assert await send(scripts_in("cgroup"), make_call(python(code))) == Outcome(kind="ok", detail={"exit_code": 0})


async def test_a_result_on_standard_error_is_none(in_namespaces: Scripts, make_call: MakeCall, log: Log):
    outcome = await send(in_namespaces, make_call(python("import sys; print('{\"a\": 1}', file=sys.stderr)")))
    assert outcome == Outcome(kind="ok", detail={"exit_code": 0})
    assert log.text == '{"a": 1}\n'


async def test_a_line_that_is_too_long_is_no_result(in_namespaces: Scripts, make_call: MakeCall):
    outcome = await send(in_namespaces, make_call(python("import json; print(json.dumps('x' * 100_000))")))
    note = "not kept: the last line exceeds the limit of 65536 bytes"
    assert outcome == Outcome(kind="ok", detail={"exit_code": 0, "result_note": note})


async def test_params_are_on_standard_input_and_in_the_environment(scripts: Scripts, make_call: MakeCall):
    code = "import json, os, sys; print(json.dumps([json.load(sys.stdin), json.loads(os.environ['ONTHEDOT_PARAMS'])]))"
    params = {"day": "§ Monday", "n": [1, 2]}
    outcome = await send(scripts, make_call(python(code), params=params))
    assert outcome.detail["result"] == [params, params]


async def test_long_params_are_on_standard_input_alone(scripts: Scripts, make_call: MakeCall):
    code = (
        "import json, os, sys; print(json.dumps([len(json.load(sys.stdin)['text']), 'ONTHEDOT_PARAMS' in os.environ]))"
    )
    outcome = await send(scripts, make_call(python(code), params={"text": "x" * 500_000}))
    assert outcome.detail["result"] == [500_000, False]


async def test_it_has_its_own_environment_and_no_other(
    scripts: Scripts, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SECRET_OF_THE_NODE", "s")
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    call = make_call(python(code, env={"OWN": "o", "HOME": "/elsewhere"}), key="nightly", attempt=4)
    seen = (await send(scripts, call)).detail["result"]
    ours = {name: value for name, value in seen.items() if name.startswith("ONTHEDOT_")}
    assert ours == {
        "ONTHEDOT_RUN_ID": call.run_id,
        "ONTHEDOT_JOB_ID": "7",
        "ONTHEDOT_JOB_KEY": "nightly",
        "ONTHEDOT_SCHEDULED_FOR": "2025-11-15T19:22:47.890Z",
        "ONTHEDOT_ATTEMPT": "4",
        "ONTHEDOT_PARAMS": "{}",
    }
    rest = {name: value for name, value in seen.items() if name not in ours and name not in ("PWD", "LC_CTYPE")}
    assert rest == {
        "HOME": "/elsewhere",
        "LANG": "C.UTF-8",
        "OWN": "o",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "USER": "script",
    }


async def test_arguments(scripts: Scripts, make_call: MakeCall):
    target = python("import json, sys; print(json.dumps(sys.argv[1:]))", args=["--day", "$HOME; x", "", "é"])
    assert (await send(scripts, make_call(target))).detail["result"] == ["--day", "$HOME; x", "", "é"]


@pytest.mark.parametrize(
    ("code", "error", "exit_code"),
    [
        ("raise SystemExit(3)", "exit code 3", 3),
        ("1/0", "exit code 1", 1),
        ("this is no Python", "exit code 1", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV", -11),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL", -9),
    ],
)
async def test_every_other_end_is_an_error_to_be_tried_again(
    scripts: Scripts, make_call: MakeCall, code: str, error: str, exit_code: int
):
    outcome = await send(scripts, make_call(python(code)))
    assert outcome == Outcome(kind="error", retryable=True, error=error, detail={"exit_code": exit_code})


async def test_a_traceback_is_in_the_log(scripts: Scripts, make_call: MakeCall, log: Log):
    await send(scripts, make_call(python("print('before')\nraise ValueError('why')")))
    assert log.text.startswith("before\n")
    assert log.text.endswith("ValueError: why\n")


async def test_out_of_memory(scripts: Scripts, make_call: MakeCall):
    code = "held = []\nwhile True: held.append(bytearray(1 << 20))"
    outcome = await send(scripts, make_call(python(code, memory="64M")))
    assert outcome.error == "out of memory (limit 64 MB)"
    assert outcome.retryable
    assert outcome.detail["out_of_memory"] is True


async def test_too_many_processes(make_call: MakeCall):
    code = "import os, time\nfor _ in range(1000):\n    if not os.fork(): time.sleep(60)"
    outcome = await send(scripts_in("cgroup"), make_call(python(code)))
    assert outcome.error == "too many processes (limit 64); exit code 1"


async def test_output_comes_while_it_runs(scripts: Scripts, make_call: MakeCall, log: Log):
    code = "import time\nprint('first')\ntime.sleep(600)"
    running = asyncio.ensure_future(send(scripts, make_call(python(code))))
    await until(lambda: log.text == "first\n")
    assert not running.done()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()


async def test_cancelling_asks_first(scripts: Scripts, make_call: MakeCall, log: Log):
    code = (
        "import signal, sys, time\n"
        "def tidy(*_):\n    print('tidied'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, tidy)\nprint('ready')\ntime.sleep(600)"
    )
    running = asyncio.ensure_future(send(scripts, make_call(python(code))))
    await until(lambda: log.text == "ready\n")
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert log.text == "ready\ntidied\n"


async def test_it_is_killed_if_asking_does_not_help(make_call: MakeCall, log: Log):
    for name in SANDBOXES:
        scripts = scripts_in(name, grace=0.05)
        code = "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready')\ntime.sleep(600)"
        running = asyncio.ensure_future(send(scripts, make_call(python(code))))
        log.portions.clear()
        await until(lambda: log.text == "ready\n")
        running.cancel()
        await asyncio.wait([running], timeout=20)
        assert running.cancelled(), name


async def test_a_second_cancel_does_not_wait(scripts: Scripts, make_call: MakeCall, log: Log):
    scripts._grace = 600
    code = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready')\ntime.sleep(600)"
    running = asyncio.ensure_future(send(scripts, make_call(python(code))))
    await until(lambda: log.text == "ready\n")
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running], timeout=20)
    assert running.cancelled()


async def test_cancelled_while_it_starts_nothing_is_left(scripts: Scripts, make_call: MakeCall):
    before = {child.pid for child in psutil.Process().children()}
    for turns in range(12):
        running = asyncio.ensure_future(send(scripts, make_call(python("import time; time.sleep(600)"))))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running], timeout=20)
        assert running.cancelled()
    await until(lambda: {child.pid for child in psutil.Process().children()} <= before)


async def test_no_descriptor_and_no_cgroup_is_left(scripts: Scripts, make_call: MakeCall):
    await send(scripts, make_call(python("pass")))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for code in ("print('x')", "1/0", "import os; os.kill(os.getpid(), 9)"):
        await send(scripts, make_call(python(code)))
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    cgroups = getattr(sandbox_named("cgroup"), "cgroups", None)
    assert cgroups is not None
    assert [place for parent in cgroups.parents() for place in parent.glob(f"{cgroups._name}-*")] == []


async def test_ten_at_once(scripts: Scripts, make_call: MakeCall):
    calls = [make_call(python(f"print({number})")) for number in range(10)]
    outcomes = await asyncio.gather(*(send(scripts, call) for call in calls))
    assert [outcome.detail["result"] for outcome in outcomes] == list(range(10))


async def test_an_uploaded_script_is_read_from_the_object_store(make_call: MakeCall, tmp_path: Path):
    objects = open_objects(str(tmp_path))
    code = b"print(42)"
    await objects.put(object_name(3, script_id(code)), code)
    scripts = scripts_in("cgroup", objects=objects)
    target = ScriptTarget(script=script_id(code))
    assert (await send(scripts, make_call(target, tenant=3))).detail["result"] == 42
    (tmp_path / object_name(3, script_id(code))).unlink()
    assert (await send(scripts, make_call(target, tenant=3))).detail["result"] == 42, "it was kept"
    refused = await send(scripts, make_call(target, tenant=1))
    assert (refused.kind, refused.retryable) == ("error", True)
    assert "not in the object store of this node" in (refused.error or ""), "it is not this tenant's"


async def test_an_object_that_was_changed_is_not_run(make_call: MakeCall, tmp_path: Path):
    objects = open_objects(str(tmp_path))
    script = script_id(b"print(1)")
    await objects.put(object_name(1, script), b"print(2)")
    outcome = await send(scripts_in("cgroup", objects=objects), make_call(ScriptTarget(script=script)))
    assert outcome.kind == "error"
    assert "is damaged" in (outcome.error or "")


async def test_another_interpreter(make_call: MakeCall):
    setting = ScriptSetting(interpreters={"shell": ("/bin/sh",), "python": ("/usr/bin/python3",)})
    for name in ("cgroup", "rlimits", "landlock"):
        target = ScriptTarget(code='echo "[$1, $(( 1 + 1 ))]"', interpreter="shell", args=["7"])
        outcome = await send(scripts_in(name, setting), make_call(target))
        assert outcome.detail.get("result") == [7, 2], (name, outcome)


async def test_the_python_of_this_environment_as_an_interpreter(make_call: MakeCall):
    """A virtual environment, and perhaps in a folder that only its owner may enter: as root, it is said so."""
    setting = ScriptSetting(interpreters={"venv": (sys.executable,)})
    probed = probe(setting.interpreters)
    scripts = Scripts(setting, NoObjects(), probed=probed)
    target = python("import msgspec, json; print(json.dumps(msgspec.__name__))", interpreter="venv")
    outcome = await send(scripts, make_call(target))
    if "venv" in probed.broken:
        assert outcome.kind == "refused"
        assert "does not run in the sandbox" in (outcome.error or "")
    else:
        assert outcome.detail["result"] == "msgspec"


def test_what_the_operator_did_not_list_is_refused():
    scripts = scripts_in("cgroup", ScriptSetting(interpreters={"python": ("/usr/bin/python3",)}, memory=128 << 20))
    scripts.check(python("x", memory="128M"))
    for target, path, accepted in (
        (python("x", interpreter="bash", memory="64M"), "target.interpreter", "python"),
        (python("x", network=True, memory="64M"), "target.network", "network = true in [scripts]"),
        (python("x", memory="129M"), "target.memory", "at most 128 MB"),
    ):
        with pytest.raises(Invalid) as caught:
            scripts.check(target)
        (problem,) = caught.value.problems
        assert problem.path == path
        assert accepted in (problem.accepted or "")


async def test_without_a_sandbox_nothing_runs(make_call: MakeCall):
    scripts = Scripts(ScriptSetting(), NoObjects(), probed=Probed(NoSandbox("bubblewrap is not installed")))
    assert scripts.capabilities() == []
    with pytest.raises(NotAvailable) as caught:
        scripts.check(python("print(1)"))
    (problem,) = caught.value.problems
    assert problem.message == "not available: no sandbox works on this node (bubblewrap is not installed)"
    assert problem.accepted == REMEDY
    assert "pip install 'onthedot[scripts]'" in REMEDY
    outcome = await send(scripts, make_call(python("print(1)")))
    assert outcome.kind == "refused"
    (told,) = await scripts.diagnose()
    assert (told.found, told.advice) == ("not available: bubblewrap is not installed", REMEDY)


async def test_an_interpreter_that_is_not_installed(make_call: MakeCall):
    setting = ScriptSetting(interpreters={"python": ("/usr/bin/python3",), "lua": ("/no/such/lua",)})
    scripts = Scripts(setting, NoObjects())
    async with scripts:
        assert scripts.capabilities() == ["script:python"]
    with pytest.raises(NotAvailable, match="not available: /no/such/lua is not installed"):
        scripts.check(python("x", interpreter="lua"))
    outcome = await send(scripts, make_call(python("x", interpreter="lua")))
    assert outcome.kind == "refused"
    (told,) = await scripts.diagnose()
    assert "lua: /no/such/lua is not installed" in told.found
    assert told.advice is not None


def test_an_api_node_asks_for_no_sandbox_of_its_own():
    scripts = Scripts(ScriptSetting(), NoObjects(), executes=False, probed=Probed(NoSandbox("not here")))
    scripts.check(python("print(1)"))


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_with_network_it_reaches_what_the_node_reaches(make_call: MakeCall, sandbox: str):
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"7")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        code = f"import socket; print(socket.create_connection(('127.0.0.1', {port})).recv(9).decode())"
        allowed = await send(scripts_in(sandbox, ScriptSetting(network=True)), make_call(python(code, network=True)))
        assert allowed.detail.get("result") == 7, allowed
        without = await send(scripts_in(sandbox, ScriptSetting(network=True)), make_call(python(code)))
        assert without.error == "exit code 1"
        forbidden = await send(scripts_in(sandbox), make_call(python(code, network=True)))
        assert forbidden.kind == "refused"


def test_network_is_a_capability_of_its_own():
    setting = ScriptSetting(network=True)
    assert scripts_in("cgroup", setting).capabilities() == ["script:python", "script:python:network"]
    assert python("x", network=True).capability() == "script:python:network"
    assert scripts_in("cgroup").capabilities() == ["script:python"]


async def test_a_sandbox_that_fails_is_told(make_call: MakeCall, log: Log, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("onthedot.targets.script.bubblewrap_args._SETTINGS", ("\udcff",))
    monkeypatch.setattr("onthedot.targets.script.bubblewrap_args.CODE", "/usr/nowhere")
    outcome = await send(scripts_in("cgroup"), make_call(python("print(1)")))
    assert outcome.kind == "error"
    assert "bubblewrap could not" in (outcome.error or "")
    assert "bwrap: " in log.text


async def test_which_sandbox_is_told(tmp_path: Path):
    """A node enters its targets, and doctor asks for their condition."""
    targets = build_targets(Settings(object_store=str(tmp_path)))
    async with targets:
        assert "script:python" in targets.capabilities()
    assert ["python in bubblewrap, seccomp and" in told.found for told in await targets.diagnose()] == [True]


async def test_nothing_of_a_run_is_in_the_list_of_processes(make_call: MakeCall, log: Log):
    before = psutil.Process().children()
    target = python("print('ready'); import time; time.sleep(600)", env={"OWN": "secret-of-the-run"})
    running = asyncio.ensure_future(send(scripts_in("cgroup"), make_call(target, params={"p": "secret-of-the-run"})))
    await until(lambda: "ready" in log.text)
    (child,) = [child for child in psutil.Process().children() if child not in before]
    assert "secret-of-the-run" not in json.dumps(child.cmdline())
    pids = [child.pid, *(grand.pid for grand in child.children(recursive=True))]
    running.cancel()
    await asyncio.wait([running])
    for pid in pids:
        await until(partial(gone, pid))
    assert len(pids) == 3, "bubblewrap, the init of its namespace, and the script"
