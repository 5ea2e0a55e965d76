"""`onthedot import`: where its output goes, and what it refuses."""

from __future__ import annotations

import pytest

LINES = "MAILTO=me\n0 3 * * * backup\n@reboot x\n"


def test_yaml_on_standard_output_and_remarks_on_standard_error(cli):
    result = cli("import", "crontab", "-", "--tz", "Europe/Berlin", stdin=LINES)
    assert result.code == 0
    assert result.out.startswith("# Imported from crontab standard input by onthedot ")
    assert "cron: 0 3 * * *" in result.out
    assert "not carried over: line 3: @reboot x" in result.err
    assert "Needs: commands of this file" in result.err


def test_json_has_the_remarks_too(cli, tmp_path):
    (tmp_path / "tab").write_text(LINES)
    result = cli("import", "crontab", "tab", "-o", "jobs.json", "--json")
    assert result.code == 0
    found = result.json
    assert (found["file"], [job["key"] for job in found["jobs"]], list(found["commands"])) == (
        "jobs.json",
        ["backup"],
        ["backup"],
    )
    assert [lost["item"] for lost in found["not_carried_over"]] == ["line 1", "line 3", *["all commands"] * 2]
    assert found["not_carried_over"][1].keys() == {"item", "what", "reason", "key"}
    assert '"argv"' in (tmp_path / "jobs.json").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["crontab", "missing"], 1, "missing: can't be read: No such file"),
        (["crontab", "-", "--tz", "Berlin"], 2, "did you mean Europe/Berlin"),
        (["crontab", "-", "-o", "jobs.toml"], 2, "accepted are .yaml, .yml and .json"),
        (["crontab", "-", "-o", "no/such/jobs.yaml"], 1, "can't be written"),
        (["cronjob", "-"], 1, "no `kind`"),
        (["eventbridge", "-"], 1, "not valid JSON"),
    ],
)
def test_what_is_refused(cli, arguments, code, told):
    result = cli("import", *arguments, stdin=LINES)
    assert result.code == code
    assert told in " ".join(result.err.replace("│", " ").split())


def test_hostile_text_stays_in_its_comment(cli, tmp_path):
    """What a source says must not become a line of the file, nor reach the terminal unescaped."""
    hostile = "@reboot \x1b[2J\rjobs: evil\n0 3 * * * ok # \x1b]0;x\n"
    (tmp_path / "tab").write_text(hostile)
    result = cli("import", "crontab", "tab", "-o", "jobs.yaml")
    assert result.code == 0, result.err
    assert "\x1b" not in result.err
    written = (tmp_path / "jobs.yaml").read_text()
    assert "\x1b" not in written
    assert [line for line in written.splitlines() if line.startswith("jobs:")] == ["jobs:"]
