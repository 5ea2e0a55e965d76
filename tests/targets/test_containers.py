"""Containers of a real engine: what they get, how they end, who finds them again, and what happens without it."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from onthedot.model.duration import Duration
from onthedot.model.run import Outcome
from onthedot.model.targets import ContainerTarget
from onthedot.settings import ContainerSetting, RegistrySetting
from onthedot.targets import Call
from onthedot.targets.container import creation
from onthedot.targets.container.kind import Containers
from onthedot.targets.container_engine import deadline
from onthedot.targets.container_engine.access import EngineAddress
from onthedot.targets.contract import Cause, Ended, Handle, Stop
from onthedot.targets.script.engine_creation import EngineChoice
from onthedot.targets.script.engine_sandbox import EngineSandbox
from onthedot.targets.script.limits import ScriptLimits
from onthedot.targets.script.sandbox import Launch
from onthedot.telemetry import Event, subscribe
from tests.services.container_engine import IMAGE, EngineServer, running_engine, running_podman
from tests.services.debian import ProgramMissing
from tests.services.image_registry import running_registry
from tests.services.missing import missing
from tests.services.ports import free_port
from tests.services.waiting import until
from tests.targets.making_certificates import Authority

# The first test may have to install the engine.
pytestmark = pytest.mark.timeout(300)
_numbers = itertools.count(1)
OURS = "0123456789abcdef"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("tls"))
    for name in ("engine", "client"):
        authority.issue(name)
    return authority


@pytest.fixture(scope="module")
def engine(certificates: Authority) -> Iterator[EngineServer]:
    """On a socket, and by TCP for who has a certificate."""
    own = certificates.folder / "engine"
    tls = ("--tlsverify", f"--tlscacert={certificates.file}", f"--tlscert={own}.pem", f"--tlskey={own}.key")
    try:
        with running_engine("-H", f"tcp://127.0.0.1:{free_port()}", *tls) as server:
            yield server
    except ProgramMissing as why:
        missing(why)


class Watched:
    """One call and all that was told of it."""

    def __init__(self, kind: Containers, *command: str, run: str | None = None, **fields: Any) -> None:
        self.log: list[str] = []
        self.begun: list[float] = []
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        target = {name: fields.pop(name) for name in ContainerTarget.__struct_fields__ if name in fields}
        self.call = Call(
            run_id=run or f"7-{next(_numbers)}",
            job_id=7,
            slot=1_763_234_567_890,
            attempt=1,
            target=ContainerTarget(**({"image": IMAGE, "command": list(command), "memory": "32M"} | target)),
            log=self.log.append,
            begun=self.begun.append,
            **fields,
        )
        self.name = f"{self.call.run_id}-{self.call.try_number}"
        self.handle: Handle = kind.start(self.call, time.monotonic(), self.ended.set_result)

    async def outcome(self) -> Outcome:
        outcome = (await asyncio.wait_for(asyncio.shield(self.ended), 60)).outcome
        assert outcome is not None
        return outcome

    async def stopped(self, cause: Cause) -> Ended:
        assert self.handle.stop(cause) is Stop.STOPPING
        return await asyncio.wait_for(asyncio.shield(self.ended), 60)

    @property
    def text(self) -> str:
        return "".join(self.log)

    async def runs(self, engine: EngineServer) -> None:
        await until(lambda: engine.containers().get(self.name) == "running", "it runs")

    async def says(self, words: str) -> None:
        await until(lambda: words in self.text, f"it says {words!r}")


@asynccontextmanager
async def node(engine: EngineServer, installation: str = OURS, **setting: Any) -> AsyncIterator[Containers]:
    given: dict[str, Any] = {"socket": engine.url, "images": ("registry.test/team/*",), "keep": Duration(0)}
    kind = Containers(ContainerSetting(**(given | setting)), capacity=4)
    kind.belong_to(installation)
    async with kind:
        yield kind


@pytest.fixture
async def kind(engine: EngineServer) -> AsyncIterator[Containers]:
    async with node(engine) as kind:
        yield kind


@pytest.fixture
def events() -> Iterator[list[Event]]:
    told: list[Event] = []
    stop = subscribe(told.append)
    yield told
    stop()


SHOW = """
id; grep -E 'CapEff|NoNewPrivs' /proc/self/status; echo nets: $(ls /sys/class/net)
echo "$ONTHEDOT_PARAMS $COLOUR" >&2
echo "{\\"run\\": \\"$ONTHEDOT_RUN_ID\\", \\"params\\": $ONTHEDOT_PARAMS}"
"""


async def test_it_runs_without_privileges_and_its_last_line_is_the_result(engine, kind):
    watched = Watched(kind, "sh", "-c", SHOW, env={"COLOUR": "red"}, params={"day": 1}, timeout=60)
    outcome = await watched.outcome()
    assert outcome.kind == "ok", outcome
    assert outcome.detail == {"exit_code": 0, "result": {"run": watched.call.run_id, "params": {"day": 1}}}
    assert "CapEff:\t0000000000000000" in watched.text
    assert "NoNewPrivs:\t1" in watched.text
    assert "nets: lo\n" in watched.text
    assert '{"day":1} red\n' in watched.text
    found = engine.inspect(watched.name)
    host = found["HostConfig"]
    assert (host["Memory"], host["MemorySwap"], host["NanoCpus"]) == (32 << 20, 32 << 20, 1_000_000_000)
    assert (host["Privileged"], host["Binds"], host["CapDrop"], host["PidsLimit"]) == (False, None, ["ALL"], 512)
    assert (host["NetworkMode"], host["RestartPolicy"]["Name"]) == ("none", "no")
    labels = found["Config"]["Labels"]
    assert labels["onthedot.installation"] == OURS
    assert (labels["onthedot.run"], labels["onthedot.try"]) == (watched.call.run_id, "1")
    assert (labels["onthedot.tenant"], labels["onthedot.seconds"]) == ("1", "70")
    assert found["Mounts"] == []


KILLED = "exit code 137 (SIGKILL; perhaps out of memory, limit 16 MB)"


async def test_how_it_fails(kind):
    failed, oom, absent = (
        Watched(kind, "sh", "-c", "echo oh; exit 3"),
        Watched(kind, "sh", "-c", "dd if=/dev/zero of=/dev/null bs=64M", memory="16M"),
        Watched(kind, "no-such-program"),
    )
    outcome = await failed.outcome()
    assert (outcome.kind, outcome.retryable, outcome.error) == ("error", True, "exit code 3")
    assert failed.text == "oh\n"
    outcome = await oom.outcome()
    # Docker hears of the kernel's kill by another way than of the end, now and then after it.
    assert outcome.error in ("out of memory (limit 16 MB)", KILLED), outcome
    outcome = await absent.outcome()
    assert (outcome.kind, outcome.error) == ("error", "exit code 127 (command not found)")
    assert "no-such-program" in absent.text


async def test_an_image_that_is_not_there(kind):
    never = await Watched(kind, image="registry.test/team/missing:1", pull="never").outcome()
    assert never.error == (
        'image registry.test/team/missing:1 is not on the container engine, and target.pull is "never"'
    )
    assert not never.retryable
    asked = Watched(kind, image="registry.test/team/missing:1")
    pulled = await asked.outcome()
    assert pulled.error is not None
    assert pulled.error.startswith("not started: image registry.test/team/missing:1 can't be pulled: ")
    assert pulled.retryable
    assert asked.text == "pulling image registry.test/team/missing:1\n"


async def test_an_image_is_pulled_and_its_own_command_is_run(engine):
    with running_registry("team/app") as image:
        async with node(engine, images=("127.0.0.1:*/team/*",)) as kind:
            watched = Watched(kind, image=image)
            outcome = await watched.outcome()
            assert outcome.kind == "ok", outcome
            assert watched.text == f"pulling image {image}\npulled\n"
            again = Watched(kind, image=image)
            await again.outcome()
            assert again.text == "pulled\n"


async def test_an_image_is_pulled_with_the_login_of_its_registry(engine, tmp_path, monkeypatch):
    (tmp_path / "password").write_text("pass:word\n")
    with running_registry("team/private", "robot:pass:word") as image:
        host, allowed = image.partition("/")[0], ("127.0.0.1:*/team/*",)
        wrong = RegistrySetting(username="robot", password_env="REGISTRY_PASSWORD")
        async with node(engine, images=allowed) as kind:
            assert "can't be pulled" in ((await Watched(kind, image=image).outcome()).error or "")
        async with node(engine, images=allowed, registries={host: wrong}) as kind:
            absent = (await Watched(kind, image=image).outcome()).error or ""
            assert absent.endswith(f'[containers.registries."{host}"] password_env REGISTRY_PASSWORD is not set')
            (found,) = await kind.diagnose()
            assert "password_env REGISTRY_PASSWORD is not set" in found.found
            monkeypatch.setenv("REGISTRY_PASSWORD", "guessed")
            assert "can't be pulled" in ((await Watched(kind, image=image).outcome()).error or "")
        right = RegistrySetting(username="robot", password_file=str(tmp_path / "password"))
        async with node(engine, images=allowed, registries={host: right}) as kind:
            watched = Watched(kind, image=image)
            assert (await watched.outcome()).ok, watched.text
            assert "pass" not in watched.text


async def test_an_engine_by_tcp_is_asked_over_tls(engine, certificates, tmp_path):
    own, socket = certificates.folder / "client", engine.options[1]
    tls = {"ca": str(certificates.file), "cert": f"{own}.pem", "key": f"{own}.key"}
    async with node(engine, socket=socket, **tls) as kind:
        watched = Watched(kind, "echo", '{"rows": 3}')
        assert (await watched.outcome()).detail["result"] == {"rows": 3}
        (found,) = await kind.diagnose()
        assert socket in found.found
    sandbox = EngineSandbox(EngineChoice(EngineAddress(socket, **tls), IMAGE))
    given: dict[str, Any] = {"argv": ("/bin/cat",), "code": b"", "args": ("-",), "stdin": b"x" * 300_000}
    launch = Launch(limits=ScriptLimits(memory=32 << 20), **given)
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as errors:
        run = await sandbox.start(launch, printed.fileno(), errors.fileno())
        assert await asyncio.wait_for(run.wait(), 30) == 0
        await run.clean_up()
        assert printed.seek(0, 2) == 300_000


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"ca": None, "cert": None, "key": None}, "HTTP request to an HTTPS server"),
        ({"cert": None, "key": None}, "alert"),
        ({"ca": "/none.pem"}, "/none.pem: No such file"),
        ({"key": "{other}"}, "key values mismatch"),
    ],
)
async def test_what_is_wrong_with_tls_is_said(engine, certificates, changes, says):
    own, other = certificates.folder / "client", certificates.folder / "engine.key"
    tls: dict[str, Any] = {"ca": str(certificates.file), "cert": f"{own}.pem", "key": f"{own}.key"}
    tls |= {name: value and value.replace("{other}", str(other)) for name, value in changes.items()}
    (found,) = await Containers(ContainerSetting(socket=engine.options[1], images=("*",), **tls)).diagnose()
    assert says in found.found, found
    assert found.advice is not None


async def test_what_the_operator_does_not_allow_is_not_asked_for(engine, kind):
    engine.ask("POST", f"/images/{IMAGE}/tag?repo=other.test/busybox&tag=1")
    watched = Watched(kind, "true", image="other.test/busybox:1")
    outcome = await watched.outcome()
    assert outcome.kind == "refused"
    assert "not allowed by the operator" in str(outcome.error)
    assert watched.name not in engine.containers()


@pytest.mark.parametrize("cause", ["cancelled", "timeout"])
async def test_stopped_it_gets_a_signal_and_time_to_tidy_up(engine, kind, cause):
    watched = Watched(kind, "sh", "-c", "trap 'echo tidy; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    await watched.says("ready\n")
    ended = await watched.stopped(cause)
    assert (ended.outcome, ended.began) == (None, watched.begun[0])
    assert watched.text == "ready\ntidy\n"
    assert engine.inspect(watched.name)["State"]["Running"] is False


async def test_a_second_stop_kills_what_ignores_the_first(engine, kind):
    watched = Watched(kind, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    await watched.says("ready\n")
    began = time.monotonic()
    watched.handle.stop("cancelled")
    await asyncio.sleep(0)
    watched.handle.stop("cancelled")
    await asyncio.wait_for(watched.ended, 30)
    assert time.monotonic() - began < 8
    assert engine.inspect(watched.name)["State"]["ExitCode"] == 137


async def test_a_node_that_stops_lets_go_of_it_and_the_next_one_goes_on(engine, kind):
    first = Watched(
        kind, "sh", "-c", 'echo one; while ! [ -e /tmp/go ]; do sleep 0.05; done; echo two; echo {\\"n\\":1}'
    )
    await first.says("one\n")
    assert await first.stopped("interrupted") == Ended(None, first.begun[0])
    assert engine.inspect(first.name)["State"]["Running"] is True
    async with node(engine) as other:
        second = Watched(other, run=first.call.run_id, adopted=True)
        await second.says("one\n")
        assert second.begun[0] == pytest.approx(first.begun[0], abs=1.5), "as old as it is"
        started = engine.inspect(first.name)["State"]["StartedAt"]
        touch(engine, first.name, "/tmp/go")
        outcome = await second.outcome()
        assert (outcome.kind, outcome.detail["result"]) == ("ok", {"n": 1})
        assert second.text == 'one\ntwo\n{"n":1}\n', "its log is whole"
        assert engine.inspect(first.name)["State"]["StartedAt"] == started
        third = Watched(other, run=first.call.run_id, adopted=True)
        assert (await third.outcome()).detail["result"] == {"n": 1}, "what has ended is the result"
        assert engine.inspect(first.name)["State"]["StartedAt"] == started, "and is no reason to run it again"


def touch(engine: EngineServer, name: str, path: str) -> None:
    made = engine.ask("POST", f"/containers/{name}/exec", json.dumps({"Cmd": ["dd", "of=" + path, "count=0"]}).encode())
    engine.ask("POST", f"/exec/{made['Id']}/start", b'{"Detach": true}')


async def test_two_who_have_the_same_try_run_one_container(engine, kind):
    async with node(engine) as other:
        both = [Watched(each, "sh", "-c", "sleep 0.5; echo once", run="7-77") for each in (kind, other)]
        outcomes = [await each.outcome() for each in both]
    assert [outcome.kind for outcome in outcomes] == ["ok", "ok"]
    assert [each.text for each in both] == ["once\n", "once\n"]


async def test_what_another_node_created_is_replaced_so_that_its_late_start_starts_nothing(engine, kind):
    """The other node was killed when it had asked for the start, and the engine was slow."""
    first = Watched(kind, "true", may_begin=iter([True, True, False]).__next__)
    await asyncio.wait_for(first.ended, 30)
    left = engine.inspect(first.name)["Id"]
    second = Watched(kind, "sh", "-c", "echo once", run=first.call.run_id, adopted=True)
    assert (await second.outcome()).kind == "ok"
    with pytest.raises(AssertionError, match="No such container"):
        engine.ask("POST", f"/containers/{left}/start")
    assert (second.text, engine.inspect(first.name)["Id"] == left) == ("once\n", False)


async def test_gone_it_is_unknown_where_it_may_run_once_only(kind):
    outcome = await Watched(kind, "true", adopted=True, may_create=False).outcome()
    assert (outcome.kind, outcome.error) == ("unknown", "its container is gone, and nobody knows whether it ran")


async def test_who_may_not_begin_any_more_creates_and_starts_nothing(engine, kind):
    watched = Watched(kind, "true", may_begin=iter([True, False, False]).__next__)
    assert await asyncio.wait_for(watched.ended, 30) == Ended(None, None)
    assert watched.name not in engine.containers()
    watched = Watched(kind, "true", may_begin=iter([True, True, False]).__next__)
    assert await asyncio.wait_for(watched.ended, 30) == Ended(None, None)
    assert (engine.containers()[watched.name], watched.begun) == ("created", [])


async def test_a_container_of_another_installation_is_not_ours(engine, kind):
    async with node(engine, "ffffffffffffffff") as theirs:
        other = Watched(theirs, "sleep", "60")
        await until(lambda: other.begun, "it runs")
        ours = await Watched(kind, "true", run=other.call.run_id).outcome()
        assert "not of this installation" in str(ours.error)
        assert not ours.retryable
        assert other.name not in await kind.inventory()
        await kind.remove(other.name)
        assert engine.containers()[other.name] == "running"
        await other.stopped("interrupted")
        await theirs.remove(other.name)


async def test_the_next_try_first_kills_what_is_left_of_the_one_before(engine, kind):
    first = Watched(kind, "sleep", "60")
    await until(lambda: engine.containers().get(first.name) == "running", "it runs")
    await first.stopped("interrupted")
    second = Watched(kind, "true", run=first.call.run_id, try_number=2)
    assert (await second.outcome()).kind == "ok"
    assert engine.containers()[first.name] == "exited"


async def test_only_what_is_over_for_a_while_is_left_to_be_removed(engine):
    async with (
        node(engine, "aaaaaaaaaaaaaaaa") as kind,
        node(engine, "aaaaaaaaaaaaaaaa", keep=Duration(600_000)) as keeps,
    ):
        ended, runs = Watched(kind, "true"), Watched(kind, "sleep", "60")
        await ended.outcome()
        await until(lambda: engine.containers().get(runs.name) == "running", "it runs")
        assert ended.name in engine.containers(), "its result may not be recorded yet"
        assert set(await kind.inventory()) == {ended.name, runs.name}
        assert await keeps.inventory() == [runs.name], "who comes late must find the name taken"
        await runs.stopped("interrupted")
        assert await keeps.remove(ended.name) is False, "it was listed as running, and has ended since"
        assert ended.name in engine.containers()
        for name in await kind.inventory():
            await kind.remove(name)
        assert {ended.name, runs.name}.isdisjoint(engine.containers())


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines a second after the time-out."""
    monkeypatch.setattr(deadline, "AFTER", 1.0)
    monkeypatch.setattr(creation, "GRACE", 0)


async def test_if_no_node_comes_back_the_engine_ends_it_by_itself(engine, early):
    async with node(engine) as kind:
        run = Watched(kind, "sleep", "600", timeout=0.5)
        await until(lambda: engine.containers().get(run.name) == "running", "it runs")
        await run.stopped("interrupted")
    await until(lambda: engine.containers()[run.name] == "exited", "nobody of us is there, and it has ended")
    async with node(engine) as kind:
        adopts = Watched(kind, run=run.call.run_id, adopted=True, timeout=0.5)
        outcome = await adopts.outcome()
    assert (outcome.kind, outcome.error) == ("timeout", "timed out after 0.5 s: no node was there to end it in time")


async def test_what_is_past_its_deadline_is_ended_by_any_node_of_any_installation(engine, early, monkeypatch):
    """Also where the engine makes no checks, or the image has no shell."""
    monkeypatch.setattr(creation, "deadline_check", lambda seconds: {"Test": ["NONE"]})
    async with node(engine, "aaaaaaaaaaaaaaaa") as kind:
        late, in_time = Watched(kind, "sleep", "600", timeout=0.5), Watched(kind, "sleep", "600", timeout=600)
        for run in (late, in_time):
            await run.runs(engine)
            await run.stopped("interrupted")
    async with node(engine, "bbbbbbbbbbbbbbbb") as other:
        ended: list[str] = []

        async def is_late() -> bool:
            ended.extend(await other.end_overdue())
            return bool(ended)

        await until(is_late, "its time is up")
        assert ended == [late.name]
        assert await other.inventory() == [], "what is left of it belongs to others"
    assert (engine.containers()[late.name], engine.containers()[in_time.name]) == ("exited", "running")
    engine.ask("DELETE", f"/containers/{in_time.name}?force=1")


async def test_a_restart_of_the_engine_is_survived_and_followed(engine, kind, events):
    script = "echo before; while ! [ -e /tmp/go ]; do sleep 0.05; done; echo after; echo 42"
    watched = Watched(kind, "sh", "-c", script)
    await watched.says("before\n")
    offered = kind.capabilities()
    await asyncio.to_thread(engine.stop, kill=True)
    await until(lambda: kind.capabilities() == [], "it is seen that the engine is away")
    waits = Watched(kind, "true")
    assert await asyncio.wait_for(waits.ended, 30) == Ended(None, None), "not begun: it goes back"
    await asyncio.to_thread(engine.start)
    await until(lambda: kind.capabilities() == offered, "it is back, the same as before")
    touch(engine, watched.name, "/tmp/go")
    outcome = await watched.outcome()
    assert (outcome.kind, outcome.detail) == ("ok", {"exit_code": 0, "result": 42})
    assert watched.text == "before\nafter\n42\n", "nothing twice"
    told = [event.name for event in events if event.name.startswith("containers.")]
    assert told == ["containers.unavailable", "containers.engine"]


async def test_an_engine_that_hangs_is_left_alone_by_a_timeout(engine, kind, monkeypatch):
    watched = Watched(kind, "sleep", "60")
    await until(lambda: engine.containers().get(watched.name) == "running", "it runs")
    monkeypatch.setattr("onthedot.targets.container.following.STOP_WITHIN", 0.5)
    engine.freeze()
    try:
        ended = await watched.stopped("timeout")
    finally:
        engine.thaw()
    assert ended.outcome is None
    await until(lambda: watched.name in engine.containers(), "the engine answers")
    await kind.remove(watched.name)


async def test_a_long_output_is_bounded_and_its_result_is_read_all_the_same(kind):
    lines = 'head -c 9000000 /dev/zero | tr "\\0" x; echo; echo [7]'.replace("tr ", "/bin/busybox tr ")
    watched = Watched(kind, "sh", "-c", lines)
    outcome = await watched.outcome()
    assert (outcome.kind, outcome.detail["result"]) == ("ok", [7])
    assert 8 << 20 <= len(watched.text) < (8 << 20) + 100_000
    assert watched.text.endswith("… output truncated: it exceeds the size limit\n")


async def test_a_long_line_is_one_line(kind):
    outcome = await Watched(kind, "sh", "-c", "echo [$(seq -s , 1 9000)]").outcome()
    assert outcome.detail["result"] == list(range(1, 9001))


@pytest.mark.parametrize(
    "after",
    ["for i in $(seq 30); do echo; done", "for i in $(seq 30); do echo bye >&2; done", "sleep 0"],
    ids=["blank lines", "the other stream", "nothing"],
)
async def test_a_result_is_found_whatever_comes_after_it(kind, after):
    outcome = await Watched(kind, "sh", "-c", f"echo [7]; {after}").outcome()
    assert outcome.detail == {"exit_code": 0, "result": [7]}


async def test_of_a_line_that_is_too_long_for_a_result_it_is_said(kind):
    outcome = await Watched(kind, "sh", "-c", "echo begins; echo [$(seq -s , 1 70000)]").outcome()
    assert outcome.detail["result_note"] == "not kept: the last line exceeds the limit of 65536 bytes"
    outcome = await Watched(kind, "sh", "-c", "echo begins; echo no [$(seq -s , 1 70000)]").outcome()
    assert outcome.detail == {"exit_code": 0}


@pytest.fixture
def doctor(engine: EngineServer) -> Callable[..., Any]:
    async def diagnose(**setting: Any) -> Any:
        given = {"socket": engine.url, "images": ("registry.test/*",)} | setting
        return await Containers(ContainerSetting(**given)).diagnose()

    return diagnose


async def test_what_the_doctor_says(engine, doctor, tmp_path):
    (good,) = await doctor()
    assert good.advice is None
    assert good.found.startswith("Docker ")
    assert "registry.test/*" in good.found
    (absent,) = await doctor(socket=f"unix://{tmp_path}/none.sock")
    assert "No such file" in absent.found
    assert "start the engine" in absent.advice
    other = await asyncio.start_unix_server(lambda reader, writer: writer.close(), tmp_path / "other.sock")
    (wrong,) = await doctor(socket=f"unix://{tmp_path}/other.sock")
    other.close()
    assert "check that [containers] socket is the socket of Docker or Podman" in wrong.advice
    assert await doctor(images=()) == ()


async def test_podman_does_the_same():
    try:
        with running_podman() as podman:
            await on_podman(podman)
    except ProgramMissing as why:
        missing(why)


async def on_podman(podman: EngineServer) -> None:
    async with node(podman) as kind:
        await until(kind.capabilities, "it answers: it takes its time to say who it is", 60)
        place = kind.capabilities()
        first = Watched(kind, "sh", "-c", "echo one; while ! [ -e /tmp/go ]; do sleep 0.05; done; echo 42")
        await first.says("one\n")
        await first.stopped("interrupted")
        second = Watched(kind, run=first.call.run_id, adopted=True)
        await second.says("one\n")
        touch(podman, first.name, "/tmp/go")
        outcome = await second.outcome()
        assert (outcome.kind, outcome.detail["result"], second.text) == ("ok", 42, "one\n42\n")
        oom = Watched(kind, "sh", "-c", "dd if=/dev/zero of=/dev/null bs=64M", memory="16M")
        assert (await oom.outcome()).error == KILLED
        taken = Watched(kind, "true", run=first.call.run_id)
        assert (await taken.outcome()).detail["result"] == 42, "the name is taken, by itself"
        absent = Watched(kind, "true", image="registry.test/team/none:1", pull="never")
        assert "is not on the container engine" in str((await absent.outcome()).error)
        ends = Watched(kind, "sh", "-c", "trap 'echo tidy; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
        await ends.says("ready\n")
        await ends.stopped("cancelled")
        assert ends.text == "ready\ntidy\n"
        assert kind.capabilities() == place
        for name in await kind.inventory():
            assert await kind.remove(name)
        assert podman.containers() == {}
