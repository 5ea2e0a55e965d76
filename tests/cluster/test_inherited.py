"""What a node starts inherits no descriptor of the node's: no listener, no database, no lock, nobody's connection."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cluster.nodes import post
from tests.cluster.walking import ask
from tests.services.waiting import until

LISTING = """import os
for number in os.listdir('/proc/self/fd'):
    try:
        print('fd', number, os.readlink(f'/proc/self/fd/{number}'))
    except OSError:
        pass  # the folder itself, closed again
"""


async def test_commands_and_functions_inherit_nothing(store_url, cluster, tmp_path: Path):
    """On PostgreSQL under a supervisor, which hands the listening socket down to its workers."""
    workers = 1 if store_url.startswith("sqlite") else 2
    body = "".join(f"    {line}\n" for line in LISTING.splitlines())
    (tmp_path / "looks.py").write_text(f"def look():\n{body}")
    (tmp_path / "look.py").write_text(LISTING)
    (tmp_path / "onthedot.toml").write_text('functions = ["looks"]\n[commands.look]\nargv = ["python3", "look.py"]\n')
    node = cluster.start("--store", store_url, "--workers", str(workers))
    await node.ready()
    for target, links in (
        ({"type": "command", "command": "look"}, 0),
        ({"type": "function", "function": "looks:look"}, 2),  # calls and answers, and the pipe it prints to
    ):
        job = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": target})

        async def log(job_id: int = job["id"]) -> str:
            _, page = await ask(node, "GET", f"/v1/runs?job_id={job_id}&status=DONE")
            if not page["items"]:
                return ""
            return str((await ask(node, "GET", f"/v1/runs/{page['items'][0]['id']}/logs"))[1])

        text = await until(log, f"{json.dumps(target)} ran")
        found = dict(re.findall(r"^fd (\d+) (.+)$", text, re.MULTILINE))
        assert found, text
        assert {"0", "1", "2"} <= found.keys()
        beyond = {number: where for number, where in found.items() if int(number) > 2 and "/proc/" not in where}
        assert sum(where.startswith("socket:") for where in beyond.values()) == links, beyond
        assert all(where.startswith("socket:") or where == found["1"] for where in beyond.values()), beyond
