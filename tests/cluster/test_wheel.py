"""The README's first lines, with the wheel that they build in the place of this checkout: everything is in it. (What
they take on a machine that has nothing, `make test-deploy` measures.)"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path

from onthedot.echo import EchoServer
from tests.deploy.fresh_machine import blocks_of_readme
from tests.services.orphan_reaper import orphan_reaper
from tests.services.waiting import until

ROOT = Path(__file__).parents[2]
ENTRY = """
import importlib, sys
place, entry = sys.argv.pop(1), sys.argv.pop(1)
module, _, function = entry.partition(":")
found = importlib.import_module(module)
assert found.__file__.startswith(place), found.__file__
getattr(found, function)()
"""


def test_the_readme_begins_with_building_installing_and_starting() -> None:
    (build, environment, install, serve), (receiver, timer) = blocks_of_readme(2)
    assert build == "make dist"
    assert environment.startswith("python3 -m venv ")
    assert install == "pip install dist/onthedot-*.whl"
    assert serve == "onthedot serve"
    assert receiver == "onthedot echo"
    assert timer.startswith("onthedot timer 5s http://127.0.0.1:5003/")


async def test_the_wheel_serves(tmp_path: Path, free_port: Callable[[], int], receiver: EchoServer) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    place = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    entries = ConfigParser()
    entries.read(next(place.glob("*.dist-info")) / "entry_points.txt")
    command = [sys.executable, "-c", ENTRY, str(place), entries["console_scripts"]["onthedot"]]
    url = f"http://127.0.0.1:{free_port()}"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(place), "ONTHEDOT_URL": url}
    log = tmp_path / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*command, "serve", "--port", url.rpartition(":")[2]],
            cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    orphan_reaper.runs(-server.pid, signal.SIGKILL)
    try:
        await until(lambda: "stop    Ctrl-C" in log.read_text() or server.poll() is not None, "it serves")
        assert server.poll() is None, log.read_text()
        timer = [*command, "timer", "1s", f"{receiver.url}ring"]
        subprocess.run(timer, cwd=tmp_path, env=env, check=True, capture_output=True, timeout=60)
        await until(lambda: receiver.count, "the webhook arrives")
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
        orphan_reaper.ended(-server.pid)
