"""docs/scripts.md, typed as it stands: what it shows happens. Only ids of runs are made real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster.walking import ask, shell
from tests.services.process import NodeProcess
from tests.services.waiting import until

PAGE = (Path(__file__).parents[2] / "docs" / "scripts.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SHOWN = "1-1767225600000-m1"


def block_with(words: str) -> str:
    (found,) = [block for block in BLOCKS if words in block]
    return str(found)


@pytest.fixture
async def node(cluster, tmp_path) -> NodeProcess:
    started: NodeProcess = cluster.start("--store", f"sqlite:///{tmp_path}/jobs.db")
    await started.ready()
    return started


async def test_the_quick_start(node, tmp_path):
    before, run, after = block_with("cat > report.py").partition("onthedot jobs run report")
    out, code = await shell(node, f"set -e\n{before}{run} --json", tmp_path)
    assert code == 0, out
    (run_id,) = re.findall(r'"id": ?"([^"]+)"', out)

    async def done() -> bool:
        _, found = await ask(node, "GET", f"/v1/runs/{run_id}")
        return bool(found.get("status") == "DONE")

    await until(done, "the run is done")
    rest = after.partition("\n")[2].replace(SHOWN, run_id)
    out, code = await shell(node, f"set -e\n{rest}", tmp_path)
    assert code == 0, out
    assert "counting monday" in out
    assert re.search(r'result +\{"rows": ?3, ?"day": ?"monday"\}', out), out


async def test_the_same_with_the_api(node, tmp_path):
    out, code = await shell(node, block_with("curl -X POST").replace("http://127.0.0.1:8000", node.url), tmp_path)
    assert code == 0, out
    assert '"key":"hello"' in out.replace(" ", "")


async def test_uploaded_scripts(node, tmp_path):
    (tmp_path / "report.py").write_text("print(1)\n")
    out, code = await shell(node, block_with("scripts put report.py"), tmp_path)
    assert code == 0, out
    assert "the script is used by job uploaded" in out
    assert re.search(r"Script sha256:[0-9a-f]+ is deleted\.", out)
