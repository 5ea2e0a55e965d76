"""The first thing a person sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from onthedot.jobsfile import parse_jobs
from onthedot.launcher.banner import banner, without_password
from onthedot.settings import Settings, address
from onthedot.store import SyncReport
from onthedot.targets import Targets

JOBS = parse_jobs('[{"identifier": "a", "path": "f", "function_name": "g", "periodicity": "1m"}]', "json", "jobs.json")


def report(**changes) -> SyncReport:
    return SyncReport(**{"created": [], "updated": [], "unchanged": [], "removed": [], **changes})


def test_it_says_where_and_what_and_what_to_try():
    told = banner(Settings(), JOBS, report(created=["a"]), port=8000, colour=False)
    assert "http://127.0.0.1:8000" in told
    assert "sqlite:///onthedot.db" in told
    assert "1 from jobs.json (1 new)" in told
    assert "onthedot timer 5s http://127.0.0.1:5003/\n" in told
    assert "open to everybody on this machine" in told
    assert "onthedot keys create --name me --scope admin --url http://127.0.0.1:8000\n" in told
    assert "\033" not in told
    assert all(len(line) <= 80 for line in told.splitlines())


def test_another_port_is_part_of_what_to_try():
    told = banner(Settings(port=9000), None, None, port=9000, colour=False)
    assert "onthedot timer 5s http://127.0.0.1:5003/ --url http://127.0.0.1:9000" in told
    assert "jobs " not in told


def test_a_closed_server_shows_no_open_door():
    told = banner(Settings(), None, None, port=8000, is_open=False, colour=False)
    assert "open to everybody" not in told


@pytest.mark.parametrize(
    ("store", "how"),
    [
        ("sqlite:///onthedot.db", "requires an API key, and none exists. Stop, create one, and start again:"),
        ("postgresql://h/d", "none exists. Create one:"),
    ],
)
def test_one_that_nobody_has_a_key_for_says_how_to_make_it(store, how):
    settings = Settings(store=store, auth=("keys",))
    told = banner(settings, None, None, port=8000, is_open=False, keyless=True, colour=False)
    assert how in told
    assert f"onthedot keys create --name admin --scope admin --store '{store}'\n" in told
    assert "none exists" not in banner(settings, None, None, port=8000, is_open=False, colour=False)


@pytest.mark.parametrize("store", ["postgresql://u:s3cret@h/d", "postgresql://h/d?user=u&password=s3cret"])
def test_a_password_of_the_environment_is_not_in_the_command(store):
    settings = Settings(store=store, origins={"store": "$POSTGRES_HOST"})
    assert settings.first_key_command == "onthedot keys create --name admin --scope admin"
    typed = Settings(store=store, origins={"store": "flag"})
    assert "s3cret" in typed.first_key_command, "whoever typed it can type it again"


def test_one_that_only_executes_has_no_address():
    told = banner(Settings(roles=("executor",)), None, None, port=None, colour=False)
    assert "http://" not in told
    assert "no API" in told


def test_one_that_only_serves_writes_no_logs():
    told = banner(Settings(roles=("api",), logs_base_directory=Path("elsewhere")), None, None, port=8000, colour=False)
    assert "elsewhere" not in told
    assert "other nodes execute" in told


def test_workers_are_named():
    assert "4 processes" in banner(Settings(workers=4), None, None, port=8000, colour=False)


@pytest.mark.parametrize(
    ("synced", "said"),
    [
        (report(unchanged=["a"]), "(unchanged)"),
        (report(created=["a"], updated=["b"], removed=["c", "d"]), "(1 new, 1 changed, 2 removed)"),
    ],
)
def test_what_the_file_changed(synced, said):
    assert said in banner(Settings(), JOBS, synced, port=8000, colour=False)


def test_colours_are_for_terminals():
    assert "\033[1m" in banner(Settings(), None, None, port=8000, colour=True)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://otd:secret@db:5432/otd", "postgresql://otd:•••@db:5432/otd"),
        ("postgresql://otd@db/otd", "postgresql://otd@db/otd"),
        ("postgresql://:secret@db/otd", "postgresql://:•••@db/otd"),
        ("postgresql://db/otd?user=u&password=secret&x=1", "postgresql://db/otd?user=u&password=•••&x=1"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
    ],
)
def test_no_password_is_ever_shown(url, shown):
    assert without_password(url) == shown
    assert "secret" not in banner(Settings(store=url), None, None, port=8000, colour=False)


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("::1", "http://[::1]:80"),
        ("otd.example", "http://otd.example:80"),
    ],
)
def test_an_address_one_can_click_on(host, shown):
    assert f"http://{address(host, 80)}" == shown


def test_plugins_that_fail_are_named():
    targets = Targets(broken={"fax": "OSError: no line", "telex": "ImportError: no\x1b[2J module"})
    told = banner(Settings(), None, None, port=8000, targets=targets, colour=False)
    assert "plugins fax can't be used: OSError: no line\n        telex can't be used: ImportError: no\\x1b" in told
    assert "plugins" not in banner(Settings(), None, None, port=8000, targets=Targets(), colour=False)
