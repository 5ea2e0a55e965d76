"""The helper that starts `onthedot` as a process, on a stand-in command, so that its own mistakes show here."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import psutil
import pytest

from tests.conftest import Launch

SERVER = """
import http.server, os, subprocess, sys
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()
    def log_message(self, *args):
        pass
print("arguments", sys.argv[1:], "colour", os.environ.get("COLOUR"), flush=True)
if "--broken" in sys.argv:
    sys.exit("the store is away")
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print("child", child.pid, flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Ready).serve_forever()
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "stand-in"
    command.write_text(f"#!{sys.executable}\n{SERVER}")
    command.chmod(0o755)
    monkeypatch.setattr("tests.services.process.COMMAND", command)


@pytest.mark.usefixtures("stand_in")
async def test_a_node_is_given_when_it_is_ready(launch: Launch) -> None:
    node = await launch("--store", "sqlite:///x.db", env={"COLOUR": "blue"})
    assert node.exit_code is None
    assert f"['serve', '--port', '{node.port}', '--store', 'sqlite:///x.db'] colour blue" in node.output()


@pytest.mark.usefixtures("stand_in")
async def test_a_node_that_ends_at_once_is_told_with_its_output(launch: Launch) -> None:
    with pytest.raises(AssertionError, match=r"(?s)ended with 1.*the store is away"):
        await launch("--broken")


@pytest.mark.usefixtures("stand_in")
async def test_a_stop_gives_the_exit_code(launch: Launch) -> None:
    node = await launch()
    assert await node.stop() == -signal.SIGTERM


@pytest.mark.usefixtures("stand_in")
async def test_a_kill_takes_what_the_node_started_with_it(launch: Launch) -> None:
    node = await launch()
    child = psutil.Process(int(node.output().rpartition("child ")[2]))
    node.kill()
    node.kill()
    _, alive = psutil.wait_procs([child], timeout=10)
    assert [one for one in alive if one.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.usefixtures("stand_in")
async def test_nodes_stand_beside_each_other(launch: Launch) -> None:
    first, second = await launch(), await launch()
    assert first.port != second.port
    assert first.pid != second.pid
    assert str(second.port) not in first.output()
