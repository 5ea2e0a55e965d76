"""Callables of a program that embeds On the Dot."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections.abc import AsyncIterator

import pytest

from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.targets import FunctionTarget
from onthedot.targets import InProcessFunctions
from tests.services.waiting import until
from tests.targets.conftest import Log, MakeCall, WaitsForEver
from tests.targets.sending import NotBegun, send

IT = FunctionTarget(function="it")


@pytest.fixture
async def callables() -> AsyncIterator[InProcessFunctions]:
    async with InProcessFunctions() as callables:
        yield callables


async def test_a_sync_callable_runs_in_a_thread(callables: InProcessFunctions, make_call: MakeCall):
    callables.add("it", lambda a: (threading.current_thread().name, a))
    outcome = await send(callables, make_call(IT, params={"a": 1}))
    name, given = outcome.detail["result"]
    assert name.startswith("onthedot-function")
    assert given == 1


async def test_an_async_callable_runs_on_a_loop_of_its_own(callables: InProcessFunctions, make_call: MakeCall):
    loops = []

    async def it() -> str:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return threading.current_thread().name

    callables.add("it", it)
    assert (await send(callables, make_call(IT))).detail == {"result": "onthedot-functions"}
    assert loops[0] is not asyncio.get_running_loop()


@pytest.mark.parametrize("waits", [False, True])
async def test_what_became_another_nodes_on_its_way_is_not_called(
    callables: InProcessFunctions, make_call: MakeCall, waits: bool
):
    """As in a process that was frozen while all threads were busy."""
    called = []

    async def waiting() -> None:
        called.append("it")

    callables.add("it", waiting if waits else lambda: called.append("it"))
    with pytest.raises(NotBegun):
        await send(callables, make_call(IT, may_begin=lambda: False))
    assert called == []
    assert (await send(callables, make_call(IT))).ok
    assert called == ["it"]


async def test_what_has_begun_in_a_thread_goes_on_whoever_it_belongs_to(
    callables: InProcessFunctions, make_call: MakeCall
):
    """A sync callable that hands back something to wait for: it was called once, and is not given up half way."""
    answers = [True, False]

    async def rest() -> str:
        return "done"

    callables.add("it", lambda: rest())
    outcome = await send(callables, make_call(IT, may_begin=lambda: answers.pop(0)))
    assert outcome.detail == {"result": "done"}
    assert answers == [False]


async def test_an_async_callable_that_blocks_does_not_block_the_node(
    callables: InProcessFunctions, make_call: MakeCall
):
    let_go = threading.Event()

    async def it() -> bool:
        return let_go.wait(10)

    callables.add("it", it)
    running = asyncio.ensure_future(send(callables, make_call(IT)))
    await asyncio.sleep(0)
    let_go.set()  # reached only because this loop goes on
    assert (await running).detail == {"result": True}


async def test_a_failure_and_its_traceback(callables: InProcessFunctions, make_call: MakeCall, log: Log):
    def it() -> None:
        raise LookupError("nothing there")

    callables.add("it", it)
    outcome = await send(callables, make_call(IT))
    assert outcome == Outcome(kind="error", retryable=True, error="LookupError: nothing there")
    await until(lambda: "raise LookupError" in log.text)


async def test_sys_exit_in_a_callable_does_not_end_the_program(callables: InProcessFunctions, make_call: MakeCall):
    def it() -> None:
        raise SystemExit(3)

    callables.add("it", it)
    outcome = await send(callables, make_call(IT))
    assert outcome.error == "SystemExit: 3"


@pytest.mark.parametrize("waits", [False, True])
async def test_an_exception_that_can_not_be_shown_is_a_failure_all_the_same(
    callables: InProcessFunctions, make_call: MakeCall, waits: bool
):
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    def raises() -> None:
        raise Unspeakable

    async def raises_there() -> None:
        raise Unspeakable

    callables.add("it", raises_there if waits else raises)
    outcome = await asyncio.wait_for(send(callables, make_call(IT)), 10)
    assert (outcome.kind, outcome.error) == ("error", "Unspeakable: its str() failed: ValueError")


async def test_params_that_do_not_fit(callables: InProcessFunctions, make_call: MakeCall):
    callables.add("it", lambda a: a)
    outcome = await send(callables, make_call(IT, params={"b": 1}))
    assert outcome.kind == "error"
    assert not outcome.retryable


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_logging_goes_to_the_run_it_belongs_to(callables: InProcessFunctions, make_call: MakeCall, kind: str):
    def sync_it(word: str) -> None:
        logging.getLogger("mine").warning("said %s", word)

    async def async_it(word: str) -> None:
        sync_it(word)

    callables.add("it", sync_it if kind == "sync" else async_it)
    logs = {word: Log() for word in ("one", "two")}
    await asyncio.gather(*(send(callables, make_call(IT, params={"word": w}, log=log)) for w, log in logs.items()))
    for word, log in logs.items():
        await until(log.portions.__len__)
        assert log.text.endswith(f"WARNING mine: said {word}\n")
        assert log.text.count("\n") == 1


async def test_cancelling_a_coroutine_cancels_it(callables: InProcessFunctions, make_call: MakeCall):
    waits = WaitsForEver()
    callables.add("it", waits.it)
    running = asyncio.ensure_future(send(callables, make_call(IT)))
    await until(waits.began.is_set)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(waits.cancelled.is_set)
    assert waits.cancelled.is_set()


async def test_leaving_cancels_what_still_runs(make_call: MakeCall):
    waits = WaitsForEver()
    async with InProcessFunctions() as callables:
        callables.add("it", waits.it)
        running = asyncio.ensure_future(send(callables, make_call(IT)))
        await until(waits.began.is_set)
    await asyncio.wait([running])
    assert waits.cancelled.is_set()
    assert not any(thread.name == "onthedot-functions" for thread in threading.enumerate())


async def test_the_logging_of_the_program_is_left_as_it_was():
    before = list(logging.getLogger().handlers)
    async with InProcessFunctions():
        assert len(logging.getLogger().handlers) == len(before) + 1
    assert logging.getLogger().handlers == before


def test_names():
    callables = InProcessFunctions()
    callables.add("a.b", print)
    callables.add("a.b", print)
    with pytest.raises(ValueError, match="already registered"):
        callables.add("a.b", len)
    with pytest.raises(Invalid) as caught:
        callables.check(IT)
    assert caught.value.problems[0].accepted == "a.b"
    assert callables.capabilities() == ["function:a.b"]


async def test_one_that_is_not_registered(callables: InProcessFunctions, make_call: MakeCall):
    outcome = await send(callables, make_call(IT))
    assert outcome == Outcome(kind="refused", error="it is not registered in this program")


async def test_a_result_that_is_no_json(callables: InProcessFunctions, make_call: MakeCall):
    callables.add("it", lambda: object)
    note = "not kept: a value of type type is not JSON (<class 'object'>)"
    assert (await send(callables, make_call(IT))).detail == {"result_note": note}


async def send_all(callables: InProcessFunctions, make_call: MakeCall, *params: dict[str, int]) -> list[Outcome]:
    return await asyncio.gather(*(send(callables, make_call(IT, params=given)) for given in params))


async def test_calls_that_end_at_once_share_a_task_and_nothing_else(callables: InProcessFunctions, make_call: MakeCall):
    seen: contextvars.ContextVar[int] = contextvars.ContextVar("seen", default=0)
    tasks = []

    async def it(n: int) -> int:
        tasks.append(asyncio.current_task())
        before = seen.get()
        if n % 10 == 0:
            seen.set(n + 1)
        return before

    callables.add("it", it)
    outcomes = await send_all(callables, make_call, *({"n": n} for n in range(200)))
    assert {outcome.detail["result"] for outcome in outcomes} == {0}
    assert 20 <= len(set(tasks)) < 60


async def test_a_call_that_waits_keeps_its_task_and_holds_up_nobody(callables: InProcessFunctions, make_call: MakeCall):
    tasks: dict[int, list[object]] = {}

    async def it(n: int) -> None:
        tasks[n] = [asyncio.current_task()]
        if n == 2:
            opened.set()
        async with asyncio.timeout(10):
            await opened.wait()
        tasks[n].append(asyncio.current_task())

    opened = asyncio.Event()
    callables.add("it", it)
    outcomes = await send_all(callables, make_call, *({"n": n} for n in range(3)))
    assert [outcome.kind for outcome in outcomes] == ["ok"] * 3
    assert all(before is after for before, after in tasks.values())
    assert len({before for before, _ in tasks.values()}) == 3


async def test_one_that_swallows_its_cancel_spoils_no_other(callables: InProcessFunctions, make_call: MakeCall):
    began = threading.Event()

    async def it(n: int) -> int:
        if n == 0:
            began.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        await asyncio.sleep(0)
        return n

    callables.add("it", it)
    running = asyncio.ensure_future(send(callables, make_call(IT, params={"n": 0})))
    await until(began.is_set)
    running.cancel()
    outcomes = await send_all(callables, make_call, *({"n": n} for n in range(1, 4)))
    assert [outcome.detail["result"] for outcome in outcomes] == [1, 2, 3]


async def test_a_coroutine_that_raises_a_cancel_of_its_own_has_failed(
    callables: InProcessFunctions, make_call: MakeCall
):
    async def it() -> None:
        raise asyncio.CancelledError

    callables.add("it", it)
    assert (await send(callables, make_call(IT))).error == "CancelledError: "


async def test_sync_calls_that_block_run_beside_each_other(callables: InProcessFunctions, make_call: MakeCall):
    meet = threading.Barrier(5, timeout=10)
    callables.add("it", lambda n: meet.wait() >= 0)
    outcomes = await send_all(callables, make_call, *({"n": n} for n in range(5)))
    assert [outcome.detail for outcome in outcomes] == [{"result": True}] * 5


async def test_no_more_threads_than_allowed_and_nothing_is_left_waiting(make_call: MakeCall):
    names: set[str] = set()

    def it(n: int) -> int:
        names.add(threading.current_thread().name)
        return n

    async with InProcessFunctions(threads=3) as callables:
        callables.add("it", it)
        for _ in range(20):
            outcomes = await send_all(callables, make_call, *({"n": n} for n in range(50)))
            assert [outcome.detail["result"] for outcome in outcomes] == list(range(50))
    assert 1 <= len(names) <= 3


async def test_a_sync_callable_may_return_something_to_wait_for(callables: InProcessFunctions, make_call: MakeCall):
    async def later(a: int) -> tuple[str, int]:
        await asyncio.sleep(0)
        return threading.current_thread().name, a

    callables.add("it", lambda a: later(a))
    assert (await send(callables, make_call(IT, params={"a": 1}))).detail == {"result": ["onthedot-functions", 1]}
