"""`onthedot backup` and `restore` with a real server: while it writes, and after its database is gone."""

from __future__ import annotations

import json
import sqlite3
import subprocess

from onthedot.client import AsyncClient
from tests.services.process import COMMAND
from tests.services.waiting import until
from tests.store.given import spec

ONE_TRY = {"retry": {"attempts": 1}}
NOBODY = {"type": "webhook", "url": "http://127.0.0.1:9/"}


def onthedot(directory, *arguments):
    return subprocess.run([COMMAND, *arguments], cwd=directory, capture_output=True, text=True, check=False)


async def test_backed_up_while_it_runs_lost_and_restored(launch, tmp_path):
    url = f"sqlite:///{tmp_path}/onthedot.db"
    node = await launch("--store", url)
    async with AsyncClient(node.url) as client:
        once = await client.create_job(spec(key="once", schedule={"in": "8s"}, target=NOBODY, policy=ONE_TRY))
        every = await client.create_job(spec(key="every", schedule={"every": "1s"}, target=NOBODY, policy=ONE_TRY))
        made = onthedot(tmp_path, "backup", "copy.db", "--store", url)
        assert (made.returncode, made.stderr) == (0, ""), made.stderr
        assert "Wrote and checked copy.db: 2 jobs" in made.stdout
        assert ((tmp_path / "copy.db").stat().st_mode & 0o777) == 0o600
        assert onthedot(tmp_path, "backup", "copy.db", "--store", url).returncode == 1
        assert onthedot(tmp_path, "restore", "copy.db", "--force", "--store", url).returncode == 1  # in use

        async def fired() -> str | None:
            return next((run.id for run in (await client.list_dead(job_id=once.id)).items), None)

        fired_id = await until(fired, "the one-off has fired", 40)
        lost = await client.create_job(spec(key="lost", schedule={"in": "1h"}, target=NOBODY))
    node.kill()
    for end in ("", "-wal", "-shm"):
        (tmp_path / f"onthedot.db{end}").unlink(missing_ok=True)
    done = onthedot(tmp_path, "restore", "copy.db", "--store", url, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["jobs"], told["dead_letters"] >= 1, told["kept"]) == (1, True, None)
    assert told["skipped"] >= 1
    assert not list(tmp_path.glob("onthedot.db.restoring*"))
    node = await launch("--store", url)
    async with AsyncClient(node.url) as client:
        (letter,) = (await client.list_dead(job_id=once.id)).items
        assert (letter.id, letter.cause) == (fired_id, "restored from a backup")
        assert [run.id for run in (await client.list_runs(job_id=once.id)).items] == [fired_id]
        assert (await client.list_runs(job_id=every.id, status="SKIPPED")).items
        new = await client.create_job(spec(key="new", schedule={"in": "1h"}, target=NOBODY))
        assert new.id > lost.id + 900_000


def test_a_store_that_is_there_is_kept(cli, tmp_path):
    url = f"sqlite:///{tmp_path}/onthedot.db"
    assert cli("keys", "create", "--name", "a", "--store", url).code == 0
    assert cli("backup", "copy.db", "--store", url).code == 0
    assert cli("keys", "create", "--name", "b", "--store", url).code == 0
    refused = cli("restore", "copy.db", "--store", url)
    assert (refused.code, "--force" in refused.err) == (1, True)
    done = cli("restore", "copy.db", "--force", "--store", url, "--json").json
    assert [key["name"] for key in cli("keys", "list", "--store", url, "--json").json] == ["a"]
    kept = f"sqlite:///{done['kept']}"
    assert [key["name"] for key in cli("keys", "list", "--store", kept, "--json").json] == ["a", "b"]


def test_a_damaged_copy_is_refused_and_nothing_changes(cli, tmp_path):
    url = f"sqlite:///{tmp_path}/onthedot.db"
    cli("keys", "create", "--name", "a", "--store", url)
    (tmp_path / "text.db").write_text("no database " * 1000)
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE t (a)")
    other.close()
    before = (tmp_path / "onthedot.db").read_bytes()
    for name in ("text.db", "other.db", "missing.db"):
        refused = cli("restore", name, "--force", "--store", url)
        assert (refused.code, name in refused.err) == (1, True)
    assert (tmp_path / "onthedot.db").read_bytes() == before


def test_postgresql_has_its_own_tools(cli):
    told = cli("backup", "x.dump", "--store", "postgresql://me:secret@db/jobs")
    assert told.code == 1
    assert "pg_dump --format=custom --file=x.dump 'postgresql://me:•••@db/jobs'" in told.err
    assert "pg_restore" in cli("restore", "x.dump", "--store", "postgresql://me@db/jobs").err
    assert cli("restore", "--store", "postgresql://me@db/jobs").code == 2
