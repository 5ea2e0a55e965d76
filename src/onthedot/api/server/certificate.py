"""The certificate that the server shows: checked before the start, and read again when its files change, so that one
that was renewed is in use without a restart."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import msgspec
import structlog

from onthedot.clock import Clock, SystemClock
from onthedot.errors import SettingsError

__all__ = ["CertificateWatch", "ServerCertificate", "server_certificate"]

LOOK_EVERY = 10.0
_log = structlog.stdlib.get_logger("onthedot.api")


class ServerCertificate(msgspec.Struct, frozen=True):
    """Files in PEM. `key` None: it is in the file of the certificate."""

    cert: Path
    key: Path | None = None

    def load(self, context: ssl.SSLContext) -> None:
        context.load_cert_chain(self.cert, self.key, password=_no_password)

    def stamp(self) -> tuple[tuple[int, int, int], ...] | None:
        """Changes with the files; None: one of them is away, for a moment perhaps."""
        try:
            states = [path.stat() for path in (self.cert, self.key) if path is not None]
        except OSError:
            return None
        return tuple((state.st_mtime_ns, state.st_size, state.st_ino) for state in states)


def server_certificate(cert: Path | None, key: Path | None) -> ServerCertificate | None:
    """What TLS_CERT and TLS_KEY name, tried. Raises SettingsError."""
    if cert is None:
        if key is not None:
            raise SettingsError("TLS_KEY is set but TLS_CERT is not: set TLS_CERT to the file of the certificate")
        return None
    certificate = ServerCertificate(cert, key)
    try:
        certificate.load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise SettingsError(_told(certificate, error)) from None
    return certificate


class CertificateWatch:
    def __init__(self, certificate: ServerCertificate, context: ssl.SSLContext, clock: Clock | None = None) -> None:
        self._certificate = certificate
        self._context = context
        self._clock = clock or SystemClock()
        self._seen = certificate.stamp()

    async def run(self) -> None:
        while True:
            await self._clock.sleep(LOOK_EVERY)
            await asyncio.to_thread(self.look)

    def look(self) -> bool:
        """Whether other files are in use from now on. Files that do not fit each other change nothing: the second of
        them may be on its way."""
        now = self._certificate.stamp()
        if now is None or now == self._seen:
            return False
        self._seen = now
        try:
            self._certificate.load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
            self._certificate.load(self._context)
        except (OSError, ValueError) as error:
            _log.error("the certificate changed but can't be used; the old one stays in use", error=str(error))
            return False
        _log.info("certificate reloaded", cert=str(self._certificate.cert))
        return True


def _no_password() -> str:
    """Asked only if the key is encrypted; without this, OpenSSL would ask on the terminal."""
    raise ValueError("the key is encrypted; store it without a passphrase")


def _told(certificate: ServerCertificate, error: Exception) -> str:
    files = f"TLS_CERT {certificate.cert}" + (f" and TLS_KEY {certificate.key}" if certificate.key else "")
    if isinstance(error, ssl.SSLError):
        if error.reason == "KEY_VALUES_MISMATCH":
            return f"{files} can't be used: the key does not belong to the certificate"
        return f"{files} can't be used: not a certificate chain and its key in PEM ({error.reason or error})"
    if isinstance(error, OSError):
        missing = next((path for path in (certificate.cert, certificate.key) if path and not path.exists()), None)
        return f"{files} can't be read: {f'{missing} does not exist' if missing else error.strerror or error}"
    return f"{files} can't be used: {error}"
