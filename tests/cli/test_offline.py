"""Commands that need no server: preview, keys, migrate, doctor, help."""

from __future__ import annotations

import socket
import sqlite3
import sys

import pytest

from onthedot.cli.preview import schedule_of
from onthedot.model.duration import Duration
from onthedot.model.schedule import Schedule
from tests.services.ports import free_port


def test_preview_says_when_and_what_it_means(cli):
    seen = cli("preview", "30 2 * * *", "--tz", "Europe/Berlin", "-n", "3", "--after", "2026-03-28T00:00:00Z")
    assert seen.code == 0
    lines = seen.out.splitlines()
    assert lines[0] == "At 02:30"
    assert "2026-03-28T01:30:00.000Z  Sat 2026-03-28 02:30:00 CET" in lines[2]
    assert any(line.startswith("Note: ") for line in lines)
    assert all(len(line) <= 80 for line in lines[:5])


def test_preview_as_json(cli):
    seen = cli("preview", "@daily", "-n", "2", "--after", "2026-01-01T00:00:00Z", "--json").json
    assert seen["fires"] == ["2026-01-02T00:00:00.000Z", "2026-01-03T00:00:00.000Z"]


def test_preview_is_in_the_default_zone(cli, monkeypatch):
    monkeypatch.setenv("ONTHEDOT_DEFAULT_TZ", "Europe/Berlin")
    asked = ("preview", "0 3 * * *", "-n", "1", "--after", "2026-01-01T03:30:00Z", "--json")
    assert cli(*asked).json["fires"] == ["2026-01-02T02:00:00.000Z"]
    assert cli(*asked, "--tz", "UTC").json["fires"] == ["2026-01-02T03:00:00.000Z"]


@pytest.mark.parametrize(
    ("written", "schedule"),
    [
        ("90s", Schedule(every=Duration.parse("90s"))),
        ("PT5M", Schedule(every=Duration.parse("5m"))),
        ("2033-01-01T10:00:00Z", Schedule(at="2033-01-01T10:00:00Z")),
        ("2033-01-01", Schedule(at="2033-01-01")),
        ("*/5 * * * *", Schedule(cron="*/5 * * * *")),
        ("@hourly", Schedule(cron="@hourly")),
        ("nonsense", Schedule(cron="nonsense")),
    ],
)
def test_what_kind_of_schedule_is_meant(written, schedule):
    assert schedule_of(written, "UTC") == schedule


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["61 * * * *"], "schedule.cron"),
        (["* * * * *", "--tz", "Mars/Base"], "schedule.tz"),
        (["* * * * *", "--after", "noon"], "after"),
        (["2001-01-01"], "schedule.at"),
    ],
)
def test_a_schedule_that_can_not_be_is_told(cli, arguments, told):
    result = cli("preview", *arguments)
    assert result.code == 1
    assert told in result.err
    assert "Traceback" not in result.err


def test_keys_of_other_tenants(cli, tmp_path):
    store = f"sqlite:///{tmp_path}/keys.db"
    cli("keys", "create", "--name", "ours", "--store", store)
    cli("keys", "create", "--name", "theirs", "--tenant", "acme", "--store", store)
    (ours,) = cli("keys", "list", "--store", store, "--json").json
    (theirs,) = cli("keys", "list", "--tenant", "acme", "--store", store, "--json").json
    assert (ours["name"], theirs["name"], theirs["tenant"]) == ("ours", "theirs", "acme")
    assert cli("keys", "revoke", theirs["id"], "--store", store).code == 1
    assert cli("keys", "revoke", theirs["id"], "--tenant", "acme", "--store", store).code == 0
    assert "revoked" in cli("keys", "list", "--tenant", "acme", "--store", store).out
    unknown = cli("keys", "list", "--tenant", "nobody", "--store", store)
    assert (unknown.code, "tenant 'nobody' not found" in unknown.err) == (1, True)


def test_keys_on_the_store_itself(cli, tmp_path):
    store = f"sqlite:///{tmp_path}/keys.db"
    empty = cli("keys", "list", "--store", store)
    assert empty.out.startswith("No keys.")
    made = cli("keys", "create", "--name", "ci", "--scope", "write", "--expires", "90d", "--store", store)
    assert made.code == 0
    assert made.out.startswith("otd_")
    assert len(made.out.split()) == 1
    assert "not shown again" in made.err
    (listed,) = cli("keys", "list", "--store", store, "--json").json
    assert (listed["name"], listed["scope"]) == ("ci", "write")
    assert made.out.strip() not in str(listed)
    assert "expires in 89d" in cli("keys", "list", "--store", store).out
    assert cli("keys", "revoke", listed["id"], "--store", store).out == f"Key {listed['id']} is revoked.\n"
    assert "revoked" in cli("keys", "list", "--store", store).out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["create"], 2),
        (["create", "--name", "x", "--scope", "boss"], 2),
        (["create", "--name", "x", "--expires", "soon"], 1),
        (["revoke", "x"], 2),
        (["revoke", "4711"], 1),
    ],
)
def test_wrong_keys(cli, arguments, code):
    result = cli("keys", *arguments)
    assert result.code == code
    assert "Traceback" not in result.err


def test_keys_go_through_the_server_that_holds_the_file(online, node, tmp_path):
    held = f"sqlite:///{node.directory}/onthedot.db"
    listed = online("keys", "list", "--store", held)
    assert listed.code == 0, listed.err
    assert listed.out.startswith("No keys.")


def test_the_server_that_holds_the_file_is_found_wherever_it_listens(cli, node):
    """Neither its port nor its address is given: it wrote them down."""
    listed = cli("keys", "list", "--store", f"sqlite:///{node.directory}/onthedot.db")
    assert (listed.code, listed.out[:8]) == (0, "No keys."), listed.err


def test_keys_heed_the_address_of_the_server(cli, tmp_path, monkeypatch):
    nobody = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("ONTHEDOT_URL", nobody)
    for arguments in (("list",), ("create", "--name", "x"), ("revoke", "1")):
        result = cli("keys", *arguments)
        assert result.code == 1
        assert nobody.removeprefix("http://") in result.err
    assert list(tmp_path.iterdir()) == [], "no store was made on the side"
    monkeypatch.delenv("ONTHEDOT_URL")
    assert cli("keys", "list", "--url", nobody).code == 1
    assert cli("keys", "list", "--url", nobody, "--store", "sqlite:///x.db").code == 2
    assert list(tmp_path.iterdir()) == []


def test_without_a_server_the_first_key_makes_the_store(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("ONTHEDOT_PORT", str(free_port()))
    made = cli("keys", "create", "--name", "me")
    assert made.code == 0, made.err
    assert "This is the first key" in made.err
    assert "There is no admin key yet" in made.err
    assert (tmp_path / "onthedot.db").exists()
    assert "This is the first key" not in cli("keys", "create", "--name", "me", "--scope", "admin").err


def test_migrate_prints_the_script_and_applies_nothing(cli, tmp_path):
    file = tmp_path / "s.db"
    store = f"sqlite:///{file}"
    script = cli("migrate", "--sql", "--store", store)
    assert script.code == 0
    assert "CREATE TABLE jobs" in script.out
    assert not file.exists()
    sqlite3.connect(file).executescript(script.out)
    assert cli("migrate", "--check", "--store", store).out == "Up to date.\n"
    assert cli("migrate", "--sql", "--store", store).out.endswith("0 migrations. Nothing to do.\n")
    everything = cli("migrate", "--sql", "--all", "--json", "--store", "postgresql://nobody@192.0.2.1/x?schema=s").json
    assert everything["migrations"][0].startswith("0001 ")
    assert 'SET search_path TO "s";' in everything["sql"]
    assert cli("migrate", "--all", "--store", store).code == 2
    assert cli("migrate", "--check", "--sql", "--store", store).code == 2


def test_migrate_and_its_check(cli, tmp_path):
    store = f"sqlite:///{tmp_path}/new.db"
    missing = cli("migrate", "--check", "--store", store)
    assert missing.code == 1
    assert missing.out.startswith("Pending: 0001 ")
    assert cli("migrate", "--store", store).out.startswith("Applied: ")
    assert cli("migrate", "--store", store).out == "Up to date; nothing to apply.\n"
    assert cli("migrate", "--check", "--store", store, "--json").json == {"missing": []}


def test_a_key_that_has_expired_says_so(cli, tmp_path):
    store = f"sqlite:///{tmp_path}/otd.db"
    assert cli("keys", "create", "--name", "short", "--expires", "1h", "--store", store).code == 0
    with sqlite3.connect(tmp_path / "otd.db") as file:
        file.execute("UPDATE api_keys SET expires_at = created_at")
    listed = cli("keys", "list", "--store", store).out.splitlines()[-1]
    assert "  expired " in listed
    assert listed.endswith(" ago")


def test_doctor_on_a_good_store(cli, tmp_path):
    store = f"sqlite:///{tmp_path}/good.db"
    cli("migrate", "--store", store)
    found = cli("doctor", "--store", store)
    assert found.code == 0, found.out
    assert "SQLite synchronous FULL" in found.out
    assert "no nodes are alive, so nothing fires" in found.out
    assert "start one with `onthedot serve`" in found.out


def test_doctor_on_postgres(cli, postgres_url):
    found = cli("doctor", "--store", postgres_url, "--json").json
    by_subject = {item["subject"]: item for item in found}
    assert by_subject["fsync"]["state"] == "ok"
    assert "fsync on" in by_subject["fsync"]["found"]
    assert by_subject["clock"]["state"] == "ok"


def test_doctor_on_a_database_that_is_away(cli, free_port):
    port = free_port()
    found = cli("doctor", "--store", f"postgresql://nobody:secret@127.0.0.1:{port}/none")
    assert found.code == 1
    assert f"127.0.0.1:{port}: connection refused" in found.out
    assert "is PostgreSQL running" in found.out
    assert "secret" not in found.out


@pytest.mark.parametrize(
    ("place", "found", "installed"),
    [
        ("s3://jobs/scripts", "which requires: pip install 'onthedot[s3]'", False),
        ("s3://jobs?zone=eu", "Accepted: s3://BUCKET/PREFIX?endpoint=URL&region=NAME", True),
        ("s3://[jobs", "Accepted: s3://BUCKET/PREFIX?endpoint=URL&region=NAME", True),
    ],
)
def test_doctor_goes_on_after_an_object_store_that_does_not_open(cli, monkeypatch, place, found, installed):
    monkeypatch.setenv("ONTHEDOT_OBJECT_STORE", place)
    if not installed:
        monkeypatch.setitem(sys.modules, "obstore.store", None)
    answer = cli("doctor", "--json")
    assert answer.code == 1, answer.err
    by_subject = {item["subject"]: item for item in answer.json}
    assert found in by_subject["objects"]["found"]
    assert "correct OBJECT_STORE" in by_subject["objects"]["advice"]
    assert [subject for subject, item in by_subject.items() if item["state"] == "wrong"] == ["objects"]
    assert {"versions", "settings", "disk", "descriptors", "store"} <= by_subject.keys()


def test_doctor_on_a_store_that_lacks_tables(cli, tmp_path):
    (tmp_path / "new.db").touch()
    found = cli("doctor", "--store", f"sqlite:///{tmp_path}/new.db")
    assert found.code == 0
    assert "has pending migrations" in found.out


def test_who_only_looks_makes_nothing(cli, tmp_path):
    """Neither the file nor what lies beside it: a look by root must not leave files that the service can't open."""
    store = f"sqlite:///{tmp_path}/new.db"
    found = cli("doctor", "--store", store)
    assert found.code == 0
    assert "does not exist yet" in found.out
    assert cli("migrate", "--check", "--store", store).code == 1
    assert list(tmp_path.iterdir()) == []
    cli("migrate", "--store", store)
    (tmp_path / "new.db-lock").unlink()
    there = (tmp_path / "new.db").read_bytes()
    assert cli("doctor", "--store", store).code == 0
    assert cli("migrate", "--check", "--store", store).code == 0
    assert [file.name for file in tmp_path.iterdir()] == ["new.db"]
    assert (tmp_path / "new.db").read_bytes() == there


def test_who_only_looks_makes_nothing_in_postgres(cli, postgres_server, empty_postgres_url):
    store = f"{empty_postgres_url}?schema=later"
    assert "has pending migrations" in cli("doctor", "--store", store).out
    assert cli("migrate", "--check", "--store", store).out.startswith("Pending: 0001 ")
    assert cli("migrate", "--store", store).out.startswith("Applied: ")
    assert cli("migrate", "--check", "--store", store).code == 0
    assert "has pending migrations" in cli("doctor", "--store", empty_postgres_url).out


def test_a_role_that_may_not_create_is_told_so(cli, postgres_server, empty_postgres_url):
    postgres_server.execute("CREATE ROLE visitor LOGIN")
    try:
        store = empty_postgres_url.replace("postgres@", "visitor@")
        found = cli("doctor", "--store", store)
        assert found.code == 1
        assert "GRANT USAGE, CREATE ON SCHEMA public TO visitor;" in found.out
        checked = cli("migrate", "--check", "--store", store)
        assert checked.code == 1
        assert "GRANT USAGE, CREATE ON SCHEMA public TO visitor;" in checked.err
        assert "CREATE SCHEMA mine AUTHORIZATION visitor;" in cli("doctor", "--store", f"{store}?schema=mine").out
    finally:
        postgres_server.execute("DROP ROLE visitor")


def test_doctor_asks_the_server_that_holds_the_file(online, node):
    found = online("doctor", "--store", f"sqlite:///{node.directory}/onthedot.db")
    assert found.code == 0, found.out
    assert "is in use by a running server" in found.out
    assert "1 alive" in found.out


def test_doctor_finds_the_server_that_holds_the_file(cli, node):
    """Not another server, which happens to be at the default address."""
    found = cli("doctor", "--store", f"sqlite:///{node.directory}/onthedot.db")
    assert f"{node.url} is up" in found.out
    assert found.code == 0, found.out


def test_doctor_asks_the_server_that_was_named(cli, node):
    """Also from another machine, where there is no store."""
    found = cli("doctor", "--url", node.url)
    assert found.code == 0, found.out
    assert f"{node.url} is up" in found.out
    assert "1 alive" in found.out
    assert "does not exist yet" not in found.out
    away = f"http://127.0.0.1:{free_port()}"
    found = cli("doctor", "--url", away)
    assert (found.code, f"✗ server    can't reach {away}: connection refused" in found.out) == (1, True)
    found = cli("doctor", "--url", away, "--store", f"sqlite:///{node.directory}/onthedot.db")
    assert (found.code, f"can't reach {away}" in found.out) == (1, True)


def test_doctor_asks_the_named_server_beside_postgres(cli, postgres_url, node):
    found = cli("doctor", "--store", postgres_url, "--url", node.url)
    assert found.code == 0, found.out
    assert found.out.count("schema up to date") == found.out.count(f"{node.url} is up") == 1
    assert found.out.count(" alive") <= 1, "the store has told of its nodes"
    found = cli("doctor", "--store", postgres_url, "--url", f"http://127.0.0.1:{free_port()}")
    assert (found.code, "connection refused" in found.out) == (1, True)


def test_echo_on_a_port_that_is_taken(cli):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        seen = cli("echo", "--port", port)
    told = f"Error: can't listen on 127.0.0.1:{port}: address already in use; try another --port\n"
    assert (seen.code, seen.err) == (1, told)


def test_doctor_on_wrong_settings(cli, monkeypatch):
    monkeypatch.setenv("ONTHEDOT_PROT", "1")
    found = cli("doctor")
    assert found.code == 1
    assert "Did you mean ONTHEDOT_PORT?" in found.out


def test_doctor_on_a_bad_jobs_file(cli, tmp_path):
    (tmp_path / "jobs.json").write_text('{"jobs": [\n{"identifier": "a"}]}')
    found = cli("doctor")
    assert found.code == 1
    assert "jobs.json:2" in found.out


COMMANDS = """
serve, jobs, runs, dead, keys, timer, preview, nodes, stats, migrate, doctor, echo,
jobs list, jobs show, jobs add, jobs edit, jobs pause, jobs resume, jobs run, jobs delete, jobs apply, jobs export,
runs list, runs show, runs logs, runs cancel, runs retry, dead list, dead redrive, keys create, keys list, keys revoke
"""
WITHOUT_DATA = ("serve", "jobs", "runs", "dead", "keys")


@pytest.mark.parametrize("command", [name.strip() for name in COMMANDS.split(",")])
def test_every_command_has_help(cli, command):
    helped = cli(*command.split(), "--help")
    assert helped.code == 0
    assert "Usage: onthedot" in helped.out
    assert ("--json" in helped.out) is (command not in WITHOUT_DATA)


def test_the_version(cli):
    from onthedot.version import __version__

    assert cli("--version").out == f"onthedot {__version__}\n"


@pytest.mark.parametrize("arguments", [["nonsense"], ["jobs", "nonsense"], ["jobs", "show"], ["serve", "--port", "x"]])
def test_wrong_usage_is_two(cli, arguments):
    assert cli(*arguments).code == 2


def test_help_imports_nothing_heavy():
    import subprocess
    import sys

    heavy = "aiohttp asyncpg starlette uvicorn structlog jinja2 yaml rich"
    described = "import sys; from onthedot.cli.app import command_line; command_line()"
    script = f"{described}; print([m for m in '{heavy}'.split() if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
