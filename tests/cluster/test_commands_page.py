"""docs/commands.md, typed as it stands: the settings, the program and the commands, on a real node."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cluster.walking import ask, shell
from tests.services.waiting import until

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
MARKED = dict(re.findall(r"^<!-- (?:file|run|serve): (\S+) -->\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


async def test_the_page_does_what_it_says(cluster, tmp_path: Path):
    assert len(MARKED) == PAGE.count("\n```") // 2, "each block of the page has a mark"
    for name in ("onthedot.toml", "backup.sh"):
        (tmp_path / name).write_text(MARKED[name])
    assert MARKED["node"].split() == ["onthedot", "serve"]
    node = cluster.start("--store", f"sqlite:///{tmp_path}/jobs.db")
    await node.ready()
    out, code = await shell(node, f"set -e\n{MARKED['create']}", tmp_path)
    assert code == 0, out

    async def done() -> bool:
        _, found = await ask(node, "GET", "/v1/jobs/by-key/nightly-backup/runs?status=DONE")
        return bool(found["items"])

    await until(done, "the run is done")
    _, found = await ask(node, "GET", "/v1/jobs/by-key/nightly-backup/runs?status=DONE")
    run = found["items"][0]
    assert run["result"] == {"files": 12}
    out, code = await shell(node, f"onthedot runs logs {run['id']}", tmp_path)
    assert code == 0, out
    assert f"backup --full of {run['scheduled_for']} to /var/backups, attempt 1" in out
    assert 'asked for: {"region":"eu"}' in out

    status, told = await ask(
        node, "POST", "/v1/jobs", {"schedule": {"in": "1h"}, "target": {"type": "command", "command": "x"}}
    )
    assert (status, told["errors"][0]["accepted"]) == (422, "backup")
