"""Tasks for Celery, executed by a real worker of Celery."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from celery import Celery

from onthedot.brokers import sqs
from onthedot.brokers.message import kombu_envelope
from onthedot.importers.celery_beat import import_celery_beat
from onthedot.importers.findings import ImportedJobs
from onthedot.model.decoding import convert
from onthedot.model.job import JobSpec
from onthedot.model.targets import QueueTarget
from onthedot.targets.contract import Call
from onthedot.targets.queue.message import compose
from tests.services.brokers import BrokerServer
from tests.services.waiting import until
from tests.targets.conftest import SLOT, MakeCall
from tests.targets.sending import send
from tests.targets.test_queue_brokers import Party, confirmed

pytestmark = pytest.mark.timeout(300)
BEAT = """
beat_schedule = {
    "nightly": {"task": "shop.report", "schedule": 86400, "args": ("a", 2), "kwargs": {"full": False}},
}
"""
APP = """
import json
from celery import Celery
app = Celery(broker={url!r})
app.conf.worker_enable_remote_control = False
app.conf.broker_connection_retry_on_startup = True

@app.task(name="shop.report", bind=True)
def report(self, *args, **kwargs):
    with open("done.txt", "a") as file:
        file.write(json.dumps([self.request.id, args, kwargs]) + chr(10))
"""


@contextmanager
def worker(url: str, place: Path) -> Iterator[None]:
    (place / "shop_app.py").write_text(APP.format(url=url))
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "shop_app",
        "worker",
        "-P",
        "solo",
        "--without-gossip",
        "--without-mingle",
    ]
    with (place / "worker.log").open("wb") as log:
        process = subprocess.Popen([*command, "-Q", "celery"], cwd=place, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def imported_call(settings: Path, number: int) -> Call:
    """A run of what `onthedot import celery-beat` makes of a schedule."""
    settings.write_text(BEAT)
    found = ImportedJobs("celery-beat", str(settings))
    import_celery_beat(str(settings), found, broker="it")
    (job,) = [convert(job, JobSpec) for job in found.jobs]
    return Call(run_id=f"7-{number}", job_id=7, slot=number, attempt=1, target=job.target, params=job.params)


@pytest.mark.parametrize("name", ["redis", "rabbitmq"])
async def test_a_worker_of_celery_runs_the_task(name: str, servers: Callable[[str], BrokerServer], tmp_path: Path):
    party = Party(name, servers(name))
    party.topic = "celery"
    done = tmp_path / "done.txt"
    with worker(party.server.url, tmp_path):
        async with party.kind() as kind:

            async def sent(number: int, **fields: object) -> bool:
                target = party.target(format="celery", task="shop.report", **fields)
                outcome = await send(kind, party.call(number, target))
                return outcome.ok and bool(confirmed(outcome))

            # RabbitMQ returns it until the worker has declared its queue.
            await until(lambda: sent(1, body=[1, "two"]), "the worker has its queue")
            await until(lambda: sent(2, body={"full": True}))
            assert (await send(kind, imported_call(tmp_path / "beat_settings.py", 3))).ok
        await until(lambda: done.exists() and len(done.read_text().splitlines()) == 3, "all tasks were run")
    tasks = sorted(json.loads(line) for line in done.read_text().splitlines())
    assert tasks == [["7-1", [1, "two"], {}], ["7-2", [], {"full": True}], ["7-3", ["a", 2], {"full": False}]]


@pytest.mark.parametrize(
    ("body", "params", "expected"),
    [
        ([1], {"a": 2, "trigger": {"job_key": "before"}}, [[1], {"a": 2}]),
        ({"b": 3}, {"a": 2}, [[], {"b": 3}]),
        (None, {"a": 2}, [[], {"a": 2}]),
        (None, {}, [[], {}]),
    ],
)
def test_arguments_and_keyword_arguments(
    make_call: MakeCall, body: object, params: dict[str, object], expected: object
):
    target = QueueTarget(broker="it", topic="celery", format="celery", task="shop.report", body=body)
    message = compose(make_call(target, params=params), target)
    assert json.loads(message.body)[:2] == expected


def test_the_envelope_is_that_of_celery_itself(make_call: MakeCall):
    """Also for SQS, where no worker is at hand: its body is the same, in base64."""
    app = Celery(broker="memory://")
    app.send_task("shop.report", args=[1], task_id=f"7-{SLOT}", queue="celery")
    with app.connection() as connection:
        theirs = connection.channel()._get("celery")
    target = QueueTarget(broker="it", topic="celery", format="celery", task="shop.report", body=[1])
    message = compose(make_call(target), target)
    ours = json.loads(kombu_envelope(message))
    assert set(ours) == set(theirs)
    assert set(ours["properties"]) == set(theirs["properties"])
    assert json.loads(base64.b64decode(ours["body"])) == json.loads(base64.b64decode(theirs["body"]))
    own = ("origin", "ignore_result")
    for name, value in (message.task or {}).items():
        assert name in own or theirs["headers"][name] == value
    assert json.loads(base64.b64decode(sqs.entry_of(message)["MessageBody"])) == ours
