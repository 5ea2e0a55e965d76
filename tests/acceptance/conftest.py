"""The sentences of the contract, held against a real process on each store, from outside only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.product import Product
from tests.acceptance.receiver import Receiver, receiving
from tests.services.postgres import PostgresServer

FUNCTIONS = """
import logging, sys, time

def talk(**words):
    print("out", words)
    print("err", file=sys.stderr)
    logging.getLogger("mine").warning("logged")

def hang():
    print("began", flush=True)
    time.sleep(60)
"""
JOBS = """{
 "commands": {"three": {"argv": ["sh", "-c", "echo said; exit 3"]}},
 "jobs": [
  {"identifier": "short", "path": "mine", "function_name": "talk", "timeout": "5m", "periodicity": "1d",
   "start_date": "2022-11-21"},
  {"key": "talk", "schedule": {"cron": "0 0 1 1 *"}, "target": {"type": "function", "function": "mine:talk"},
   "params": {"word": 7}},
  {"key": "hang", "schedule": {"cron": "0 0 1 1 *"}, "target": {"type": "function", "function": "mine:hang"},
   "policy": {"timeout": "500ms", "retry": {"attempts": 1}}},
  {"key": "three", "schedule": {"cron": "0 0 1 1 *"}, "target": {"type": "command", "command": "three"},
   "policy": {"retry": {"attempts": 1}}}
 ]}
"""


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    with receiving() as heard:
        yield heard


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder: Path = tmp_path_factory.mktemp("acceptance")
    (folder / "mine.py").write_text(FUNCTIONS)
    (folder / "jobs.json").write_text(JOBS)
    store = "sqlite:///onthedot.db"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        store = server.create_database("acceptance")
    made = Product(folder, store, "--jobs", "jobs.json")
    yield made
    made.close()


@pytest.fixture
def product(served: Product) -> Iterator[Product]:
    """Whatever a test does, it goes on; the first test after which it does not tells its last words."""
    yield served
    code = served.node.exit_code
    assert code is None, f"onthedot ended with {code}:\n{served.node.output()[-3000:]}"
