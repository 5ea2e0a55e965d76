"""A crontab, imported and served as it is: its commands run, and `jobs apply` takes the file unedited."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from tests.services.ports import free_port
from tests.services.process import COMMAND, NodeProcess

CRONTAB = """\
MAILTO=ops@example.com
GREETING="hello there"
0 4 1 1 * echo "$GREETING in $PWD" && cat%line one%100\\%
@reboot echo never
"""


async def onthedot(*words: str, cwd: Path, url: str = "", code: int = 0) -> tuple[str, str]:
    process = await asyncio.create_subprocess_exec(
        COMMAND,
        *words,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "ONTHEDOT_URL": url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == code, err.decode()
    return out.decode(), err.decode()


async def test_a_crontab_from_import_to_the_log_of_a_run(tmp_path: Path):
    (tmp_path / "crontab").write_text(CRONTAB)
    _, told = await onthedot("import", "crontab", "crontab", "-o", "jobs.yaml", cwd=tmp_path)
    assert "not carried over: line 1: MAILTO" in told
    assert "not carried over: line 4: @reboot echo never" in told
    plain = await NodeProcess.serve(directory=tmp_path, port=free_port(), env={"ONTHEDOT_STORE": "sqlite:///plain.db"})
    try:
        _, err = await onthedot("jobs", "apply", "jobs.yaml", cwd=tmp_path, url=plain.url, code=1)
        assert "is not registered by the operator" in err
        assert "onthedot serve --jobs jobs.yaml" in err
        assert json.loads((await onthedot("jobs", "list", "--json", cwd=tmp_path, url=plain.url))[0]) == []
    finally:
        plain.kill()
    node = await NodeProcess.serve("--jobs", "jobs.yaml", directory=tmp_path, port=free_port())
    try:
        out, _ = await onthedot("jobs", "apply", "jobs.yaml", cwd=tmp_path, url=node.url)
        assert out == "0 of 1 jobs changed.\n"
        run = json.loads((await onthedot("jobs", "run", "echo", "--json", cwd=tmp_path, url=node.url))[0])
        log, _ = await onthedot("runs", "logs", "-f", run["id"], cwd=tmp_path, url=node.url)
        assert log.splitlines() == [f"hello there in {tmp_path}", "line one", "100%"]
    finally:
        node.kill()
