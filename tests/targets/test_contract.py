"""What the engine relies on, for every kind of target."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvloop

from onthedot.model.run import Outcome
from onthedot.model.targets import CommandTarget, FunctionTarget, QueueTarget, ScriptTarget, Target, WebhookTarget
from onthedot.settings import BrokerSetting, CommandSetting, ScriptSetting
from onthedot.targets import Call, EgressRule, InProcessFunctions, Kind, from_coroutine
from onthedot.targets.command.kind import Commands
from onthedot.targets.contract import Cause, Ended, Stop
from onthedot.targets.function.kind import Functions
from onthedot.targets.queue.kind import Queues
from onthedot.targets.script.kind import Scripts
from onthedot.targets.script.probe import Probed
from onthedot.targets.webhook.kind import Webhooks
from tests.services.waiting import until
from tests.targets.receivers import server
from tests.targets.sandboxes import NoObjects, sandbox_named

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
KINDS = (
    "webhook",
    "webhook over a kept connection",
    "function",
    "async callable",
    "sync callable",
    "command",
    "queue",
    "script",
    "coroutine",
)


class Party:
    """A kind of target, what to call, and how much of it has arrived. Calls wait until they are let go."""

    def __init__(self, kind: Kind, target: Target, arrived: Callable[[], int], let_go: Callable[[], None]) -> None:
        self.kind, self.target, self.arrived, self.let_go = kind, target, arrived, let_go


class Watched:
    """One call and all that was told of it."""

    def __init__(self, party: Party, **fields: Any) -> None:
        self.begun: list[float] = []
        self.ends: list[Ended] = []
        self.threads: set[int] = set()
        self.call = Call(
            run_id="7-1", job_id=7, slot=1, attempt=1, target=party.target, begun=self.begun.append, **fields
        )
        self.at = time.monotonic()
        self.handle = party.kind.start(self.call, self.at, self._done)
        self.told_at_once = list(self.ends)

    def _done(self, ended: Ended) -> None:
        self.threads.add(threading.get_ident())
        self.ends.append(ended)


@asynccontextmanager
async def webhook(tmp_path: Path, *, kept: bool) -> AsyncIterator[Party]:
    arrived, go, first = 0, asyncio.Event(), kept

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal arrived, first
        if first:
            first = False
        else:
            arrived += 1
            await go.wait()
        writer.write(OK)

    async with server(respond) as url, Webhooks(EgressRule(allow_private=True), version="1") as webhooks:
        party = Party(webhooks, WebhookTarget(url=url, method="GET"), lambda: arrived, go.set)
        if kept:
            before = Watched(party)
            await until(lambda: before.ends)
        yield party
        go.set()


class Book:
    """Where a call in another process notes that it has begun; it waits until `go` is there."""

    def __init__(self, folder: Path) -> None:
        self.begun, self.go = folder / "begun", folder / "go"

    def arrived(self) -> int:
        return len(self.begun.read_text().splitlines()) if self.begun.exists() else 0


@asynccontextmanager
async def function(tmp_path: Path) -> AsyncIterator[Party]:
    book = Book(tmp_path)
    (tmp_path / "conforms.py").write_text(
        "import os, time\n"
        f"def work():\n    with open({str(book.begun)!r}, 'a') as file: file.write('begun\\n')\n"
        f"    while not os.path.exists({str(book.go)!r}): time.sleep(0.001)\n"
    )
    async with Functions(["conforms"], processes=1, import_paths=[str(tmp_path)]) as functions:
        yield Party(functions, FunctionTarget(function="conforms:work"), book.arrived, book.go.touch)


@asynccontextmanager
async def command(tmp_path: Path) -> AsyncIterator[Party]:
    book = Book(tmp_path)
    script = f"echo begun >> {book.begun}; while [ ! -e {book.go} ]; do sleep 0.01; done"
    async with Commands({"it": CommandSetting(argv=("/bin/sh", "-c", script))}, grace=0.2) as commands:
        yield Party(commands, CommandTarget(command="it"), book.arrived, book.go.touch)


INFO = b'INFO {"server_id":"it","version":"2.10.0","proto":1,"headers":true,"max_payload":1048576}\r\n'
ACK = b'{"stream":"orders","seq":1}'


@asynccontextmanager
async def queue(tmp_path: Path) -> AsyncIterator[Party]:
    """A broker that confirms when it is told to: as much of NATS as that takes."""
    arrived, go = 0, asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal arrived
        inbox = b""
        writer.write(INFO)
        while line := await reader.readline():
            verb, *words = line.split()
            if verb == b"PING":
                writer.write(b"PONG\r\n")
            elif verb == b"SUB":
                inbox = words[-1]
            elif verb == b"HPUB":
                await reader.readexactly(int(words[-1]) + 2)
                arrived += 1
                await go.wait()
                writer.write(b"MSG %s %s %d\r\n%s\r\n" % (words[1], inbox, len(ACK), ACK))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        url = f"nats://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with Queues({"it": BrokerSetting(url=url)}) as queues:
            yield Party(queues, QueueTarget(broker="it", topic="orders"), lambda: arrived, go.set)
            go.set()


class HeardScripts(Scripts):
    """What a script prints tells that it has begun: it can write nowhere else."""

    heard = 0

    async def send(self, call: Call) -> Outcome | Ended:
        def log(text: str) -> None:
            self.heard += text.count("begun")

        call.log = log
        return await super().send(call)


@asynccontextmanager
async def script(tmp_path: Path) -> AsyncIterator[Party]:
    """It sees a folder, as if an interpreter were installed there; one that `nobody` may enter."""
    with tempfile.TemporaryDirectory(prefix="onthedot-script-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        async with _script(Path(folder)) as party:
            yield party


@asynccontextmanager
async def _script(folder: Path) -> AsyncIterator[Party]:
    go, shell = folder / "go", folder / "bin" / "sh"
    shell.parent.mkdir()
    shell.symlink_to("/bin/sh")
    setting = ScriptSetting(interpreters={"sh": (str(shell),)})
    code = f"echo begun; while [ ! -e {go} ]; do sleep 0.01; done"
    async with HeardScripts(setting, NoObjects(), probed=Probed(sandbox_named("cgroup")), grace=0.2) as scripts:
        yield Party(scripts, ScriptTarget(code=code, interpreter="sh"), lambda: scripts.heard, go.touch)


@asynccontextmanager
async def in_process(tmp_path: Path, *, waits: bool) -> AsyncIterator[Party]:
    arrived, go = list[int](), threading.Event()

    def blocks() -> None:
        arrived.append(1)
        go.wait(10)

    async def works() -> None:
        arrived.append(1)
        await until(go.is_set, "it may end")

    async with InProcessFunctions(threads=2) as callables:
        callables.add("it", works if waits else blocks)
        yield Party(callables, FunctionTarget(function="it"), lambda: len(arrived), go.set)
        go.set()


@asynccontextmanager
async def coroutine(tmp_path: Path) -> AsyncIterator[Party]:
    arrived, go = 0, asyncio.Event()

    async def send(call: Call) -> Outcome:
        nonlocal arrived
        arrived += 1
        await go.wait()
        return Outcome(kind="ok")

    async with from_coroutine(send, spec=WebhookTarget, capabilities=lambda: ["webhook"]) as kind:
        yield Party(kind, WebhookTarget(url="http://example.com/"), lambda: arrived, go.set)


def party_of(name: str, tmp_path: Path) -> Any:
    match name:
        case "webhook" | "webhook over a kept connection":
            return webhook(tmp_path, kept=name != "webhook")
        case "function":
            return function(tmp_path)
        case "command":
            return command(tmp_path)
        case "queue":
            return queue(tmp_path)
        case "script":
            return script(tmp_path)
        case "coroutine":
            return coroutine(tmp_path)
    return in_process(tmp_path, waits=name == "async callable")


@pytest.fixture(params=KINDS)
async def party(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Party]:
    async with party_of(request.param, tmp_path) as party:
        yield party


async def passes(turns: int = 50) -> None:
    """As many turns of the loop as anything that is on its way needs to be told."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def test_done_is_called_once_on_this_loop_and_not_before_start_has_returned(party: Party):
    party.let_go()
    watched = Watched(party)
    assert watched.told_at_once == []
    await until(lambda: watched.ends)
    await passes()
    (ended,) = watched.ends
    assert ended.outcome is not None
    assert ended.outcome.ok
    assert ended.began is not None
    assert ended.began >= watched.at
    assert len(watched.begun) <= 1
    assert watched.threads == {threading.get_ident()}
    assert watched.handle.stop("cancelled") is Stop.ENDED
    assert watched.handle.stop("gone") is Stop.ENDED
    assert watched.ends == [ended]
    assert party.arrived() == 1


@pytest.mark.parametrize("cause", ["cancelled", "interrupted", "gone", "recalled"])
async def test_what_was_not_begun_never_begins_and_nobody_is_told(party: Party, cause: Cause):
    watched = Watched(party)
    answer = watched.handle.stop(cause)
    if answer is Stop.NOT_BEGUN:  # else it was faster
        party.let_go()
        after = Watched(party)
        await until(lambda: after.ends)
        await passes()
        assert watched.ends == []
        assert party.arrived() == 1
        assert watched.handle.stop("gone") is Stop.ENDED
    else:
        party.let_go()
        await until(lambda: watched.ends)
        assert party.arrived() <= 1
    assert len(watched.ends) <= 1


async def test_what_has_begun_is_told_to_have_begun_and_is_not_recalled(party: Party):
    watched = Watched(party)
    await until(lambda: party.arrived() == 1)
    assert watched.handle.stop("recalled") is Stop.STOPPING
    await until(lambda: watched.begun)
    assert watched.call.stopped is None
    assert watched.ends == []
    party.let_go()
    await until(lambda: watched.ends)
    assert watched.ends[0].outcome is not None
    assert watched.ends[0].outcome.ok


@pytest.mark.parametrize("cause", ["cancelled", "timeout", "interrupted"])
async def test_stopped_twice_it_ends_once_and_gone_takes_the_place_of_the_cause(party: Party, cause: Cause):
    watched = Watched(party)
    await until(lambda: party.arrived() == 1)
    first = watched.handle.stop(cause)
    assert first in (Stop.STOPPING, Stop.ENDED)
    assert watched.call.stopped == cause
    second = watched.handle.stop("gone")
    assert second is first or second is Stop.ENDED
    assert watched.call.stopped == (cause if second is Stop.ENDED else "gone")
    party.let_go()  # a thread can't be stopped
    await until(lambda: watched.ends)
    await passes()
    (ended,) = watched.ends
    assert ended.outcome is None
    assert ended.began is not None
    assert watched.handle.stop("gone") is Stop.ENDED
    assert len(watched.ends) == 1


async def test_what_may_not_begin_sends_nothing(party: Party):
    party.let_go()
    watched = Watched(party, may_begin=lambda: False)
    assert watched.told_at_once == []
    await until(lambda: watched.ends)
    await passes()
    assert watched.ends == [Ended(None, None)]
    assert party.arrived() == 0
    after = Watched(party)
    await until(lambda: after.ends)
    assert party.arrived() == 1


async def test_what_may_not_begin_any_more_when_its_turn_comes_sends_nothing(party: Party):
    """The process was frozen after the first question, say."""
    answers = iter([True])
    watched = Watched(party, may_begin=lambda: next(answers, False))
    await passes()
    party.let_go()
    await until(lambda: watched.ends)
    began = watched.ends[0].began is not None
    assert party.arrived() == (1 if began else 0)


async def test_many_at_once_each_end_once(party: Party):
    party.let_go()
    watched = [Watched(party) for _ in range(20)]
    await until(lambda: all(one.ends for one in watched))
    await passes()
    assert [len(one.ends) for one in watched] == [1] * 20
    begun = [one for one in watched if one.ends[0].began is not None]
    assert party.arrived() == len(begun) > 0


async def test_the_same_holds_on_the_loop_of_a_node(tmp_path: Path):
    """uvloop; one kind after the other."""

    async def main() -> list[str]:
        passed = []
        for name in KINDS:
            folder = tmp_path / name.replace(" ", "-")
            folder.mkdir()
            async with party_of(name, folder) as party:
                watched = Watched(party)
                await until(lambda: party.arrived() == 1)
                watched.handle.stop("cancelled")
                watched.handle.stop("gone")
                party.let_go()
                await until(lambda: watched.ends)  # noqa: B023 - awaited here
                assert [(one.outcome, one.began is None) for one in watched.ends] == [(None, False)]
                passed.append(name)
        return passed

    def run() -> list[str]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main())

    assert tuple(await asyncio.to_thread(run)) == KINDS


async def test_a_coroutine_reads_why_it_is_to_stop():
    """Only so can it tell what to kill from what to leave alone."""
    seen: list[Cause | None] = []

    async def send(call: Call) -> Outcome:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append(call.stopped)
            raise
        raise AssertionError

    kind = from_coroutine(send, spec=WebhookTarget, capabilities=lambda: ["webhook"])
    party = Party(kind, WebhookTarget(url="http://example.com/"), lambda: 0, lambda: None)
    for cause in ("cancelled", "timeout", "interrupted", "gone"):
        watched = Watched(party)
        await until(lambda: watched.begun)  # noqa: B023 - awaited here
        watched.handle.stop(cause)
        await until(lambda: watched.ends)  # noqa: B023 - awaited here
    assert seen == ["cancelled", "timeout", "interrupted", "gone"]


def test_a_call_tells_tries_from_attempts():
    call = Call(
        run_id="7-1", job_id=7, slot=1, attempt=5, try_number=2, target=WebhookTarget(url="http://example.com/")
    )
    assert (call.attempt, call.try_number) == (5, 2)
    assert msgspec.structs.replace(call, attempt=6).try_number == 2
