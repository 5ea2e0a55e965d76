"""docs/checkins.md: every example of it, against a real server and with a real shell, crontab and curl."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from onthedot.client import AsyncClient
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.schedule import Schedule
from onthedot.model.targets.checkin import CheckinTarget
from tests.services.ports import free_port
from tests.services.process import COMMAND, NodeProcess
from tests.services.waiting import until

SECOND = Duration(1000)
PAGE = (Path(__file__).parents[2] / "docs" / "checkins.md").read_text()
CREATE, REPORT = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
(CRONTAB,) = re.findall(r"```crontab\n(.*?)```", PAGE, re.DOTALL)


async def run(command: str, directory: Path, server: str) -> str:
    """The command by a shell, with /usr/local/bin/backup in a directory of ours."""
    text = command.replace("/usr/local/bin/backup", str(directory / "backup")).replace("onthedot ", f"{COMMAND} ", 1)
    env = {"PATH": "/usr/bin:/bin", "ONTHEDOT_URL": server, "HOME": str(directory)}
    args = ["sh", "-c", text]
    done = await asyncio.to_thread(
        subprocess.run, args, capture_output=True, text=True, env=env, cwd=directory, timeout=60
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


async def test_the_examples_do_what_the_page_says(tmp_path: Path):
    if shutil.which("curl") is None:
        pytest.fail("curl is missing")
    backup = tmp_path / "backup"
    backup.write_text("#!/bin/sh\necho 12 files\nexit ${CODE:-0}\n")
    backup.chmod(0o755)
    node = await NodeProcess.serve("--store", "sqlite:///t.db", directory=tmp_path, port=free_port())
    try:
        await carry_out(tmp_path, node.url)
        await missed(node.url)
    finally:
        node.kill()


async def carry_out(directory: Path, server: str) -> None:
    await run(CREATE, directory, server)
    shown = await run("onthedot jobs show nightly-backup", directory, server)
    found = re.search(r"ping URL\s+(http\S+)", shown)
    assert found, shown
    url = found[1]
    async with AsyncClient(server) as client:
        job = await client.get_job_by_key("nightly-backup")
        assert (job.ping_url, str(job.schedule.cron), str(job.target.report_within)) == (url, "0 3 * * *", "30m")
        minute, hour, *_rest, line = CRONTAB.strip().split(" ", 5)
        assert [minute, hour] == ["0", "3"]
        await client.run_job(job.id)
        await until_open(client, job.id)
        await run(line.replace("PING_URL", url), directory, server)
        assert (await client.get_job(job.id)).stats.last_status == "DONE"

        await client.run_job(job.id)
        await until_open(client, job.id)
        await run("CODE=3; export CODE\n" + REPORT.replace("PING_URL", url), directory, server)
        ended = (await client.list_runs(job_id=job.id, status="FAILED")).items[0]
        assert ended.error == "12 files"
        assert ended.outcome is not None
        assert ended.outcome["exit_code"] == 3
        assert ended.duration_ms is not None
        assert (await client.run_logs(ended.id)).strip() == "12 files"
        assert "fail (exit status 3)" in await run("onthedot jobs show nightly-backup", directory, server)


async def until_open(client: AsyncClient, job_id: int) -> None:
    async def is_open() -> bool:
        runs = (await client.list_runs(job_id=job_id, status="EXECUTING")).items
        return any(each.waiting == "check-in" for each in runs)

    await until(is_open, "the run waits for its check-in")


async def missed(server: str) -> None:
    async with AsyncClient(server) as client:
        job = await client.create_job(JobSpec(schedule=Schedule(in_=SECOND), target=CheckinTarget(grace=SECOND)))

        async def is_missed() -> bool:
            runs = (await client.list_runs(job_id=job.id, status="FAILED")).items
            return [each.error for each in runs] == ["missed: no check-in within 1s"]

        await until(is_missed, "the run is missed", 15)
