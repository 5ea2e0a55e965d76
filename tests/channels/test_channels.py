"""Channels for real: an HTTP server, commands, and apprise where it is installed."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Self

import msgspec
import pytest
from aiohttp import web

from onthedot.channels.by_apprise import is_installed
from onthedot.channels.channel import NotDelivered
from onthedot.channels.message import test_message as message_for
from onthedot.channels.registry import build_channels
from onthedot.launcher.launch import fast_loop
from onthedot.settings import ChannelSetting
from tests.targets.making_certificates import Authority

MESSAGE = message_for("ops", "https://x/alerts")


class Receiver:
    """With a certificate and its key: over TLS."""

    def __init__(self, certificate: tuple[str, str] | None = None) -> None:
        self.bodies: list[dict[str, object]] = []
        self.status = 204
        self._tls = None
        if certificate is not None:
            self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._tls.load_cert_chain(*certificate)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/hook", self._take)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await self._site.start()
        assert self._site._server is not None
        port = self._site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        self.place = f"127.0.0.1:{port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        self.bodies.append(msgspec.json.decode(await request.read()))
        return web.Response(status=self.status, headers={"location": "/elsewhere"})


async def test_a_url_gets_json_and_any_2xx_is_a_yes():
    async with Receiver() as receiver:
        channel = build_channels({"ops": ChannelSetting(url=f"http://user:secret@{receiver.place}/hook")})["ops"]
        await channel.send(MESSAGE)
        (body,) = receiver.bodies
        assert (body["event"], body["title"]) == ("test", "Test of the channel ops")
        assert (channel.kind, channel.place) == ("webhook", receiver.place)
        for status in (302, 404, 500):
            receiver.status = status
            with pytest.raises(NotDelivered, match=f"^{receiver.place} answered {status}$"):
                await channel.send(MESSAGE)
    with pytest.raises(NotDelivered) as failed:
        await channel.send(MESSAGE)
    host, _, port = receiver.place.partition(":")
    assert str(failed.value) == f"can't connect: Connection refused ({host}, port {port})", "as a webhook says it"


async def test_an_unknown_host_and_tls_that_fails_are_told_in_words(tmp_path: Path):
    nowhere = build_channels({"ops": ChannelSetting(url="http://hooks.invalid/x?token=secret")})["ops"]
    with pytest.raises(NotDelivered, match=r"^can't resolve the host name: hooks\.invalid: ") as failed:
        await nowhere.send(MESSAGE)
    assert "secret" not in str(failed.value)
    authority = Authority(tmp_path)
    async with Receiver() as plain, Receiver(authority.issue("receiver")) as untrusted:
        for receiver, why in ((plain, ""), (untrusted, "the certificate is not trusted: ")):
            host, _, port = receiver.place.partition(":")
            channel = build_channels({"ops": ChannelSetting(url=f"https://{receiver.place}/hook")})["ops"]
            with pytest.raises(NotDelivered) as failed:
                await channel.send(MESSAGE)
            assert str(failed.value).startswith(f"TLS handshake failed: {why}")
            assert str(failed.value).endswith(f" ({host}, port {port})")


async def test_a_command_reads_the_message_from_its_standard_input(tmp_path: Path):
    file = tmp_path / "told"
    settings = {
        "good": ChannelSetting(command=("/bin/sh", "-c", f"cat > {file}")),
        "bad": ChannelSetting(command=("/bin/sh", "-c", "echo no disk >&2; exit 3")),
        "none": ChannelSetting(command=("/no/such/program",)),
    }
    channels = build_channels(settings)
    await channels["good"].send(MESSAGE)
    assert msgspec.json.decode(file.read_bytes())["link"] == "https://x/alerts"
    with pytest.raises(NotDelivered, match="sh ended with exit code 3: no disk"):
        await channels["bad"].send(MESSAGE)
    with pytest.raises(NotDelivered, match="program can't be started: No such file"):
        await channels["none"].send(MESSAGE)


def test_a_command_need_not_read_the_message():
    """On the loop of a server, which finds out at the first write that the command has ended."""
    channel = build_channels({"deaf": ChannelSetting(command=("true",))})["deaf"]
    message = msgspec.structs.replace(MESSAGE, title="a" * 500_000)  # more than a pipe takes at once

    async def send_some() -> None:
        for each in (MESSAGE, message) * 10:
            await channel.send(each)

    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        assert runner.run(send_some()) is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of apprise itself
@pytest.mark.skipif(not is_installed(), reason="apprise is not installed")
async def test_an_apprise_url_is_sent_by_apprise():
    async with Receiver() as receiver:
        channel = build_channels({"ops": ChannelSetting(url=f"json://{receiver.place}/hook")})["ops"]
        receiver.status = 200
        await channel.send(MESSAGE)
        (body,) = receiver.bodies
        assert (channel.kind, channel.place, body["title"]) == ("apprise", "json", "Test of the channel ops")
        receiver.status = 500
        with pytest.raises(NotDelivered, match="json did not accept the message"):
            await channel.send(MESSAGE)
    await asyncio.sleep(0)
