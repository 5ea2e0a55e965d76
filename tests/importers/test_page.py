"""docs/import.md: every source that it shows is imported by the command that it shows, and the result can be loaded."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from onthedot.cli import main
from onthedot.jobsfile import read_jobs_file

PAGE = (Path(__file__).parents[2] / "docs" / "import.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
FILES = {
    {"json": "schedules.json"}.get(kind) or text.splitlines()[0].removeprefix("# "): text
    for kind, text in BLOCKS
    if kind not in ("sh", "toml")
}


def test_every_source_is_shown():
    assert {line.split()[2] for line in COMMANDS} == {"crontab", "apscheduler", "celery-beat", "cronjob", "eventbridge"}
    assert {re.sub(r":.*", ".py", line.split()[3]) for line in COMMANDS} == set(FILES)


@pytest.mark.parametrize("line", COMMANDS)
def test_it_is_imported(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in FILES:
        monkeypatch.delitem(sys.modules, Path(name).stem, raising=False)
    for name, text in FILES.items():
        Path(name).write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line)[1:])
    assert ended.value.code in (0, None)
    if "-o" in line:
        assert read_jobs_file("jobs.yaml").specs
