"""The commands that docs/cli.md shows do what it says, typed as they stand. Only names of things are made real."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from onthedot.model.script import script_id

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
LINES = [
    line.partition(" # ")[0].strip()
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
# They stay, or need a channel: tests/cluster and tests/targets run them.
STARTED = ("onthedot serve", "onthedot echo", "onthedot alerts test")
JOBS = "jobs:\n- {key: from-page, schedule: {every: 1d}, target: {type: webhook, url: 'http://127.0.0.1:9/'}}\n"


def test_every_line_is_a_command():
    assert len(LINES) > 15
    assert all(line.startswith("onthedot ") for line in LINES)


def test_they_do_what_they_say(online, tmp_path):
    (tmp_path / "jobs.yaml").write_text(JOBS)
    (tmp_path / "report.py").write_text("print(1)\n")
    online("jobs", "delete", "nightly", "--yes")
    run = ""
    for line in LINES:
        if line.startswith(STARTED):
            continue
        if "runs logs" in line:
            run = online("jobs", "run", "nightly", "--json").json["id"]
        real = {"12-1763234567890": run, "reports.daily:send": "chores:greet", "postgresql://…": "sqlite:///page.db"}
        real["sha256:5f3a…"] = script_id(b"print(1)\n")
        for shown, meant in real.items():
            line = line.replace(shown, meant)
        if line.startswith("onthedot keys"):  # the first key would close the server that others use
            line = line.partition(" --url")[0]
            line += "" if "--store" in line else " --store sqlite:///page.db"
        done = online(*shlex.split(line)[1:])
        assert done.code == 0, f"{line}\n{done.out}{done.err}"
    assert (tmp_path / "all.yaml").exists()
    edited = online("jobs", "show", "nightly", "--json").json
    assert (edited["schedule"]["cron"], edited["policy"]["timeout"]) == ("0 4 * * *", "10s")
    online("jobs", "delete", "nightly", "--yes")


@pytest.mark.parametrize("started", STARTED)
def test_what_is_left_out_is_there(started):
    assert any(line.startswith(started) for line in LINES)
