"""Ways to a PostgreSQL: several hosts of which one is frozen, and every refusal with what to do about it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from onthedot.errors import SettingsError, StoreError, StoreUnavailable
from onthedot.store import JobFilter, open_store
from onthedot.store.postgres.address import parse_address
from tests.services.ports import free_port
from tests.services.postgres import PostgresServer
from tests.services.process import NodeProcess
from tests.store.given import create


@asynccontextmanager
async def frozen() -> AsyncIterator[int]:
    """A host that accepts and never answers, as one whose process was stopped."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        yield listener.getsockname()[1]


class TestSeveralHosts:
    async def test_a_frozen_first_does_not_hide_the_second(self, postgres_url: str) -> None:
        async with frozen() as port:
            url = postgres_url.replace("@127.0.0.1:", f"@127.0.0.1:{port},127.0.0.1:")
            loop = asyncio.get_running_loop()
            began = loop.time()
            store = await open_store(f"{url}?timeout=10")
            assert loop.time() - began < 5
            try:
                began = loop.time()
                await asyncio.gather(*(create(store, key=f"k{n}") for n in range(6)))
                assert loop.time() - began < 1, "the one that was good is asked first"
                assert len((await store.list_jobs(1, JobFilter())).items) == 6
            finally:
                await store.close()

    async def test_a_closed_first_costs_nothing(self, postgres_url: str) -> None:
        url = postgres_url.replace("@127.0.0.1:", f"@127.0.0.1:{free_port()},127.0.0.1:")
        store = await open_store(url)
        assert await store.now() > 0
        await store.close()

    async def test_each_that_failed_is_named(self) -> None:
        first, second = free_port(), free_port()
        with pytest.raises(StoreUnavailable) as caught:
            await open_store(f"postgresql://postgres@127.0.0.1:{first},127.0.0.1:{second}/x")
        assert f"127.0.0.1:{first}: connection refused" in str(caught.value)
        assert f"127.0.0.1:{second}: connection refused" in str(caught.value)

    async def test_a_frozen_one_alone_is_given_up(self) -> None:
        async with frozen() as port:
            with pytest.raises(StoreUnavailable, match=f"127.0.0.1:{port}: timed out"):
                await open_store(f"postgresql://postgres@127.0.0.1:{port}/x?timeout=0.5")

    async def test_one_that_takes_no_writes_is_passed_over(
        self, postgres_server: PostgresServer, postgres_url: str
    ) -> None:
        """By another role, for whom all is read-only, it looks like a standby."""
        postgres_server.execute("CREATE ROLE reader SUPERUSER LOGIN")
        postgres_server.execute("ALTER ROLE reader SET default_transaction_read_only = on")
        try:
            url = postgres_url.replace("postgres@127.0.0.1:", f"reader@127.0.0.1:{postgres_server.port},127.0.0.1:")
            with pytest.raises(StoreUnavailable, match="is a read-only standby"):
                await open_store(url)
            store = await open_store(f"{url}?target_session_attrs=any")
            with pytest.raises(StoreUnavailable, match="read-only"):
                await create(store)
            await store.close()
        finally:
            postgres_server.execute("DROP ROLE reader")

    @pytest.mark.parametrize(
        ("url", "names"),
        [
            ("postgresql://u:p@h1:1,h2:2/d", ["h1:1", "h2:2"]),
            ("postgresql://h1,h2/d", ["h1:5432", "h2:5432"]),
            ("postgresql://u@[::1]:7,[::2]/d", ["[::1]:7", "[::2]:5432"]),
            ("postgresql://u:p@h1:1,[::2]:7/d", ["h1:1", "[::2]:7"]),  # patched versions of urlsplit refuse it
            ("postgresql:///d?host=a,b&port=1,2", ["a:1", "b:2"]),
            ("postgresql:///d?host=a,b&port=1", ["a:1", "b:1"]),
            ("postgresql:///d", ["this machine"]),
        ],
    )
    def test_what_an_address_names(self, url: str, names: list[str]) -> None:
        routes = parse_address(url).routes
        assert [route.name for route in routes] == names
        asked = ["target_session_attrs=read-write" in route.dsn for route in routes]
        assert asked == [len(names) > 1] * len(names)
        assert not any("," in route.dsn for route in routes)

    def test_what_is_asked_for_is_asked(self) -> None:
        (first, _) = parse_address("postgresql://a,b/d?target_session_attrs=any").routes
        assert first.dsn == "postgresql://a/d?target_session_attrs=any"
        with pytest.raises(SettingsError, match="port=1,2,3"):
            parse_address("postgresql:///d?host=a,b&port=1,2,3")


@pytest.fixture
def role(postgres_server: PostgresServer) -> Iterator[str]:
    """An ordinary one: it may connect, and that is all."""
    postgres_server.execute("CREATE ROLE shop LOGIN PASSWORD 'right'")
    yield "shop"
    postgres_server.execute("DROP ROLE shop")


def as_role(url: str, role: str) -> str:
    return url.replace("postgres@", f"{role}@")


class TestPrivileges:
    @pytest.mark.parametrize("command", [("serve", "--port", "0"), ("migrate",), ("keys", "create", "--name", "a")])
    async def test_who_may_not_create_is_told_what_to_grant(
        self, empty_postgres_url: str, role: str, command: tuple[str, ...], tmp_path: Path
    ) -> None:
        url = as_role(empty_postgres_url, role)
        asked = NodeProcess(*command, "--store", url, directory=tmp_path, port=free_port())
        try:
            assert await asked.exited() == 1
        finally:
            asked.kill()
        told = asked.output()
        assert "role shop is not allowed to create tables in schema public" in told
        assert "GRANT USAGE, CREATE ON SCHEMA public TO shop;" in told
        assert "?schema=" in told
        assert "Traceback" not in told

    async def test_what_is_granted_is_enough(
        self, postgres_server: PostgresServer, empty_postgres_url: str, role: str
    ) -> None:
        await run_as_owner(empty_postgres_url, f"GRANT USAGE, CREATE ON SCHEMA public TO {role}")
        store = await open_store(as_role(empty_postgres_url, role))
        await create(store, key="a")
        await store.close()
        await run_as_owner(empty_postgres_url, f"DROP OWNED BY {role}")

    async def test_tables_of_another_role(self, postgres_url: str, role: str) -> None:
        with pytest.raises(StoreError, match=r"ALTER TABLE public\.… OWNER TO shop") as caught:
            await open_store(as_role(postgres_url, role))
        assert "is not allowed to use the tables" in str(caught.value)


class TestSchema:
    async def test_one_of_its_own(self, empty_postgres_url: str, role: str) -> None:
        """Made by somebody else: the tables are made in it, and beside others of the same names."""
        await run_as_owner(empty_postgres_url, f'CREATE SCHEMA "Work \U0001f552" AUTHORIZATION {role}')
        mine = await open_store(f"{as_role(empty_postgres_url, role)}?schema=Work%20%F0%9F%95%92")
        theirs = await open_store(empty_postgres_url)
        try:
            await create(mine, key="a")
            assert len((await mine.list_jobs(1, JobFilter())).items) == 1
            assert (await theirs.list_jobs(1, JobFilter())).items == []
            await mine.ensure_partitions()
        finally:
            await mine.close()
            await theirs.close()
        await run_as_owner(empty_postgres_url, f"DROP OWNED BY {role}")

    async def test_made_if_permitted(self, empty_postgres_url: str) -> None:
        url = f"{empty_postgres_url}?schema=made"
        stores = await asyncio.gather(*(open_store(url) for _ in range(3)))
        for store in stores:
            await store.close()

    async def test_else_it_is_told_how(self, empty_postgres_url: str, role: str) -> None:
        with pytest.raises(StoreError, match="CREATE SCHEMA mine AUTHORIZATION shop;"):
            await open_store(f"{as_role(empty_postgres_url, role)}?schema=mine")

    async def test_behind_a_pooler_each_transaction_says_so(self, empty_postgres_url: str) -> None:
        url = f"{empty_postgres_url}?schema=pooled"
        await (await open_store(url)).close()
        store = await open_store(f"{url}&pooler=transaction", migrated=False)
        await create(store, key="a")
        assert len((await store.list_jobs(1, JobFilter())).items) == 1
        await store.close()

    @pytest.mark.parametrize("name", ["", "x" * 64, "a%00b"])
    def test_no_name(self, name: str) -> None:
        with pytest.raises(SettingsError, match="schema="):
            parse_address(f"postgresql://h/d?schema={name}")


class TestRefusedAtOnce:
    async def test_tls_that_the_server_has_not(self, postgres_url: str) -> None:
        with pytest.raises(StoreError, match="sslmode requires TLS, which this server does not support") as caught:
            await open_store(f"{postgres_url}?sslmode=require")
        assert not isinstance(caught.value, StoreUnavailable)

    async def test_a_wrong_password(self, postgres_server: PostgresServer, postgres_url: str, role: str) -> None:
        with by_password(postgres_server, role):
            url = as_role(postgres_url, f"{role}:wrong")
            with pytest.raises(StoreError, match="Check the user and password in STORE") as caught:
                await open_store(url)
            assert not isinstance(caught.value, StoreUnavailable)
            assert "wrong" not in str(caught.value)

    async def test_an_unknown_database(self, postgres_server: PostgresServer) -> None:
        with pytest.raises(
            StoreError, match=r'database "nowhere" does not exist. Create the database \(CREATE DATABASE\)'
        ):
            await open_store(postgres_server.url("nowhere"))

    async def test_once_open_it_is_an_outage(
        self, postgres_server: PostgresServer, postgres_url: str, role: str
    ) -> None:
        """A password that is changed, a database that is being moved: the node waits, it does not end."""
        url = as_role(postgres_url, f"{role}:right") + "?timeout=2"
        await run_as_owner(postgres_url, f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
        store = await open_store(url, migrated=False)
        try:
            with by_password(postgres_server, role):
                postgres_server.execute(f"ALTER ROLE {role} PASSWORD 'other'")
                postgres_server.execute(
                    f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"
                )
                for _ in range(3):  # connections that were cut are found one by one
                    with pytest.raises(StoreUnavailable):
                        await store.now()
            assert await store.now() > 0
        finally:
            await store.close()
        await run_as_owner(postgres_url, f"DROP OWNED BY {role}")


async def run_as_owner(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


class by_password:  # noqa: N801
    """While it lasts, this role has to give its password."""

    def __init__(self, server: PostgresServer, role: str) -> None:
        self._server = server
        self._role = role
        self._rules = server.data / "pg_hba.conf"

    def __enter__(self) -> None:
        self._before = self._rules.read_text()
        self._rules.write_text(f"host all {self._role} 127.0.0.1/32 scram-sha-256\n{self._before}")
        self._server.execute("SELECT pg_reload_conf()")

    def __exit__(self, *exc: object) -> None:
        self._rules.write_text(self._before)
        self._server.execute("SELECT pg_reload_conf()")
