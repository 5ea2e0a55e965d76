"""The sample jobs: three files that say the same, and functions that do what they say."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from onthedot.jobsfile import JobsFile, read_jobs_file
from onthedot.model.job import JobSpec
from onthedot.model.run import Outcome
from onthedot.settings import Settings
from onthedot.targets import Call, EgressRule, FileGrants, Targets, build_targets
from tests.services.waiting import until
from tests.targets.conftest import Log
from tests.targets.sending import send, send_until_begun

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = ("jobs.json", "jobs.yaml", "jobs.toml")


def targets_of(file: JobsFile) -> Targets:
    """As a node given this file builds them."""
    targets = build_targets(
        Settings(function_processes=2), egress=EgressRule(allow_private=True), import_paths=[str(file.directory)]
    )
    targets.register(Settings(), {1: FileGrants([spec.target for spec in file.specs], file.commands)})
    return targets


def call_of(spec: JobSpec, log: Log, **params: Any) -> Call:
    return Call(
        run_id="1-1700000000000",
        job_id=1,
        key=spec.key,
        slot=1_700_000_000_000,
        attempt=1,
        target=spec.target,
        params=spec.params | params,
        log=log,
    )


def test_all_three_files_say_the_same():
    first, *others = [read_jobs_file(EXAMPLES / name) for name in FILES]
    for other in others:
        assert other.specs == first.specs
        assert other.commands == first.commands


@pytest.mark.parametrize("name", FILES)
def test_every_sample_job_is_accepted(name: str):
    file = read_jobs_file(EXAMPLES / name)
    targets = targets_of(file)
    assert len(file.specs) >= 8
    for spec in file.specs:
        targets.check(spec.target)


def test_both_forms_are_shown():
    text = (EXAMPLES / "jobs.json").read_text()
    assert '"identifier"' in text
    assert '"key"' in text


async def test_the_short_samples_run():
    file = read_jobs_file(EXAMPLES / "jobs.json")
    quick = {spec.key: spec for spec in file.specs if spec.key not in ("sleeper", "flaky")}
    logs = {key: Log() for key in quick}
    async with targets_of(file) as targets:
        outcomes = await asyncio.gather(
            *(send_until_begun(targets, partial(call_of, spec, logs[key])) for key, spec in quick.items())
        )
    seen: dict[Any, Outcome] = dict(zip(quick, outcomes, strict=True))
    assert all(outcome.ok for outcome in outcomes), seen
    assert seen["tick"].detail == {"result": "2023-11-14T22:13:20.000Z"}
    assert logs["greeting"].text == "Hello, On the Dot!\n" * 2
    assert seen["primes"].detail == {"result": {"below": 500_000, "primes": 41_538}}
    assert "naps in the time of one" in logs["naps"].text
    assert logs["disk-space"].text.count("\n") >= 2


async def test_the_flaky_one_fails_and_succeeds_as_told():
    file = read_jobs_file(EXAMPLES / "jobs.json")
    (flaky,) = (spec for spec in file.specs if spec.key == "flaky")
    log = Log()
    async with targets_of(file) as targets:
        assert (await send(targets, call_of(flaky, log, rate=0.0))).detail == {"result": "lucky"}
        unlucky = await send(targets, call_of(flaky, log, rate=1.0))
    assert unlucky == Outcome(kind="error", retryable=True, error="RuntimeError: bad luck")
    assert "bad luck this time (attempt 1)" in log.text


async def test_the_sleeper_says_what_it_does_and_can_be_stopped():
    file = read_jobs_file(EXAMPLES / "jobs.json")
    (sleeper,) = (spec for spec in file.specs if spec.key == "sleeper")
    log = Log()
    async with targets_of(file) as targets:
        sleeping = asyncio.ensure_future(send(targets, call_of(sleeper, log)))
        await until(lambda: log.text == "going to sleep for 120 s\n")
        sleeping.cancel()
        await asyncio.wait([sleeping])
    assert sleeping.cancelled()
