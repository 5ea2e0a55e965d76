"""How the API server is reached, and as whom: by a kubeconfig, or by the service account of the pod of the node.

Reads files: not for a loop.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from onthedot.settings import KubernetesSetting

__all__ = ["ClusterAccess", "NoAccess", "load_access"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NOT_SUPPORTED = {
    "exec": "a credential plugin (exec)",
    "auth-provider": "an auth-provider",
    "username": "a user name and password",
    "as": "impersonation (as)",
}


class NoAccess(Exception):
    """There is no way to a cluster here; the message says why."""


class ClusterAccess(msgspec.Struct, frozen=True, kw_only=True):
    server: str  # https://HOST:PORT, without a slash at the end
    origin: str  # where that was found, for who has to correct it
    namespace: str = "default"
    tls: Any = None  # an ssl.SSLContext; None: the server is not reached by TLS
    server_name: str | None = None  # what its certificate says, if not its host
    token: str | None = None
    token_file: Path | None = None  # read again and again: tokens of service accounts change every hour


def load_access(
    setting: KubernetesSetting, environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT
) -> ClusterAccess:
    """NoAccess if there is none. A file that is named comes first, then the pod's own account, then the user's file."""
    if setting.kubeconfig is None and setting.context is None and "KUBERNETES_SERVICE_HOST" in environ:
        return _in_cluster(environ, service_account)
    named = setting.kubeconfig or environ.get("KUBECONFIG")
    if named is not None and os.pathsep in named:
        raise NoAccess(f"KUBECONFIG={named}: more than one file is not supported; name one as [kubernetes] kubeconfig")
    return _by_file(Path(named or "~/.kube/config").expanduser(), setting.context)


def _in_cluster(environ: Mapping[str, str], folder: Path) -> ClusterAccess:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        tls = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        namespace = (folder / "namespace").read_text().strip()
        token = (folder / "token").read_text().strip()
    except OSError as error:
        why = "has its pod automountServiceAccountToken: false?"
        raise NoAccess(f"the service account of this pod can't be read: {error} ({why})") from error
    return ClusterAccess(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        origin="service account of this pod",
        namespace=namespace or "default",
        tls=tls,
        token=token,
        token_file=folder / "token",
    )


def _by_file(path: Path, wanted: str | None) -> ClusterAccess:
    try:
        config = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise NoAccess(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise NoAccess(f"{path} is not a valid kubeconfig: {error}") from error
    if not isinstance(config, dict):
        raise NoAccess(f"{path} is not a valid kubeconfig")
    name = wanted or config.get("current-context")
    if not name:
        raise NoAccess(f"{path} has no current-context; name one as [kubernetes] context")
    context = _named(config, "context", name, path)
    cluster = _named(config, "cluster", context.get("cluster"), path)
    user = _named(config, "user", context["user"], path) if context.get("user") else {}
    for field, what in _NOT_SUPPORTED.items():
        if user.get(field):
            advice = "use a token, a tokenFile or a client certificate"
            raise NoAccess(f"{path}: user {context['user']} has {what}, which is not supported; {advice}")
    if cluster.get("proxy-url"):
        raise NoAccess(f"{path}: proxy-url is not supported")
    server = str(cluster.get("server", "")).rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise NoAccess(f"{path}: the server of cluster {context.get('cluster')} is {server!r}, not a URL")
    token_file = user.get("tokenFile")
    try:
        return ClusterAccess(
            server=server,
            origin=f"{path}, context {name}",
            namespace=str(context.get("namespace") or "default"),
            tls=_tls(cluster, user, path.parent) if server.startswith("https://") else None,
            server_name=cluster.get("tls-server-name"),
            token=(path.parent / token_file).read_text().strip() if token_file else user.get("token"),
            token_file=path.parent / token_file if token_file else None,
        )
    except (OSError, ValueError) as error:  # also what TLS says of certificates and keys
        raise NoAccess(f"{path}: {error}") from error


def _named(config: dict[str, Any], kind: str, name: Any, path: Path) -> dict[str, Any]:
    entries = config.get(f"{kind}s") or []
    for entry in entries:
        if isinstance(entry, dict) and entry.get("name") == name:
            found = entry.get(kind)
            return found if isinstance(found, dict) else {}
    known = ", ".join(str(entry.get("name")) for entry in entries if isinstance(entry, dict)) or "none"
    raise NoAccess(f"{path} has no {kind} {name!r}; it has {known}")


def _tls(cluster: dict[str, Any], user: dict[str, Any], folder: Path) -> ssl.SSLContext:
    tls = ssl.create_default_context()
    if authority := cluster.get("certificate-authority-data"):
        tls = ssl.create_default_context(cadata=base64.b64decode(authority, validate=True).decode())
    elif authority := cluster.get("certificate-authority"):
        tls = ssl.create_default_context(cafile=str(folder / authority))
    if cluster.get("insecure-skip-tls-verify") is True:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    cert, key = (_file(user, f"client-{what}", folder) for what in ("certificate", "key"))
    if cert is not None:
        _load_pair(tls, cert, key)
    return tls


def _file(user: dict[str, Any], field: str, folder: Path) -> Path | bytes | None:
    if data := user.get(f"{field}-data"):
        return base64.b64decode(data, validate=True)
    return folder / user[field] if user.get(field) else None


def _load_pair(tls: ssl.SSLContext, cert: Path | bytes, key: Path | bytes | None) -> None:
    """OpenSSL reads certificates of clients from files only."""
    with tempfile.TemporaryDirectory(prefix="onthedot-kubernetes-") as place:
        paths: list[Path | None] = []
        for name, given in (("cert", cert), ("key", key)):
            if isinstance(given, bytes):
                path = Path(place) / name
                path.touch(0o600)
                path.write_bytes(given)
                paths.append(path)
            else:
                paths.append(given)
        assert paths[0] is not None
        tls.load_cert_chain(paths[0], paths[1])
