"""Crontabs: the firings are those of Debian's cron, as cronsim computes them, also when clocks change."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

import pytest
from cronsim import CronSim

from onthedot.importers.crontab import import_crontab
from onthedot.importers.findings import ImportedJobs
from onthedot.timing.zones import zone
from tests.importers.firings import AUTUMN, SPRING, file_of, firings, ms, reasons, shown

LINES = (
    "*/15 * * * *",
    "30 2 * * *",
    "30 1-3 * * *",
    "0,30 2-3 * * *",
    "5-35/10 2 * * *",
    "*/20 2 * * *",
    "30 */2 * * *",
    "15 * * * *",
    "0 0 13 * fri",
    "0 0 */2 * mon",
    "0 9-17/2 * * mon-fri",
    "0 12 1,15 jan-dec *",
    "45 23 31 12 *",
    "7 3 * * 7",
    "*/90 4 * * *",
    "0 0 */40 * *",
    "0 0 29 2 *",
)
PLACES = [*((line, "Europe/Berlin") for line in LINES), ("30 0 * * *", "America/Santiago"), ("0 */2 * * *", "UTC")]


def imported(text: str, *, tz: str = "UTC", system: bool = False, now: datetime = AUTUMN) -> ImportedJobs:
    found = ImportedJobs("crontab", "crontab", now=ms(now))
    import_crontab(text, found, tz=tz, system=system)
    file_of(found)
    return found


@pytest.mark.parametrize(("line", "tz"), PLACES)
def test_the_next_firings_are_those_of_cron(line: str, tz: str):
    for start in (SPRING, AUTUMN):
        found = imported(f"CRON_TZ={tz}\n{line} /bin/true\n", now=start)
        (job,) = found.jobs
        expected = [shown(at) for at in islice(CronSim(line, start.astimezone(zone(tz))), 20)]
        assert firings(job, start) == expected
        assert not [lost for lost in found.not_carried_over if lost.key]


@pytest.mark.parametrize(
    ("macro", "same"), [("@hourly", "0 * * * *"), ("@weekly", "0 0 * * 0"), ("@annually", "0 0 1 1 *")]
)
def test_macros(macro: str, same: str):
    (job,) = imported(f"{macro} /bin/true").jobs
    assert firings(job, AUTUMN, 5) == [shown(at) for at in islice(CronSim(same, AUTUMN), 5)]


def test_what_is_written_is_kept_where_it_means_the_same():
    found = imported("0 3 * * *  /usr/bin/backup\n*/5 9-17 * * MON-FRI poll", tz="Europe/Berlin")
    assert [job["schedule"] for job in found.jobs] == [
        {"cron": "0 3 * * *", "tz": "Europe/Berlin"},
        {"cron": "*/5 9-17 * * MON-FRI", "tz": "Europe/Berlin"},
    ]


def test_a_range_is_written_as_a_list_where_clocks_change():
    (job,) = imported("30 1-3 * * * x", tz="Europe/Berlin").jobs
    assert job["schedule"]["cron"] == "30 1,2,3 * * *"


def test_shell_environment_and_home():
    text = (
        "FIRST=1\n0 1 * * * one\nSHELL=/bin/bash\nHOME = /srv\nQUOTED=\" a b \"\n'ODD'='x=y'\n"
        "CRON_TZ=Asia/Tokyo\nTZ=Asia/Seoul\n0 2 * * * two\n"
    )
    found = imported(text)
    assert found.commands["one"] == {"argv": ["/bin/sh", "-c", "one"], "env": {"FIRST": "1"}, "cwd": "~"}
    assert found.commands["two"] == {
        "argv": ["/bin/bash", "-c", "two"],
        "env": {
            "FIRST": "1", "SHELL": "/bin/bash", "HOME": "/srv", "QUOTED": " a b ", "ODD": "x=y", "TZ": "Asia/Seoul",
        },
        "cwd": "/srv",
    }  # fmt: skip
    assert [job["schedule"]["tz"] for job in found.jobs] == ["UTC", "Asia/Tokyo"]
    assert any("TZ as the zone of schedules" in text for text in reasons(found))


@pytest.mark.parametrize(
    ("text", "command", "stdin"),
    [
        ("mail root%Hello,%%world", "mail root", "Hello,\n\nworld\n"),
        ("date +\\%F", "date +%F", None),
        ("cat %a\\%b%", "cat", "a%b\n"),
    ],
)
def test_percent_signs(text: str, command: str, stdin: str | None):
    found = imported(f"0 0 * * * {text}")
    (made,) = found.commands.values()
    assert made["argv"][2] == command
    assert made.get("stdin") == stdin


def test_one_attempt_and_no_catching_up():
    (spec,) = file_of(imported("RANDOM_DELAY=20\n0 0 * * * x")).specs
    assert spec.policy.retry.attempts == 1
    assert spec.policy.catch_up == "skip"
    assert str(spec.policy.jitter) == "20m"


def test_the_format_of_the_system():
    found = imported("17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly\n@daily www clean\n", system=True)
    assert [made["argv"][2] for made in found.commands.values()] == [
        "cd / && run-parts --report /etc/cron.hourly",
        "clean",
    ]
    assert [job["key"] for job in found.jobs] == ["run-parts", "clean"]
    told = reasons(found)
    assert "line 1: user root: the command runs as the user of the node" in told
    assert "line 2: user www: the command runs as the user of the node" in told


def test_what_is_not_carried_over_is_listed():
    text = (
        'MAILTO=ops@example.com\n@reboot start\nnonsense\n61 * * * * x\n0 0 30 2 * x\n@daily\nMAILTO=""\n0 0 * * * ok\n'
    )
    found = imported(text)
    assert [job["key"] for job in found.jobs] == ["ok"]
    by_line = {lost.item: lost for lost in found.not_carried_over}
    assert set(by_line) == {*(f"line {number}" for number in range(1, 7)), "all commands"}
    assert "ops@example.com" in by_line["line 1"].reason
    assert by_line["line 2"].what == "@reboot start"
    assert "minute" in by_line["line 4"].reason
    assert by_line["line 6"].what == "@daily"


def test_a_hyphen_before_the_line_as_in_the_crontab_of_suse():
    found = imported("-*/15 * * * * root test -x /usr/lib/cron/run-crons && /usr/lib/cron/run-crons\n", system=True)
    (job,) = found.jobs
    assert job["schedule"] == {"cron": "*/15 * * * *", "tz": "UTC"}


def test_random_times_become_a_stable_hash():
    found = imported("0~29 4 * * * x\n~ * * * * y")
    assert [job["schedule"]["cron"] for job in found.jobs] == ["H(0-29) 4 * * *", "H * * * *"]
    assert sum("random times" in told for told in reasons(found)) == 2


def test_keys_are_unique_and_speak_of_the_program():
    found = imported(
        "* * * * * /opt/a.sh\n* * * * * cd /x; /usr/bin/python3 /y/a.py -v\n* * * * * FOO=1 nice a\n* * * * * ( )\n"
    )
    assert [job["key"] for job in found.jobs] == ["a", "a-2", "a-3", "line-4"]
    assert list(found.commands) == [job["key"] for job in found.jobs]


def test_an_unknown_zone_is_named():
    found = imported("CRON_TZ=Mars/Olympus\n0 0 * * * x")
    assert found.jobs == []
    assert "'Mars/Olympus' is not an IANA time zone" in reasons(found)[0]
