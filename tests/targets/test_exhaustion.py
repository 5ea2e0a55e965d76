"""What this machine has run out of is no try: nothing was sent, and the call says so."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from onthedot import descriptors
from onthedot.echo import EchoServer
from onthedot.model.run import Outcome
from onthedot.model.targets import CommandTarget, FunctionTarget, WebhookTarget
from onthedot.settings import CommandSetting
from onthedot.targets import EgressRule, InProcessFunctions
from onthedot.targets.command.kind import Commands
from onthedot.targets.exhaustion import lack_of, ports_are_gone
from onthedot.targets.function.kind import Functions
from onthedot.targets.webhook.kind import Webhooks
from tests.services.ports import free_port
from tests.targets.conftest import MakeCall
from tests.targets.sending import NotBegun, send

NoDescriptors = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def no_descriptors() -> NoDescriptors:
    """`with no_descriptors():` not one more can be opened in this process."""

    @contextmanager
    def lowered() -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        gc.collect()  # or it would give some back in the middle of it
        with socket.socket() as lowest:  # all numbers below the first free one are taken
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest.fileno() + 1, hard))
            try:
                assert descriptors.none_left()
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    return lowered


class Lacks(list[str]):
    def __call__(self, what: str) -> None:
        self.append(what)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_webhook_is_not_begun_without_a_descriptor(
    echo: EchoServer, make_call: MakeCall, no_descriptors: NoDescriptors, host: str
):
    lacks = Lacks()
    call = make_call(WebhookTarget(url=echo.url.replace("127.0.0.1", host)), lacks=lacks)
    async with Webhooks(EgressRule(allow_private=True), version="1") as webhooks:
        with no_descriptors(), pytest.raises(NotBegun):
            await send(webhooks, call)
        assert lacks == ["too many open files in this process"]
        assert (await send(webhooks, call)).ok
    assert len(echo.received) == 1


async def test_a_command_is_not_begun_without_a_descriptor(make_call: MakeCall, no_descriptors: NoDescriptors):
    commands = Commands({"it": CommandSetting(argv=("true",))})
    lacks = Lacks()
    call = make_call(CommandTarget(command="it"), lacks=lacks)
    async with commands:  # with a guard process, which needs descriptors too
        with no_descriptors(), pytest.raises(NotBegun):
            await send(commands, call)
        assert lacks == ["too many open files in this process"]
        assert (await send(commands, call)).ok


async def test_a_function_is_not_begun_without_a_worker(make_call: MakeCall, no_descriptors: NoDescriptors):
    lacks = Lacks()
    call = make_call(FunctionTarget(function="time:time"), lacks=lacks, begun=lambda at: None)
    async with Functions(["time"], processes=2) as functions:
        with no_descriptors(), pytest.raises(NotBegun):
            await send(functions, call)
        assert lacks == ["too many open files in this process"]


async def test_an_embedded_function_is_not_begun_without_a_thread(make_call: MakeCall, monkeypatch: pytest.MonkeyPatch):
    called, lacks = threading.Event(), Lacks()
    async with InProcessFunctions() as callables:
        callables.add("app:work", called.set)
        call = make_call(FunctionTarget(function="app:work"), lacks=lacks)

        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(NotBegun):
                await send(callables, call)
        assert (lacks, called.is_set()) == (["out of processes or threads on this machine"], False)
        assert (await send(callables, call)).ok


async def test_no_more_connections_than_it_may_have(echo: EchoServer, make_call: MakeCall):
    """One that is kept for another receiver makes room; one that is in use does not."""
    lacks = Lacks()
    async with EchoServer() as other, Webhooks(EgressRule(allow_private=True), version="1", connections=1) as webhooks:
        for receiver in (echo, other, echo):
            assert (await send(webhooks, make_call(WebhookTarget(url=receiver.url)))).ok
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
            waiting = asyncio.ensure_future(send(webhooks, make_call(WebhookTarget(url=url))))
            await asyncio.sleep(0)
            with pytest.raises(NotBegun):
                await send(webhooks, make_call(WebhookTarget(url=other.url), lacks=lacks))
            assert "all 1 webhook connections" in lacks[0]
            waiting.cancel()
            with pytest.raises((asyncio.CancelledError, NotBegun)):
                await waiting
        assert (await send(webhooks, make_call(WebhookTarget(url=other.url)))).ok


async def test_a_receiver_that_is_not_there_is_a_try(make_call: MakeCall):
    lacks = Lacks()
    async with Webhooks(EgressRule(allow_private=True), version="1") as webhooks:
        call = make_call(WebhookTarget(url=f"http://127.0.0.1:{free_port()}/"), lacks=lacks)
        outcome: Outcome = await send(webhooks, call)
    assert (outcome.kind, outcome.retryable, lacks) == ("error", True, [])


@pytest.mark.parametrize(
    ("error", "starting", "lacks"),
    [
        (OSError(errno.EMFILE, ""), False, True),
        (OSError(errno.ENFILE, ""), False, True),
        (OSError(errno.ENOBUFS, ""), False, True),
        (OSError(errno.ENOMEM, ""), False, True),
        (MemoryError(), False, True),
        (BlockingIOError(errno.EAGAIN, ""), True, True),
        (BlockingIOError(errno.EAGAIN, ""), False, False),
        (RuntimeError("can't start new thread"), True, True),
        (RuntimeError("boom"), True, False),
        (ConnectionRefusedError(errno.ECONNREFUSED, ""), False, False),
        (OSError("without a number"), False, False),
        (socket.gaierror(socket.EAI_NONAME, ""), False, False),
    ],
)
def test_what_is_a_lack(error: BaseException, starting: bool, lacks: bool):
    assert (lack_of(error, starting=starting) is not None) is lacks


def test_a_name_that_could_not_be_looked_up_without_a_descriptor(no_descriptors: NoDescriptors):
    failed = socket.gaierror(socket.EAI_AGAIN, "")
    assert lack_of(failed, looking_up=True) is None
    with no_descriptors():
        assert lack_of(failed, looking_up=True) is not None


def test_no_port_is_another_thing_than_no_address():
    """The documentation's own network (RFC 3849) has no route from a machine without IPv6; 127.0.0.1 always has one."""
    missing = OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    assert ports_are_gone(missing, socket.AF_INET, ("127.0.0.1", 9))
    assert not ports_are_gone(OSError(errno.ECONNREFUSED, ""), socket.AF_INET, ("127.0.0.1", 9))
    assert not ports_are_gone(missing, socket.AF_INET6, ("127.0.0.1", 9))  # nothing can be reached that way


@pytest.mark.parametrize(
    ("most", "processes", "sending"),
    [(None, 4, None), (1024, 4, 608), (256, 0, 160), (65_536, 4, 63_440), (64, 4, 16), (3, 0, 1)],
)
def test_a_part_is_kept_back_for_the_api_and_the_store(most: int | None, processes: int, sending: int | None):
    assert descriptors.for_sending(most, processes) == sending
    if most is not None and sending is not None and most >= 256:
        assert sending + descriptors.for_clients(most) < most


def test_the_soft_limit_is_raised_as_far_as_is_allowed():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1000), hard))
        raised = descriptors.raise_limit()
        assert raised is not None
        assert raised == descriptors.limit() == (descriptors.MOST if hard < 0 else min(hard, descriptors.MOST))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
