"""Commands as real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.targets import CommandTarget
from onthedot.settings import CommandSetting
from onthedot.targets.command.kind import Commands
from tests.services.waiting import until
from tests.targets.conftest import Log, MakeCall
from tests.targets.processes import gone
from tests.targets.sending import send


def shell(script: str, **fields: Any) -> Commands:
    """A command named `it` that runs a shell script."""
    return Commands({"it": CommandSetting(argv=("/bin/sh", "-c", script), **fields)}, grace=5)


IT = CommandTarget(command="it")


async def test_exit_code_zero_is_done(make_call: MakeCall, log: Log):
    outcome = await send(shell("echo out; echo err >&2"), make_call(IT))
    assert outcome == Outcome(kind="ok", detail={"exit_code": 0})
    assert log.text == "out\nerr\n"


@pytest.mark.parametrize(
    ("script", "error", "code"),
    [
        ("exit 3", "exit code 3", 3),
        ("exit 126", "exit code 126 (not executable)", 126),
        ("no-such-program-anywhere", "exit code 127 (program not found)", 127),
        ("kill -SEGV $$", "killed by SIGSEGV", -11),
        ("kill -KILL $$", "killed by SIGKILL", -9),
    ],
)
async def test_every_other_end_is_an_error_to_be_tried_again(make_call: MakeCall, script: str, error: str, code: int):
    outcome = await send(shell(script), make_call(IT))
    assert outcome == Outcome(kind="error", retryable=True, error=error, detail={"exit_code": code})


async def test_a_program_that_does_not_exist(make_call: MakeCall):
    commands = Commands({"it": CommandSetting(argv=("/no/such/program",))})
    outcome = await send(commands, make_call(IT))
    assert outcome == Outcome(kind="error", retryable=True, error="program /no/such/program not found")


async def test_a_program_that_may_not_be_executed(make_call: MakeCall, tmp_path: Path):
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    outcome = await send(Commands({"it": CommandSetting(argv=(str(plain),))}), make_call(IT))
    assert outcome == Outcome(kind="error", retryable=True, error=f"{plain} is not executable")


async def test_a_working_directory_that_does_not_exist(make_call: MakeCall):
    outcome = await send(shell("pwd", cwd="/no/such/place"), make_call(IT))
    assert outcome.error == "working directory /no/such/place does not exist"


async def test_the_working_directory(make_call: MakeCall, log: Log, tmp_path: Path):
    await send(shell("pwd", cwd=str(tmp_path)), make_call(IT))
    assert log.text == f"{tmp_path}\n"


@pytest.mark.parametrize("cwd", ["~", "~/below"])
async def test_a_working_directory_below_home(
    make_call: MakeCall, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cwd: str
):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "below").mkdir()
    commands = shell("pwd", cwd=cwd)
    assert commands.problem(IT) is None
    await send(commands, make_call(IT))
    assert log.text == f"{tmp_path}{cwd[1:]}\n"


@pytest.mark.parametrize("text", ["", "two\nlines § %", "x" * 1_000_000])
async def test_standard_input(make_call: MakeCall, log: Log, text: str):
    """Also more than a pipe holds, and if nobody reads it."""
    assert (await send(shell("true", stdin=text), make_call(IT))).ok
    assert (await send(shell("wc -c", stdin=text), make_call(IT))).ok
    assert log.text.strip() == str(len(text.encode()))


async def test_arguments_are_never_read_by_a_shell(make_call: MakeCall, log: Log):
    commands = Commands({"it": CommandSetting(argv=("/bin/echo", "$HOME; rm *", "two  blanks"))})
    await send(commands, make_call(IT))
    assert log.text == "$HOME; rm * two  blanks\n"


async def test_a_command_knows_its_run(make_call: MakeCall, log: Log):
    call = make_call(IT, key="nightly", attempt=4, params={"day": "§ Monday", "n": [1, 2]})
    await send(shell("env"), call)
    seen = dict(line.split("=", 1) for line in log.text.splitlines())
    assert seen["ONTHEDOT_RUN_ID"] == call.run_id
    assert seen["ONTHEDOT_JOB_ID"] == "7"
    assert seen["ONTHEDOT_JOB_KEY"] == "nightly"
    assert seen["ONTHEDOT_SCHEDULED_FOR"] == "2025-11-15T19:22:47.890Z"
    assert seen["ONTHEDOT_ATTEMPT"] == "4"
    assert seen["ONTHEDOT_PARAMS"] == '{"day":"§ Monday","n":[1,2]}'


async def test_only_the_environment_it_was_given(make_call: MakeCall, log: Log, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ONTHEDOT_STORE", "postgresql://user:password@db/x")
    monkeypatch.setenv("SECRET_OF_THE_NODE", "s")
    monkeypatch.setenv("PASSED_ON", "p")
    await send(shell("env", env={"OWN": "o"}, inherit_env=("PASSED_ON", "NOT_SET")), make_call(IT))
    seen = dict(line.split("=", 1) for line in log.text.splitlines())
    assert seen["OWN"] == "o"
    assert seen["PASSED_ON"] == "p"
    assert seen["PATH"] == os.environ["PATH"]
    assert not {"ONTHEDOT_STORE", "SECRET_OF_THE_NODE", "NOT_SET"} & set(seen)


async def test_params_cannot_take_the_place_of_the_environment(make_call: MakeCall, log: Log):
    await send(shell("echo $ONTHEDOT_JOB_ID", env={"ONTHEDOT_JOB_ID": "forged"}), make_call(IT))
    assert log.text == "7\n"


async def test_params_too_long_for_an_environment_are_never_tried_again(make_call: MakeCall):
    outcome = await send(shell("true"), make_call(IT, params={"text": "x" * 200_000}))
    assert outcome.kind == "error"
    assert not outcome.retryable
    assert "exceed the size limit" in (outcome.error or "")


async def test_output_comes_while_it_runs(make_call: MakeCall, log: Log, tmp_path: Path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    running = asyncio.ensure_future(send(shell(f"echo first; read line < {fifo}; echo $line"), make_call(IT)))
    await until(lambda: log.text == "first\n")
    assert not running.done()
    await asyncio.to_thread(fifo.write_text, "second\n")
    assert (await running).ok
    assert log.text == "first\nsecond\n"


async def test_it_has_no_input(make_call: MakeCall, log: Log):
    assert (await send(shell("cat; echo end"), make_call(IT))).ok
    assert log.text == "end\n"


async def test_a_grandchild_that_keeps_the_pipe_open_does_not_hold_up_the_run(make_call: MakeCall, log: Log):
    outcome = await send(shell("sleep 600 & echo $!"), make_call(IT))
    assert outcome.ok
    os.kill(int(log.text), signal.SIGKILL)


async def test_a_flood_is_bounded(make_call: MakeCall, log: Log):
    outcome = await send(shell("head -c 9000000 /dev/zero | tr '\\0' x"), make_call(IT))
    assert outcome.ok
    assert len(log.text) < 8_500_000
    assert log.text.endswith("it exceeds the size limit\n")


async def test_text_cut_in_the_middle_of_a_character_is_put_together(make_call: MakeCall, log: Log):
    script = "import os, sys; raw = ('é' * 200_000).encode(); os.write(1, raw[:65537]); os.write(1, raw[65537:])"
    commands = Commands({"it": CommandSetting(argv=(sys.executable, "-c", script))})
    assert (await send(commands, make_call(IT))).ok
    assert log.text == "é" * 200_000
    assert len(log.portions) > 1


async def test_cancelling_asks_first(make_call: MakeCall, log: Log):
    script = "trap 'echo tidied; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    running = asyncio.ensure_future(send(shell(script), make_call(IT)))
    await until(lambda: "ready" in log.text)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert log.text.startswith("ready\n")
    assert log.text.endswith("tidied\n")


async def test_cancelling_kills_the_whole_group_when_asking_does_not_help(make_call: MakeCall, log: Log):
    script = "trap '' TERM; sleep 600 & echo $$ $!; while :; do sleep 600; done"
    commands = shell(script)
    commands._grace = 0.05
    running = asyncio.ensure_future(send(commands, make_call(IT)))
    await until(lambda: log.text.endswith("\n"))
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    for pid in map(int, log.text.split()):
        await until(partial(gone, pid))


async def test_a_leader_that_goes_does_not_save_its_children(make_call: MakeCall, log: Log):
    script = "(trap '' TERM; echo $$ ready; exec sleep 600) & echo child $!; wait"
    running = asyncio.ensure_future(send(shell(script), make_call(IT)))
    await until(lambda: "ready" in log.text and "child" in log.text)
    child = int(log.text.split("child ")[1].split()[0])
    running.cancel()
    await asyncio.wait([running])
    await until(lambda: gone(child))
    assert running.cancelled()


async def test_a_second_cancel_does_not_wait(make_call: MakeCall, log: Log):
    running = asyncio.ensure_future(send(shell("trap '' TERM; echo ready; while :; do sleep 60; done"), make_call(IT)))
    await until(lambda: "ready" in log.text)
    began = asyncio.get_running_loop().time()
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    assert asyncio.get_running_loop().time() - began < 4
    assert running.cancelled()


async def test_no_descriptor_is_left_open(make_call: MakeCall):
    before = set(Path("/proc/self/fd").iterdir())
    for script in ("echo x", "exit 1"):
        await send(shell(script), make_call(IT))
    await send(Commands({"it": CommandSetting(argv=("/no/such",))}), make_call(IT))
    running = asyncio.ensure_future(send(shell("exec sleep 600"), make_call(IT)))
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    after = set(Path("/proc/self/fd").iterdir())
    assert len(after) <= len(before) + 1  # the child watcher of asyncio may have opened its own


def test_only_registered_commands_are_accepted():
    commands = Commands({"backup": CommandSetting(argv=("true",)), "clean": CommandSetting(argv=("true",))})
    assert commands.capabilities() == ["command:backup", "command:clean"]
    commands.check(CommandTarget(command="backup"))
    with pytest.raises(Invalid) as caught:
        commands.check(CommandTarget(command="rm -rf /"))
    (problem,) = caught.value.problems
    assert (problem.path, problem.given, problem.accepted) == ("target.command", "rm -rf /", "backup, clean")


def test_with_nothing_registered_the_error_says_so():
    with pytest.raises(Invalid) as caught:
        Commands({}).check(IT)
    assert caught.value.problems[0].accepted == "none (nothing is registered on this node)"


async def test_a_command_that_is_not_registered_here_is_refused_at_the_send(make_call: MakeCall):
    outcome = await send(Commands({}), make_call(IT))
    assert outcome == Outcome(kind="refused", error="command 'it' is not registered on this node")
