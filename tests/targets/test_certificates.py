"""Certificates by name: shown to a real TLS server that wants one, rotated, and kept from whom they are not for."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from onthedot import telemetry
from onthedot.errors import Invalid
from onthedot.model.targets import WebhookTarget
from onthedot.settings import CertificateSetting
from onthedot.targets.webhook import certified_pools
from onthedot.targets.webhook.certificate_dates import valid_until
from onthedot.targets.webhook.certificates import CertificateError, findings, load, refusal
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.kind import Webhooks
from tests.services.waiting import until
from tests.targets.conftest import MakeCall
from tests.targets.making_certificates import Authority, openssl
from tests.targets.receivers import CERTIFICATES, server
from tests.targets.sending import send

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def in_ms(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)


NOW = in_ms(datetime.now(UTC))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("authority"))
    for name in ("receiver", "ann", "bob"):
        made.issue(name)
    return made


@pytest.fixture
def setting(authority: Authority, tmp_path: Path) -> Any:
    """Of a certificate in files of its own: `setting("ann", hosts=(…))`."""

    def make(name: str, **more: Any) -> CertificateSetting:
        files = {}
        for field, ending in (("cert", "pem"), ("key", "key")):
            files[field] = str(shutil.copy(authority.folder / f"{name}.{ending}", tmp_path / f"{name}.{ending}"))
        return CertificateSetting(**{**files, "ca": str(authority.file), **more})

    return make


@pytest.fixture
def said() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    events: list[tuple[str, dict[str, Any]]] = []
    stop = telemetry.subscribe(lambda event: events.append((event.name, event.fields)))
    yield events
    stop()


class Strict:
    """A receiver that answers only who shows a certificate of its authority: `shown` has their names, in order."""

    def __init__(self, authority: Authority) -> None:
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.file))
        self.tls.verify_mode = ssl.CERT_REQUIRED
        self.tls.load_cert_chain(authority.folder / "receiver.pem", authority.folder / "receiver.key")
        self.shown: list[str] = []
        self.connections: set[int] = set()

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        subject: Any = writer.get_extra_info("peercert")["subject"]
        self.shown.append(dict(part[0] for part in subject)["commonName"])
        self.connections.add(writer.get_extra_info("peername")[1])
        writer.write(OK)
        await writer.drain()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        async with server(self.respond, ssl=self.tls) as url:
            yield url.replace("http://127.0.0.1", "https://localhost")


@pytest.fixture
def receiver(authority: Authority) -> Strict:
    return Strict(authority)


@asynccontextmanager
async def webhooks(**certificates: CertificateSetting) -> AsyncIterator[Webhooks]:
    async with Webhooks(EgressRule(allow_private=True), certificates=certificates) as made:
        yield made


async def test_it_is_shown_and_connections_are_not_shared(receiver: Strict, setting: Any, make_call: MakeCall):
    async with receiver.listening() as url, webhooks(a=setting("ann"), b=setting("bob")) as made:
        assert made.capabilities() == ["webhook", "webhook:a", "webhook:b"]
        for name in ("a", "b", "a", "b", "a"):
            outcome = await send(made, make_call(WebhookTarget(url=url, certificate=name)))
            assert outcome.ok, outcome
    assert receiver.shown == ["ann", "bob", "ann", "bob", "ann"]
    assert len(receiver.connections) == 2


async def test_without_one_nobody_is_answered(receiver: Strict, authority: Authority, make_call: MakeCall):
    ca_alone = CertificateSetting(ca=str(authority.file))
    async with receiver.listening() as url, webhooks(ca=ca_alone) as made:
        for target in (WebhookTarget(url=url), WebhookTarget(url=url, certificate="ca")):
            outcome = await send(made, make_call(target))
            assert (outcome.kind, outcome.retryable) == ("error", True)
    assert receiver.shown == []


async def test_a_private_authority_alone(authority: Authority, make_call: MakeCall):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.folder / "receiver.pem", authority.folder / "receiver.key")

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)

    async with server(respond, ssl=tls) as url, webhooks(ca=CertificateSetting(ca=str(authority.file))) as made:
        url = url.replace("http://127.0.0.1", "https://localhost")
        assert "CERTIFICATE_VERIFY_FAILED" in str((await send(made, make_call(WebhookTarget(url=url)))).error)
        assert (await send(made, make_call(WebhookTarget(url=url, certificate="ca")))).ok


async def test_files_that_change_are_read_anew(
    receiver: Strict,
    setting: Any,
    authority: Authority,
    make_call: MakeCall,
    monkeypatch: pytest.MonkeyPatch,
    said: Any,
):
    monkeypatch.setattr(certified_pools, "LOOK_EVERY", 0.01)
    mine = setting("ann")
    async with receiver.listening() as url, webhooks(a=mine) as made:
        target = WebhookTarget(url=url, certificate="a")
        assert (await send(made, make_call(target))).ok
        shutil.copy(authority.folder / "bob.key", mine.key)  # for a moment they do not belong together
        await until(lambda: any(name == "certificate.broken" for name, _ in said))
        assert (await send(made, make_call(target))).ok
        assert made.capabilities() == ["webhook", "webhook:a"]
        shutil.copy(authority.folder / "bob.pem", mine.cert)
        await until(lambda: any(name == "certificate.reloaded" for name, _ in said))
        assert (await send(made, make_call(target))).ok
    assert receiver.shown == ["ann", "ann", "bob"]
    assert [fields["kept"] for name, fields in said if name == "certificate.broken"] == [True]


async def test_one_that_can_t_be_read_is_not_offered_until_it_can(
    receiver: Strict, setting: Any, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch, said: Any
):
    monkeypatch.setattr(certified_pools, "LOOK_EVERY", 0.01)
    mine = setting("ann")
    key = Path(mine.key)
    written = key.read_text()
    key.unlink()
    async with receiver.listening() as url, webhooks(a=mine) as made:
        target = WebhookTarget(url=url, certificate="a")
        assert made.capabilities() == ["webhook"]
        refused = await send(made, make_call(target))
        assert (refused.kind, refused.error) == ("refused", "certificate 'a' not found on this node")
        key.write_text(written)
        await until(lambda: made.capabilities() == ["webhook", "webhook:a"])
        assert (await send(made, make_call(target))).ok
    assert [(name, fields["kept"]) for name, fields in said if name.startswith("certificate")] == [
        ("certificate.broken", False)
    ]


async def test_what_the_operator_does_not_allow_never_leaves(receiver: Strict, setting: Any, make_call: MakeCall):
    """A job may be older than the settings, or have been made by a node with others."""
    async with (
        receiver.listening() as url,
        webhooks(a=setting("ann", hosts=("hooks.example",)), b=setting("bob")) as made,
    ):
        refused = await send(made, make_call(WebhookTarget(url=url, certificate="a")))
        assert refused.error == "certificate 'a' is not allowed: it is restricted to hooks.example"
        call = make_call(WebhookTarget(url=url, certificate="b"))
        call.tenant = 2
        assert (await send(made, call)).error == (
            "certificate 'b' is not allowed: it is restricted to jobs of the default tenant"
        )
    assert receiver.shown == []


@pytest.mark.parametrize(
    ("hosts", "host", "port", "tenant", "allowed"),
    [
        ((), "any.example", 443, 1, True),
        ((), "any.example", 443, 2, False),
        (("*",), "any.example", 443, 2, True),
        (("a.example",), "A.example.", 443, 2, True),
        (("a.example",), "b.a.example", 443, 1, False),
        (("*.a.example",), "x.b.a.example", 443, 2, True),
        (("*.a.example",), "a.example", 443, 2, False),
        (("a.example:8443",), "a.example", 8443, 2, True),
        (("a.example:8443",), "a.example", 443, 2, False),
        (("127.0.0.1",), "127.0.0.1", 443, 2, True),
        (("[::1]:8443",), "::1", 8443, 2, True),
        (("example",), "notexample", 443, 1, False),
    ],
)
def test_whom_it_is_for(hosts: tuple[str, ...], host: str, port: int, tenant: int, allowed: bool):
    assert (refusal(CertificateSetting(ca="x", hosts=hosts), host, port, tenant) is None) == allowed


def check(target: WebhookTarget, tenant: int = 1) -> dict[str, str | None]:
    made = Webhooks(
        EgressRule(allow_private=True),
        certificates={"own": CertificateSetting(ca="x"), "all": CertificateSetting(ca="x", hosts=("*.example",))},
    )
    try:
        made.check(target, tenant)
    except Invalid as invalid:
        return {problem.path: problem.accepted for problem in invalid.problems}
    return {}


def test_unknown_names_are_refused_with_those_that_are_known():
    url = "https://a.example/"
    assert check(WebhookTarget(url=url, certificate="none")) == {"target.certificate": "all, own"}
    assert check(WebhookTarget(url=url, certificate="own"), tenant=2) == {"target.certificate": "all"}
    assert check(WebhookTarget(url=url, certificate="own")) == check(WebhookTarget(url=url, certificate="all"), 2) == {}
    assert list(check(WebhookTarget(url="https://a.test/", certificate="all"))) == ["target.certificate"]
    assert [problem.path for problem in WebhookTarget(url="http://a.example/", certificate="own").problems()] == [
        "target.certificate"
    ]


def test_what_is_wrong_with_the_files(setting: Any, authority: Authority, tmp_path: Path):
    good = setting("ann")
    assert findings(good, NOW) == []
    assert findings(CertificateSetting(ca=str(authority.file)), NOW) == []
    locked = tmp_path / "locked.key"
    openssl("ec", "-in", good.key, "-aes256", "-passout", "pass:x", "-out", locked, folder=tmp_path)
    (tmp_path / "empty.pem").write_text("nothing")
    wrong = {
        "expired on 2020-01-02 00:00 UTC": CertificateSetting(cert=str(CERTIFICATES / "expired.pem")),
        "the key does not match the certificate": CertificateSetting(cert=good.cert, key=setting("bob").key),
        "No such file or directory": CertificateSetting(cert=good.cert, key=str(tmp_path / "nowhere.key")),
        "the key is encrypted": CertificateSetting(cert=good.cert, key=str(locked)),
        "not valid PEM": CertificateSetting(cert=str(tmp_path / "empty.pem"), key=good.key),
        "no key in it": CertificateSetting(cert=good.cert),
        "ca.pem: No such file": CertificateSetting(ca=str(tmp_path / "ca.pem")),
    }
    for words, broken in wrong.items():
        ((is_wrong, what),) = findings(broken, NOW)
        if words != "no key in it":  # OpenSSL has its own words for it
            assert words in what, what
        assert is_wrong


def test_what_will_be_wrong_soon(setting: Any):
    mine = setting("ann", ca=None)
    end = valid_until(Path(mine.cert).read_text())
    ((is_wrong, what),) = findings(mine, in_ms(end - timedelta(days=13)))
    assert (is_wrong, f"expires on {end:%Y-%m-%d}" in what) == (False, True)
    assert findings(mine, in_ms(end - timedelta(days=15))) == []
    assert findings(mine, in_ms(end))[0][0]


@pytest.mark.parametrize("days", [1, 400, 36_500])
def test_the_date_is_the_one_that_openssl_reads(authority: Authority, days: int):
    cert, _ = authority.issue(f"until{days}", days=days)
    told = openssl("x509", "-in", cert, "-noout", "-enddate", folder=authority.folder)
    expected = datetime.strptime(told.strip().removeprefix("notAfter="), "%b %d %H:%M:%S %Y %Z").replace(tzinfo=UTC)
    assert valid_until(Path(cert).read_text()) == expected


@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----", "x" * 99])
def test_no_certificate_is_said_to_be_none(text: str):
    with pytest.raises(ValueError):
        valid_until(text)


def test_the_key_may_be_in_the_file_of_the_certificate(setting: Any, tmp_path: Path):
    mine, both = setting("ann"), tmp_path / "both.pem"
    both.write_text(Path(mine.cert).read_text() + Path(mine.key).read_text())
    assert load(CertificateSetting(cert=str(both))).verify_mode == ssl.CERT_REQUIRED
    with pytest.raises(CertificateError):
        load(CertificateSetting(cert=mine.cert))
