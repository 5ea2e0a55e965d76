"""What every test may ask for: databases, a clock turned by hand, real processes; and the check that nothing is left.

postgres_server     one PostgreSQL per pytest process
postgres_url        a database of its own for this test, migrated; gone afterwards
empty_postgres_url  the same without any table, for tests of migrations
sqlite_url          a file of its own, migrated
empty_sqlite_url    the same before there is a file
store_url           both, one after the other: the test runs as [sqlite] and as [postgres]
store               an open Store on each of them, on `fake_clock` where the store asks a clock
fake_clock          time stands still until the test moves it
servers             `servers("nats")`: a message broker that lives as long as the pytest process
launch              `node = await launch("--store", url)`: `onthedot serve` as a real process, killed at the end
"""

from __future__ import annotations

import gc
import inspect
import itertools
import os
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from onthedot.clock import FakeClock
from tests.services.debian import ProgramMissing
from tests.services.leaks import (
    children,
    outlived,
    sessions_left,
    sockets,
    sockets_left,
    sockets_left_on_the_loop,
    tasks_left,
)
from tests.services.memory import roomy_directory
from tests.services.missing import missing
from tests.services.ports import free_port as find_free_port
from tests.services.postgres import PostgresMissing, PostgresServer, in_own_loop, running_postgres
from tests.services.process import NodeProcess
from tests.services.sharing import Sharing

if TYPE_CHECKING:
    from onthedot.store import Store
    from tests.services.brokers import BrokerServer

pytest_plugins = ("pytester", "tests.services.complete", "tests.services.coverage_tier")

Launch = Callable[..., Awaitable[NodeProcess]]

# A machine under load is slow, not wrong: pytest's own time-out bounds a test. CI draws the same examples each time.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")

# tmp_path, and so each SQLite file, lies in memory too.
if memory := roomy_directory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory)

_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    """SIGTERM ends the tests as Ctrl-C does: with what failed so far, and everything put away."""
    signal.signal(signal.SIGTERM, _interrupt if config.getoption("numprocesses", None) else signal.default_int_handler)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts what it puts in the background like that, and all that we start would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Thousands of tests are there to stay: whoever asks for a collection need not look through them each time."""
    gc.collect()
    gc.freeze()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """The workers too, which would otherwise be waited for until they have ended their tests, for ten seconds."""
    for worker in children():
        os.kill(worker, number)
    signal.default_int_handler(number, frame)


def pytest_keyboard_interrupt() -> None:
    """Once is enough: a terminal's signal and that of scripts/test.sh come together."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Sharing:
    """Asked by the process that hands out the tests."""
    return Sharing(config, log)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    try:
        with running_postgres() as server:
            yield server
    except PostgresMissing as why:
        missing(why)


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[str], BrokerServer]]:
    """Brokers by name, each started when the first test wants it."""
    from tests.services.brokers import RUNNING

    started: dict[str, BrokerServer] = {}
    with ExitStack() as stack:

        def server(name: str) -> BrokerServer:
            if name not in started:
                try:
                    started[name] = stack.enter_context(RUNNING[name]())
                except ProgramMissing as why:
                    missing(why)
            return started[name]

        yield server


@pytest.fixture(scope="session")
def migrated_template(postgres_server: PostgresServer) -> str:
    """A database with the newest schema, copied for each test: copying takes a third of the time of migrating."""
    from onthedot.store import open_store

    name = "onthedot_template"
    url = postgres_server.create_database(name)

    async def migrate() -> None:
        store = await open_store(url)
        await store.close()

    in_own_loop(migrate)
    return name


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, migrated_template: str) -> Iterator[str]:
    yield from _database(postgres_server, migrated_template)


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    yield from _database(postgres_server, None)


def _database(server: PostgresServer, template: str | None) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    yield server.create_database(name, template=template)
    left = sessions_left(server, name) if server.process else []
    server.drop_database(name)
    assert not left, f"connections to PostgreSQL left open: {left}"


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the newest schema, copied for each test: opening a store on it takes a sixth of the time."""
    from onthedot.store import open_store

    path = tmp_path_factory.mktemp("migrated") / "onthedot.db"

    async def migrate() -> None:
        store = await open_store(f"sqlite:///{path}")
        await store.close()

    in_own_loop(migrate)
    return path


@pytest.fixture
def sqlite_url(tmp_path: Path, migrated_file: Path) -> str:
    path = tmp_path / "onthedot.db"
    shutil.copyfile(migrated_file, path)
    return f"sqlite:///{path}"


@pytest.fixture
def empty_sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'onthedot.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    from onthedot.store import open_store

    opened = await open_store(store_url)
    yield opened
    await opened.close()


@pytest.fixture
def free_port() -> Callable[[], int]:
    return find_free_port


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    """Start nodes; each may be given its own environment with `env=`, and its own `port=`."""
    started: list[NodeProcess] = []

    async def serve(*args: str, port: int | None = None, env: dict[str, str] | None = None) -> NodeProcess:
        node = await NodeProcess.serve(*args, directory=tmp_path, port=port or find_free_port(), env=env)
        started.append(node)
        return node

    yield serve
    for node in started:
        node.kill()


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set up first, so torn down last: by then the test and all its fixtures have had their chance to clean up."""
    before, open_before = children(), sockets()
    on_a_loop = inspect.iscoroutinefunction(inspect.unwrap(request.function))
    if on_a_loop:
        request.getfixturevalue("nothing_left_on_the_loop")
    yield
    if not request.node.get_closest_marker("leaves_children"):
        left = outlived(before)
        assert not left, f"child processes left running: {left}"
    if not on_a_loop and not request.node.get_closest_marker("keeps_connections"):
        open_still = sockets_left(open_before)
        assert not open_still, f"sockets left open: {open_still}"


@pytest.fixture
async def nothing_left_on_the_loop(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    before = sockets()
    yield
    left = await tasks_left()
    assert not left, f"tasks left on the loop: {left}"
    if not request.node.get_closest_marker("keeps_connections"):
        open_still = await sockets_left_on_the_loop(before)
        assert not open_still, f"sockets left open: {open_still}"
