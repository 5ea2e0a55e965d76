"""The Python of the README and of docs/embedding.md does what it says. Only its waiting is made shorter."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services.waiting import until

ROOT = Path(__file__).parents[2]
SHORTER = {"*/5 * * * * *": "* * * * * *", '"10s"': '"1s"', '"30s"': '"1s"'}


def programs(name: str) -> list[str]:
    """The blocks that import us, as they stand."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if "from onthedot import Scheduler" in block]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("README.md", ["every five seconds, on the dot"]),
        ("docs/embedding.md", ["refreshed", "a plain function runs in a thread"]),
    ],
)
async def test_it_runs_as_written(tmp_path, name, says):
    (text,) = programs(name)
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    (tmp_path / "program.py").write_text(text)
    out = tmp_path / "out"
    with out.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-u", "program.py"], cwd=tmp_path, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        await until(lambda: all(line in out.read_text() for line in says) or process.poll() is not None, "it says so")
        assert process.poll() is None, out.read_text()
        process.send_signal(signal.SIGINT)
        code = process.wait(20)
    finally:
        process.kill()
        process.wait()
    assert (tmp_path / "jobs.db").exists()
    if "\nscheduler.run()\n" in text:
        assert code == 0
        assert "Traceback" not in out.read_text()


def test_there_is_something_to_run():
    assert [len(programs(name)) for name in ("README.md", "docs/embedding.md")] == [1, 1]
