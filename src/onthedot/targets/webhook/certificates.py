"""Certificates that webhooks show to their receivers, and private authorities that they trust, by the names that the
operator gave them.

A job names a certificate; which receivers may be shown it is the operator's to say (`hosts`). Whoever may create jobs
could otherwise use the operator's identity against any receiver that accepts it. Without `hosts` it is for the jobs of
the default tenant, which is the operator's own.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from onthedot.settings import CertificateSetting
from onthedot.targets.contract import TargetDiagnosis
from onthedot.targets.webhook.certificate_dates import valid_until

__all__ = ["OWN_TENANT", "CertificateError", "diagnoses", "findings", "load", "names_for", "refusal", "stamp"]

OWN_TENANT = 1
SOON = timedelta(days=14)


class CertificateError(Exception):
    """The files of a certificate can't be used; the message says which and why."""


def names_for(settings: Mapping[str, CertificateSetting], tenant: int) -> list[str]:
    """Those that jobs of this tenant may name."""
    return sorted(name for name, setting in settings.items() if setting.hosts or tenant == OWN_TENANT)


def refusal(setting: CertificateSetting, host: str, port: int, tenant: int) -> str | None:
    """Why this receiver may not be shown it; None: it may."""
    if not setting.hosts:
        return None if tenant == OWN_TENANT else "it is restricted to jobs of the default tenant"
    name = host.lower().rstrip(".")
    labels = name.split(".")
    spellings = {"*", name, f"[{name}]", *("*." + ".".join(labels[start:]) for start in range(1, len(labels)))}
    listed = {entry.lower().rstrip(".") for entry in setting.hosts}
    if spellings & listed or any(f"{spelling}:{port}" in listed for spelling in spellings):
        return None
    return f"it is restricted to {', '.join(setting.hosts)}"


def load(setting: CertificateSetting) -> ssl.SSLContext:
    """Reads files: takes milliseconds. CertificateError: they can't be used."""
    try:
        context = ssl.create_default_context(cafile=setting.ca)
    except (OSError, ValueError) as error:
        raise CertificateError(f"{setting.ca}: {_why(error)}") from None
    context.set_alpn_protocols(["http/1.1"])
    if setting.cert is not None:
        _load_own(context, setting.cert, setting.key)
    return context


def _load_own(context: ssl.SSLContext, cert: str, key: str | None) -> None:
    for file in (cert, key):
        if file is not None:
            _read(file)
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except ssl.SSLError as error:
        if "KEY_VALUES_MISMATCH" in str(error):
            raise CertificateError(f"{key or cert}: the key does not match the certificate in {cert}") from None
        raise CertificateError(f"{cert}, {key}: {_why(error)}" if key else f"{cert}: {_why(error)}") from None
    except (OSError, ValueError) as error:
        raise CertificateError(f"{key or cert}: {_why(error)}") from None


def _no_password() -> str:
    """Otherwise OpenSSL would ask on the terminal."""
    raise ValueError("the key is encrypted; use one without a passphrase")


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise CertificateError(f"{file}: {_why(error)}") from None


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"not valid PEM ({error.reason or error})"
    return str(error.strerror or error) if isinstance(error, OSError) else str(error)


def stamp(setting: CertificateSetting) -> tuple[object, ...]:
    """Changes when one of the files does: written anew, replaced, or a link that leads elsewhere now."""
    found: list[object] = []
    for file in (setting.cert, setting.key, setting.ca):
        try:
            state = None if file is None else Path(file).stat()
        except OSError:
            state = None
        found.append(None if state is None else (state.st_mtime_ns, state.st_size, state.st_ino))
    return tuple(found)


def diagnoses(settings: Mapping[str, CertificateSetting], now_ms: int) -> list[TargetDiagnosis]:
    """Read as a node that is started here would read them."""
    told = []
    for name, setting in sorted(settings.items()):
        found = findings(setting, now_ms)
        if not found:
            hosts = ", ".join(setting.hosts) or "all hosts, for jobs of the default tenant"
            told.append(TargetDiagnosis("certificate", f"{name} for {hosts}"))
        advice = "renew the files; a running node reads them within seconds"
        told += [TargetDiagnosis("certificate", f"{name}: {what}", advice, is_wrong) for is_wrong, what in found]
    return told


def findings(setting: CertificateSetting, now_ms: int) -> list[tuple[bool, str]]:
    """What is wrong with it, or will soon be: (is it wrong already, what). Reads its files."""
    try:
        load(setting)
    except CertificateError as error:
        return [(True, str(error))]
    now, found = datetime.fromtimestamp(now_ms / 1000, UTC), list[tuple[bool, str]]()
    for file in (setting.cert, setting.ca):
        if file is None:
            continue
        try:
            end = valid_until(_read(file))
        except (CertificateError, ValueError) as error:
            found.append((True, f"{file}: {error}" if isinstance(error, ValueError) else str(error)))
            continue
        if end <= now:
            found.append((True, f"{file}: expired on {end:%Y-%m-%d %H:%M} UTC"))
        elif end - now < SOON:
            found.append((False, f"{file}: expires on {end:%Y-%m-%d %H:%M} UTC"))
    return found
