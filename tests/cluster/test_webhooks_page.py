"""docs/webhooks.md, typed as it stands, with the receivers that it starts: what it shows happens. Only ports differ."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.cluster.nodes import Cluster, post
from tests.cluster.typed import TypedPage, doctor, html_of, run_with
from tests.cluster.walking import ask
from tests.services.orphan_reaper import orphan_reaper
from tests.services.ports import free_port
from tests.services.process import NodeProcess
from tests.services.waiting import until

pytestmark = pytest.mark.timeout(240)
SHOWN_PORTS = ("5003", "5004", "5005", "5443")


class Receiver:
    """A line of the page that starts one, in a terminal of its own."""

    def __init__(self, command: str, directory: Path) -> None:
        program, *words = shlex.split(command, comments=True)
        assert program == "onthedot"
        port = int(words[words.index("--port") + 1])
        as_json = [] if "--json" in words else ["--json"]
        self.process = NodeProcess(*words, *as_json, directory=directory, port=port)

    async def ready(self) -> None:
        await until(lambda: "listening on" in self.process.output(), "it listens")

    def heard(self, path: str = "/") -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.process.output().splitlines() if line.startswith("{")]
        return [arrival for arrival in lines if arrival["path"].startswith(path)]


class Typing:
    """The page with the ports of this test in place of those that it shows."""

    def __init__(self, directory: Path) -> None:
        self.page = TypedPage("webhooks.md", directory)
        self.directory = directory
        self.ports = {shown: str(free_port()) for shown in SHOWN_PORTS}
        self._receivers: list[Receiver] = []

    def block(self, words: str, language: str = "sh") -> str:
        text = self.page.block(words, language)
        for shown, port in self.ports.items():
            text = text.replace(shown, port)
        return text

    async def receiver(self, command: str) -> Receiver:
        receiver = Receiver(command, self.directory)
        self._receivers.append(receiver)
        await receiver.ready()
        return receiver

    def end(self) -> None:
        for receiver in self._receivers:
            receiver.process.kill()


@pytest.fixture
def typing(tmp_path: Path) -> Iterator[Typing]:
    found = Typing(tmp_path)
    yield found
    found.end()


@pytest.fixture
async def node(cluster: Cluster, sqlite_url: str) -> NodeProcess:
    node = cluster.start("--store", sqlite_url)
    await node.ready()
    return node


async def test_what_is_sent_and_signed(typing: Typing, node: NodeProcess):
    echo = await typing.receiver(f"onthedot echo --json --port {typing.ports['5003']}")
    await typing.page.type(typing.block("--key hello"), node)
    (hello,) = await until(lambda: echo.heard("/hello"), "it is heard")
    assert (hello["method"], hello["body"], hello["headers"]["x-team"]) == ("POST", '{"a":1}', "billing")
    table, _, _ = typing.page.text.partition("\n## Values of the run in the body")
    named = set(re.findall(r"`(webhook-[a-z]+|x-onthedot-[a-z-]+|traceparent)`", table))
    assert named - {"webhook-signature", "x-onthedot-callback"} <= set(hello["headers"])
    run = await run_with(node, "hello", "DONE")
    assert "x-team" in (await html_of(node, run["id"])).lower()
    await a_body_has_values_of_its_run(typing, node, echo)
    await a_secret_is_rotated(typing, node, echo)


async def a_body_has_values_of_its_run(typing: Typing, node: NodeProcess, echo: Receiver) -> None:
    await typing.page.type(typing.block("--key invoice"), node)
    (by_hand,) = re.findall(r"`(onthedot jobs run invoice [^`]+)`", typing.page.text)
    run = json.loads(await typing.page.type(f"{by_hand} --json", node))

    async def heard() -> list[dict[str, Any]]:
        return [each for each in echo.heard("/invoice") if each["run_id"] == run["id"]]

    (invoice,) = await until(heard, "the invoice is heard")
    body = json.loads(invoice["body"])
    assert (body["customer"], body["once"]) == (43, run["id"])
    assert body["month"] == invoice["headers"]["x-onthedot-scheduled-for"]
    wrong = {"$": "params.costumer"}
    target = {"type": "webhook", "url": "http://127.0.0.1:9/", "body": {"customer": wrong}}
    job = {"schedule": {"every": "1h"}, "params": {"customer": 42}, "target": target}
    status, problem = await ask(node, "POST", "/v1/jobs", job)
    assert (status, problem["errors"][0]["path"]) == (422, "target.body.customer.$")


async def a_secret_is_rotated(typing: Typing, node: NodeProcess, echo: Receiver) -> None:
    old, new = [(await typing.page.type('echo "whsec_$(openssl rand -base64 32)"')).strip() for _ in range(2)]
    await typing.page.type(typing.block("--key signed").replace("whsec_$(openssl rand -base64 32)", old), node)
    both, _, alone = typing.block("NEW=whsec_").replace("whsec_$(openssl rand -base64 32)", new).partition("#  ")
    for script, accepted in (("", {old}), (both, {old, new}), (f"NEW={new}\n#{alone}", {new})):
        if script:
            await typing.page.type(script, node)
        run = json.loads(await typing.page.type("onthedot jobs run signed --json", node))

        async def heard(wanted: str = run["id"]) -> list[dict[str, Any]]:
            return [each for each in echo.heard() if each["run_id"] == wanted]

        (arrival,) = await until(heard, "the call is heard")
        assert {secret for secret in (old, new) if verifies(secret, arrival)} == accepted
    _, shown = await ask(node, "GET", "/v1/jobs/by-key/signed")
    assert shown["target"]["secret"] == "••••••"


def verifies(secret: str, arrival: dict[str, Any]) -> bool:
    """As a receiver does it that has this one."""
    try:
        Webhook(secret).verify(arrival["body"] or "", arrival["headers"])
    except Exception as error:
        return "json" in type(error).__name__.lower()  # the signature was right, the body is empty
    return True


async def test_receivers_that_are_gone_and_retries(typing: Typing, node: NodeProcess):
    receiver, _, fresh = typing.block("--key numbers").partition("\n")
    failing = await typing.receiver(receiver)
    fresh_block, _, said = typing.block("--key fresh").partition("onthedot dead list")
    await typing.page.type(fresh_block, node)
    await a_receiver_is_gone(typing, node)
    dead = await run_with(node, "fresh", "FAILED")
    (attempts,) = re.findall(r"given up after (\d) attempts", said)
    assert (dead["reason"], len(dead["attempts"])) == ("next_slot", int(attempts))
    assert "fresh" in await typing.page.type("onthedot dead list", node)
    assert "next_slot" in await typing.page.type(f"onthedot runs show {dead['id']}", node)
    await typing.page.type("onthedot jobs delete fresh -y", node)
    calls = len(failing.heard())
    await typing.page.type(fresh, node)
    planned, _, _ = typing.block("--key planned").partition("onthedot runs list")
    await typing.page.type(planned, node)
    await until(lambda: len(failing.heard()) >= calls + 2, "both are called")
    assert "PENDING" in await typing.page.type("onthedot runs list planned", node)
    for key, retry in (("numbers", {"attempts": 5}), ("planned", {"plan": "quick"})):
        _, job = await ask(node, "GET", f"/v1/jobs/by-key/{key}")
        assert retry.items() <= job["policy"]["retry"].items()
    both = {"policy": {"retry": {"plan": "quick", "attempts": 5}}}
    status, _ = await ask(node, "PATCH", "/v1/jobs/by-key/planned", both)
    assert status == 422


async def a_receiver_is_gone(typing: Typing, node: NodeProcess) -> None:
    start, add, show, resume = typing.block("--key gone").splitlines()
    gone = await typing.receiver(start)
    await typing.page.type(add, node)
    command, _, shown = show.partition("#")

    async def paused() -> bool:
        return "paused since" in await typing.page.type(command, node)

    await until(paused, "it is paused", 30)
    said = " ".join((await typing.page.type(command, node)).split())
    (reason,) = re.findall(r"system: .* \(run ", shown)
    assert reason in said
    gone.process.kill()
    await typing.receiver(typing.block("webhook-delivery: disable").strip())
    await typing.page.type(resume.partition("#")[0], node)
    run = json.loads(await typing.page.type("onthedot jobs run gone --json", node))
    await until(paused, "it is paused again", 30)
    found = await run_with(node, "gone", "FAILED")
    assert (found["id"], len(found["attempts"])) >= (run["id"], 1)


async def test_a_client_certificate(typing: Typing, cluster: Cluster, sqlite_url: str):
    make, serve, add = re.split(r"^(openssl s_server.*)&\n", typing.block("s_server"), flags=re.MULTILINE)
    await typing.page.type(make)
    with in_a_terminal(serve, typing.directory):
        _, _, shown = add.partition("onthedot doctor")
        line, _, commands = shown.partition("\n")
        assert " ".join(line.partition("# ")[2].split()) in await doctor(typing.page)
        node = cluster.start("--store", sqlite_url)
        await node.ready()
        await until(lambda: listens(int(typing.ports["5443"])), "the receiver listens")
        (adding,) = [each for each in commands.splitlines() if "--key mutual" in each]
        await typing.page.type(adding, node)
        run = await run_with(node, "mutual", "DONE", "FAILED")
        assert run["status"] == "DONE", run
        assert "DONE" in await typing.page.type("onthedot runs list mutual", node)
        target = {"type": "webhook", "url": f"https://localhost:{typing.ports['5443']}/", "certificate": "locale"}
        refused = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": target}, expect=422)
        assert "local" in refused["errors"][0]["accepted"]


@contextmanager
def in_a_terminal(command: str, directory: Path) -> Iterator[None]:
    process = subprocess.Popen(
        shlex.split(command),
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    orphan_reaper.runs(-process.pid, signal.SIGKILL)
    try:
        yield
    finally:
        process.kill()
        process.wait()
        orphan_reaper.ended(-process.pid)


async def listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("localhost", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
