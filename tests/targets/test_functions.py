"""Functions in real worker processes."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.targets import FunctionTarget
from onthedot.targets.function.kind import Functions
from onthedot.targets.function.pool import WorkerPool
from tests.services.waiting import until
from tests.targets.bench import Bench
from tests.targets.conftest import Log, MakeCall
from tests.targets.processes import gone
from tests.targets.sending import send


async def test_params_become_keyword_arguments_and_the_result_is_kept(bench: Bench):
    outcome = await bench.run("def work(a, b=1): return {'sum': a + b}", a=2, b=40)
    assert outcome == Outcome(kind="ok", detail={"result": {"sum": 42}})


async def test_a_function_that_returns_nothing_has_no_result(bench: Bench):
    assert await bench.run("def work(): pass") == Outcome(kind="ok")


async def test_async_functions_are_awaited(bench: Bench):
    outcome = await bench.run("""
        import asyncio
        async def work():
            await asyncio.sleep(0)
            return "awaited"
    """)
    assert outcome.detail == {"result": "awaited"}


async def test_what_an_async_function_leaves_running_ends_with_it(bench: Bench, log: Log):
    name = bench.define("""
        import asyncio
        kept = []
        async def forever():
            try:
                await asyncio.sleep(3600)
            finally:
                print("ended")
        async def work(leave):
            if leave:
                kept.append(asyncio.create_task(forever()))
                await asyncio.sleep(0)
            return len(asyncio.all_tasks())
    """)
    for leave, tasks in ((False, 1), (True, 2), (False, 1)):
        assert (await bench.call(f"{name}:work", leave=leave)).detail == {"result": tasks}
    assert log.text == "ended\n"


async def test_an_async_function_that_fails_does_not_spoil_the_next(bench: Bench):
    name = bench.define("async def work(fail):\n    return 1 // (not fail)")
    outcomes = [(await bench.call(f"{name}:work", fail=fail)).error for fail in (False, True, False)]
    assert outcomes == [None, "ZeroDivisionError: integer division or modulo by zero", None]


async def test_a_sync_function_that_returns_a_coroutine_is_awaited_too(bench: Bench):
    outcome = await bench.run("""
        async def inner(): return 3
        def work(): return inner()
    """)
    assert outcome.detail == {"result": 3}


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("{1, }", "not kept: a value of type set is not JSON ({1})"),
        ("float('nan')", "not kept: a value of type float is not JSON (nan)"),
        ("'\\ud800'", "not kept: a value of type str is not JSON ('\\ud800')"),
        ("'a\\0b'", "not kept: it contains a NUL character"),
        ("object", "not kept: a value of type type is not JSON (<class 'object'>)"),
        ("'x' * 10_000_000", "not kept: 10000002 bytes exceed the limit of 65536"),
    ],
)
async def test_a_result_that_can_not_be_kept_is_a_note_and_no_failure(bench: Bench, expression: str, shown: str):
    outcome = await bench.run(f"def work(): return {expression}")
    assert outcome == Outcome(kind="ok", detail={"result_note": shown})


async def test_a_result_whose_repr_fails_is_no_failure(bench: Bench):
    outcome = await bench.run("""
        class Odd:
            def __repr__(self): raise RuntimeError("no")
        def work(): return Odd()
    """)
    assert outcome.ok
    assert "repr() failed" in outcome.detail["result_note"]


async def test_an_exception_is_an_error_with_its_traceback_in_the_log(bench: Bench, log: Log):
    outcome = await bench.run("""
        def work():
            raise KeyError("missing")
    """)
    assert outcome == Outcome(kind="error", retryable=True, error="KeyError: 'missing'")
    assert 'raise KeyError("missing")' in log.text
    assert "worker_process" not in log.text


@pytest.mark.parametrize("params", [{}, {"a": 1, "c": 2}])
async def test_params_that_do_not_fit_are_never_tried_again(bench: Bench, params: dict[str, Any]):
    outcome = await bench.run("def work(a): return a", **params)
    assert outcome.kind == "error"
    assert not outcome.retryable
    assert "work(a)" in (outcome.error or "")


async def test_a_type_error_inside_the_function_is_an_ordinary_error(bench: Bench):
    outcome = await bench.run("def work(): return len(3)")
    assert outcome.retryable
    assert (outcome.error or "").startswith("TypeError: ")


async def test_a_missing_function_is_a_clear_failure(bench: Bench):
    name = bench.define("def work(): pass")
    outcome = await bench.call(f"{name}:play")
    assert outcome == Outcome(kind="error", error=f"function 'play' not found in module '{name}'")


async def test_a_missing_module_is_a_clear_failure(bench: Bench):
    bench.functions._registered["no_such_module"] = None
    outcome = await bench.call("no_such_module:work")
    assert outcome == Outcome(kind="error", error="module 'no_such_module' not found on the import path")


async def test_a_module_that_fails_to_import_may_be_tried_again(bench: Bench, log: Log):
    outcome = await bench.run("import not_installed_anywhere\ndef work(): pass")
    assert outcome.retryable
    assert "not_installed_anywhere" in (outcome.error or "")
    assert "Traceback" in log.text


@pytest.mark.parametrize("source", ["work = 3", "class work: pass"])
async def test_only_functions_can_be_called(bench: Bench, source: str):
    outcome = await bench.run(source)
    assert "is not a function" in (outcome.error or "")
    assert not outcome.retryable


async def test_what_a_module_imported_is_not_offered(bench: Bench):
    """Registering a module must not hand out `subprocess.run` because the module uses it."""
    outcome = await bench.run("from os import getcwd as work")
    assert outcome.kind == "error"
    assert "only imported there" in (outcome.error or "")


async def test_a_module_may_export_what_it_imported(bench: Bench):
    outcome = await bench.run("from os import getcwd as work\n__all__ = ['work']")
    assert outcome.ok


async def test_stdout_stderr_logging_c_code_and_children_are_heard(bench: Bench, log: Log):
    outcome = await bench.run("""
        import ctypes, logging, os, subprocess, sys
        def work():
            print("printed")
            print("complained", file=sys.stderr)
            logging.getLogger("mine").info("logged")
            os.write(1, b"written\\n")
            ctypes.CDLL(None).puts(b"from C")
            subprocess.run(["echo", "from a child"], check=True)
            sys.stdout.write("without an end of line")
    """)
    assert outcome.ok
    for words in ("printed\n", "complained\n", "INFO mine: logged\n", "written\n", "from C\n", "from a child\n"):
        assert words in log.text
    assert log.text.rstrip().endswith("without an end of line") or "without an end of line" in log.text


async def test_output_is_heard_while_the_function_still_runs(bench: Bench, log: Log, tmp_path: Path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    name = bench.define("def work(path):\n    print('waiting', flush=False)\n    open(path).read()\n    return 'went'")
    running = asyncio.ensure_future(bench.call(f"{name}:work", path=str(fifo)))
    await until(lambda: "waiting" in log.text)
    assert not running.done()
    await asyncio.to_thread(fifo.write_text, "go")
    assert (await running).detail == {"result": "went"}


async def test_a_function_that_prints_answers_is_not_believed(bench: Bench, log: Log):
    outcome = await bench.run("""
        import os
        def work():
            os.write(1, b'\\x00\\x00\\x00\\x0b{"ok": true}')
            raise ValueError("really")
    """)
    assert outcome.error == "ValueError: really"
    assert '{"ok": true}' in log.text


async def test_output_that_is_no_text_is_replaced_not_fatal(bench: Bench, log: Log):
    outcome = await bench.run("import os\ndef work(): os.write(1, b'\\xff\\xfe ok \\xc3')")
    assert outcome.ok
    assert " ok " in log.text
    assert "�" in log.text


async def test_a_flood_is_bounded_and_ends(bench: Bench, log: Log):
    outcome = await bench.run("""
        def work():
            for _ in range(150):
                print("x" * 65535)
            return "done"
    """)
    assert outcome.detail == {"result": "done"}
    assert len(log.text) < 8_500_000
    assert "exceeds the size limit" in log.text


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("sys.exit(3)", "sys.exit(3)"),
        ("os._exit(4)", "exit code 4"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL (out of memory?)"),
        ("ctypes.string_at(0)", "SIGSEGV"),
        ("os.abort()", "SIGABRT"),
    ],
)
async def test_a_function_that_ends_its_process_is_a_failed_try(bench: Bench, statement: str, words: str):
    name = bench.define(f"import ctypes, os, signal, sys\ndef work():\n    {statement}\ndef other(): return 1")
    outcome = await bench.call(f"{name}:work")
    assert outcome.kind == "error"
    assert outcome.retryable
    assert words in (outcome.error or "")
    assert (await bench.call(f"{name}:other")).ok


async def test_what_was_printed_before_a_crash_is_in_the_log(bench: Bench, log: Log):
    await bench.run("import os\ndef work():\n    print('last words')\n    os._exit(1)")
    assert "last words\n" in log.text


async def test_a_forked_child_that_comes_back_does_not_answer(bench: Bench):
    outcome = await bench.run("""
        import os
        def work():
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
            return "parent" if pid else "child"
    """)
    assert outcome.detail == {"result": "parent"}


async def test_a_child_that_keeps_the_pipe_open_does_not_hold_up_the_run(bench: Bench, log: Log):
    outcome = await bench.run("""
        import subprocess
        def work():
            print("started", flush=True)
            return subprocess.Popen(["sleep", "600"]).pid
    """)
    assert outcome.ok
    assert "started" in log.text
    os.kill(outcome.detail["result"], signal.SIGKILL)


async def test_what_outlives_a_call_does_not_speak_in_the_next(bench: Bench, tmp_path: Path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    name = bench.define("""
        import subprocess
        def work(path):
            subprocess.Popen(["sh", "-c", f"trap '' PIPE; read line < {path}; echo intruder; echo > {path}.said"])
        def wait(path):
            import os
            with open(path, "w") as fifo: fifo.write("go\\n")
            while not os.path.exists(path + ".said"): pass
    """)
    assert (await bench.call(f"{name}:work", path=str(fifo))).ok
    second = Log()
    assert (await bench.call(f"{name}:wait", log=second, path=str(fifo))).ok
    assert "intruder" not in second.text


async def test_cancelling_kills_the_function_and_what_it_started(bench: Bench, log: Log):
    name = bench.define("""
        import subprocess, time
        def work():
            child = subprocess.Popen(["sleep", "600"])
            print("child", child.pid, flush=True)
            time.sleep(600)
    """)
    running = asyncio.ensure_future(bench.call(f"{name}:work"))
    await until(lambda: log.text.endswith("\n"))
    child, (worker,) = int(log.text.split()[1]), bench.pids
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: gone(child) and gone(worker))
    assert bench.pids == []


async def test_cancelling_a_function_that_ignores_every_signal(bench: Bench, log: Log):
    name = bench.define("""
        import signal
        def work():
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            print("deaf", flush=True)
            while True: pass
    """)
    running = asyncio.ensure_future(bench.call(f"{name}:work"))
    await until(lambda: "deaf" in log.text)
    (worker,) = bench.pids
    running.cancel()
    await asyncio.wait([running])
    await until(lambda: gone(worker))
    assert running.cancelled()


async def test_a_cancelled_call_that_still_waited_costs_no_worker(bench: Bench, log: Log, tmp_path: Path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    name = bench.define("def work(path):\n    print('in', flush=True)\n    return open(path).read()")
    busy = [asyncio.ensure_future(bench.call(f"{name}:work", path=str(fifo))) for _ in range(2)]
    await until(lambda: log.text.count("in") == 2)
    third = asyncio.ensure_future(bench.call(f"{name}:work", path=str(fifo)))
    await asyncio.sleep(0)
    third.cancel()
    await asyncio.wait([third])
    assert len(bench.pids) == 2
    for task in busy:
        task.cancel()
    await asyncio.wait(busy)


async def test_workers_are_kept_warm(bench: Bench):
    name = bench.define("import os\ndef work(): return os.getpid()")
    pids = {(await bench.call(f"{name}:work")).detail["result"] for _ in range(5)}
    assert pids == set(bench.pids)
    assert len(pids) == 1


async def test_no_more_processes_than_told(bench: Bench):
    name = bench.define("import os\ndef work(): return os.getpid()")
    outcomes = await asyncio.gather(*(bench.call(f"{name}:work") for _ in range(20)))
    assert len({outcome.detail["result"] for outcome in outcomes}) <= 2


async def test_a_worker_that_died_while_idle_is_replaced(bench: Bench):
    name = bench.define("import os\ndef work(): return os.getpid()")
    first = (await bench.call(f"{name}:work")).detail["result"]
    os.kill(first, signal.SIGKILL)
    await until(lambda: not psutil.pid_exists(first))
    outcome = await bench.call(f"{name}:work")
    assert outcome.ok
    assert outcome.detail["result"] != first


async def test_reload_imports_afresh(bench: Bench, tmp_path: Path):
    name = bench.define("def work(): return 'old'")
    assert (await bench.call(f"{name}:work")).detail == {"result": "old"}
    (tmp_path / f"{name}.py").write_text("def work(): return 'newer'")
    await bench.functions.reload()
    assert bench.pids == []
    assert (await bench.call(f"{name}:work")).detail == {"result": "newer"}


async def test_a_worker_is_replaced_after_its_share_of_calls(bench: Bench, tmp_path: Path):
    bench.functions._workers = WorkerPool(1, [str(tmp_path)], calls=2)
    name = bench.define("import os\ndef work(): return os.getpid()")
    seen = [(await bench.call(f"{name}:work")).detail["result"] for _ in range(4)]
    assert seen[0] == seen[1] != seen[2] == seen[3]


async def test_a_function_knows_its_run_and_nothing_of_the_settings(
    bench: Bench, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ONTHEDOT_STORE", "postgresql://user:password@db/x")
    monkeypatch.setenv("OF_THE_PROGRAM", "kept")
    name = bench.define("import os\ndef work(): return dict(os.environ)")
    call = make_call(FunctionTarget(function=f"{name}:work"), key="nightly", attempt=3)
    seen = (await send(bench.functions, call)).detail["result"]
    assert "ONTHEDOT_STORE" not in seen
    assert seen["OF_THE_PROGRAM"] == "kept"
    assert seen["ONTHEDOT_RUN_ID"] == call.run_id
    assert seen["ONTHEDOT_JOB_KEY"] == "nightly"
    assert seen["ONTHEDOT_ATTEMPT"] == "3"
    assert seen["ONTHEDOT_SCHEDULED_FOR"] == "2025-11-15T19:22:47.890Z"
    without_key = (await bench.call(f"{name}:work")).detail["result"]
    assert "ONTHEDOT_JOB_KEY" not in without_key


async def test_the_environment_is_that_of_the_run_whatever_the_one_before_did(bench: Bench, make_call: MakeCall):
    """For Python, for C, and for what the function starts."""
    name = bench.define("""
        import ctypes, os, subprocess
        getenv = ctypes.CDLL(None).getenv
        getenv.restype = ctypes.c_char_p
        def work(change=None, text=""):
            script = 'echo "$ONTHEDOT_RUN_ID $ONTHEDOT_JOB_KEY"'
            child = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split()
            c = (getenv(b"ONTHEDOT_RUN_ID") or b"").decode()
            seen = [os.environ["ONTHEDOT_RUN_ID"], c, child, len(os.environ["ONTHEDOT_PARAMS"])]
            if change == "set": os.environ["ONTHEDOT_RUN_ID"] = "mine"
            if change == "del": del os.environ["ONTHEDOT_RUN_ID"]
            return seen
    """)
    given = [("1-1", "a", {}), ("2-2", "b" * 200, {"change": "set"}), ("3-3", None, {"change": "del"})]
    given += [("4-4", "c", {"text": "x" * 5000}), ("5-5", "d", {}), ("5-5", None, {})]
    for run_id, key, params in given:
        call = make_call(FunctionTarget(function=f"{name}:work"), run_id=run_id, key=key, params=params)
        seen = (await send(bench.functions, call)).detail["result"]
        assert seen[:3] == [run_id, run_id, [run_id, *([key] if key else [])]]
        assert (seen[3] > 5000) is ("text" in params)


async def test_large_params_arrive_whole(bench: Bench):
    outcome = await bench.run("def work(text): return len(text)", text="x" * 100_000)
    assert outcome.detail == {"result": 100_000}


async def test_functions_may_use_multiprocessing(bench: Bench):
    outcome = await bench.run("""
        import multiprocessing
        def double(n): return 2 * n
        def work():
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                return pool.map(double, [1, 2])
    """)
    assert outcome.detail == {"result": [2, 4]}


async def test_the_folder_of_the_worker_program_is_not_importable(bench: Bench):
    outcome = await bench.run("def work():\n    import worker_process\n    return worker_process.__file__")
    assert (outcome.error or "").startswith("ModuleNotFoundError")


def test_only_registered_functions_are_accepted():
    functions = Functions(["reports.daily", "tools:clean", "tools:pack"], processes=1)
    assert functions.capabilities() == ["function:reports.daily", "function:tools"]
    for accepted in ("reports.daily:send", "tools:clean"):
        functions.check(FunctionTarget(function=accepted))
    for refused in ("os:system", "reports:send", "reports.daily.more:send", "tools:other"):
        with pytest.raises(Invalid) as caught:
            functions.check(FunctionTarget(function=refused))
        (problem,) = caught.value.problems
        assert problem.path == "target.function"
        assert problem.accepted == "reports.daily:…, tools:clean, tools:pack"


def test_a_module_registered_whole_and_in_part_is_registered_whole():
    for entries in (["tools", "tools:clean"], ["tools:clean", "tools"]):
        Functions(entries, processes=1).check(FunctionTarget(function="tools:pack"))


@pytest.mark.parametrize(
    "function", ["", "tools", "tools:", ":x", "tools:os.system", "tools:_private", "a b:c", "x:y\n"]
)
def test_what_is_no_name_of_a_function_is_refused(function: str):
    with pytest.raises(Invalid, match="is not a valid function name"):
        Functions(["tools"], processes=1).check(FunctionTarget(function=function))


async def test_a_function_that_is_not_registered_here_is_refused_at_the_send(make_call: MakeCall):
    async with Functions(["tools"], processes=1) as functions:
        for name in ("os:system", "tools:os.system"):
            outcome = await send(functions, make_call(FunctionTarget(function=name)))
            assert outcome == Outcome(kind="refused", error=f"{name} is not registered on this node")
        assert functions._workers.pids == []
