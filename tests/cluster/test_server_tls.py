"""TLS_CERT and TLS_KEY: the API, the dashboard and the clients over TLS, on a real node; and ADMIN_KEY beside them."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from onthedot.api.server.certificate import CertificateWatch, server_certificate
from onthedot.client import Client
from onthedot.errors import SettingsError, Unauthorized, Unreachable
from tests.services.ports import free_port
from tests.services.process import COMMAND, NodeProcess
from tests.services.waiting import until
from tests.targets.making_certificates import Authority

KEY = "otd_" + "k" * 40


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("authority"))
    made.issue("server")
    made.issue("renewed")
    return made


class TlsNode(NodeProcess):
    """Asked over TLS whether it is ready."""

    def __init__(self, *args: str, authority: Authority, directory: Path, port: int, env: dict[str, str]) -> None:
        self._trusted = ssl.create_default_context(cafile=str(authority.file))
        super().__init__(*args, directory=directory, port=port, env=env)
        self.url = f"https://127.0.0.1:{port}"

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", verify=self._trusted, timeout=2).status_code == 200
        except httpx.HTTPError:
            return False


@pytest.fixture
async def node(authority: Authority, tmp_path: Path) -> AsyncIterator[TlsNode]:
    for name in ("server.pem", "server.key"):
        shutil.copy(authority.folder / name, tmp_path / name)
    (tmp_path / "admin").write_text(f"{KEY}\n")
    env = {
        "ONTHEDOT_TLS_CERT": str(tmp_path / "server.pem"),
        "ONTHEDOT_TLS_KEY": str(tmp_path / "server.key"),
        "ONTHEDOT_ADMIN_KEY_FILE": str(tmp_path / "admin"),
        "ONTHEDOT_HOST": "0.0.0.0",
    }
    port = free_port()
    process = TlsNode("serve", "--port", str(port), authority=authority, directory=tmp_path, port=port, env=env)
    try:
        await process.ready()
        yield process
    finally:
        process.kill()


async def test_everything_over_tls(node: TlsNode, authority: Authority, tmp_path: Path) -> None:
    trusted = ssl.create_default_context(cafile=str(authority.file))
    assert f"https://127.0.0.1:{node.port}" in node.output()
    async with httpx.AsyncClient(base_url=node.url, verify=trusted) as browser:
        assert (await browser.get("/v1/jobs")).status_code == 401
        made = await browser.post(
            "/v1/jobs",
            headers={"authorization": f"Bearer {KEY}", "idempotency-key": "one"},
            json={"schedule": {"every": "1h"}, "target": {"type": "webhook", "url": "https://example.com/"}},
        )
        assert made.status_code == 201, made.text
        login = await browser.post("/login", data={"key": KEY}, headers={"origin": node.url})
        assert login.status_code == 303, login.text
        cookie = login.headers["set-cookie"]
        assert "; Secure" in cookie
        assert "; HttpOnly" in cookie
    await asyncio.to_thread(_check_clients, node, authority, tmp_path)
    await asyncio.to_thread(_check_command_line, node, authority, tmp_path)
    await _check_hostile(node)
    assert await node.stop() == 0


def _check_clients(node: TlsNode, authority: Authority, tmp_path: Path) -> None:
    with Client(node.url, KEY, ca=authority.file) as client:
        assert len(client.list_jobs().items) == 1
    with Client(node.url, KEY, tries=1) as client, pytest.raises(Unreachable, match="certificate is not trusted"):
        client.list_jobs()
    plain = f"http://127.0.0.1:{node.port}"
    with Client(plain, KEY, tries=1) as client, pytest.raises(Unreachable):
        client.list_jobs()
    with Client(node.url, "otd_" + "w" * 40, ca=authority.file) as client, pytest.raises(Unauthorized):
        client.list_jobs()
    with pytest.raises(SettingsError, match="the CA file"):
        Client(node.url, ca=tmp_path / "none.pem")


def _check_command_line(node: TlsNode, authority: Authority, tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ONTHEDOT_KEY": KEY, "ONTHEDOT_URL": node.url}
    for more, arguments in (({}, ["--ca", str(authority.file)]), ({"ONTHEDOT_CA": str(authority.file)}, [])):
        listed = subprocess.run(
            [COMMAND, *arguments, "jobs", "list", "--json"],
            env={**environ, **more},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert '"https://example.com/"' in listed.stdout


async def _check_hostile(node: TlsNode) -> None:
    """Plain HTTP, garbage and silence at the TLS port end with that connection."""
    for sent in (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"\x16\x03\x01" + b"\xff" * 50):
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        writer.write(sent)
        assert b"HTTP/1.1 200" not in await asyncio.wait_for(reader.read(), 10)
        writer.close()
    with socket.create_connection(("127.0.0.1", node.port)):
        assert node._answers()


async def test_a_renewed_certificate_is_used_without_a_restart(authority: Authority, tmp_path: Path) -> None:
    for name in ("pem", "key"):
        shutil.copy(authority.folder / f"server.{name}", tmp_path / f"live.{name}")
    certificate = server_certificate(tmp_path / "live.pem", tmp_path / "live.key")
    assert certificate is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.load(context)
    watch = CertificateWatch(certificate, context)
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]

    def shown() -> str:
        return ssl.get_server_certificate(("127.0.0.1", port))

    before = await asyncio.to_thread(shown)
    assert not watch.look()
    shutil.copy(authority.folder / "renewed.pem", tmp_path / "live.pem")
    assert not watch.look(), "the key has not come yet"
    assert await asyncio.to_thread(shown) == before
    shutil.copy(authority.folder / "renewed.key", tmp_path / "live.key")
    assert watch.look()
    assert await asyncio.to_thread(shown) == (authority.folder / "renewed.pem").read_text().strip() + "\n" != before
    server.close()
    await server.wait_closed()


def test_files_that_can_not_be_used_are_told(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.folder / "server.pem", authority.folder / "server.key"
    assert server_certificate(None, None) is None
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("nothing")
    locked = tmp_path / "locked.key"
    subprocess.run(
        ["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:x", "-out", locked],
        check=True,
        capture_output=True,
    )
    for given, told in (
        ((None, key), "TLS_KEY is set but TLS_CERT is not"),
        ((tmp_path / "none.pem", key), r"none\.pem does not exist"),
        ((cert, authority.folder / "renewed.key"), "the key does not belong to the certificate"),
        ((wrong, key), "not a certificate chain and its key in PEM"),
        ((cert, None), "not a certificate chain and its key in PEM"),
        ((cert, locked), "the key is encrypted"),
    ):
        with pytest.raises(SettingsError, match=told):
            server_certificate(*given)


async def test_the_wait_for_the_store_is_over_tls_too(authority: Authority, tmp_path: Path) -> None:
    port, nowhere = free_port(), free_port()
    env = {
        "ONTHEDOT_TLS_CERT": str(authority.folder / "server.pem"),
        "ONTHEDOT_TLS_KEY": str(authority.folder / "server.key"),
        "POSTGRES_HOST": "127.0.0.1",
        "POSTGRES_PORT": str(nowhere),
        "POSTGRES_USER": "anna",
    }
    node = TlsNode("serve", "--port", str(port), authority=authority, directory=tmp_path, port=port, env=env)
    trusted = ssl.create_default_context(cafile=str(authority.file))
    try:

        def answer() -> httpx.Response | None:
            try:
                return httpx.get(f"{node.url}/readyz", verify=trusted, timeout=2)
            except httpx.HTTPError:
                return None

        async def answers() -> bool:
            return await asyncio.to_thread(answer) is not None

        await until(answers, "the waiting server answers", 20)
        seen = await asyncio.to_thread(answer)
        assert seen is not None
        assert seen.status_code == 503
        assert seen.json()["store"] == "can't be reached"
    finally:
        node.kill()
