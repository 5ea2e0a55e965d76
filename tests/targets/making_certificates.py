"""Certificates made by openssl, by an authority of the test's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

EXTENSIONS = """
subjectAltName=DNS:localhost,IP:127.0.0.1
basicConstraints=CA:FALSE
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
"""


def openssl(*arguments: object, folder: Path) -> str:
    done = subprocess.run(["openssl", *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Authority:
    """`authority.issue("client")` makes client.pem and client.key in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "authority.pem"
        signs = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
        self._new("authority", "-x509", "-days", "30", *signs, "-out", "authority.pem")

    def issue(self, name: str, *, days: int = 30) -> tuple[str, str]:
        """The files of its certificate and its key."""
        self._new(name, "-out", f"{name}.csr")
        (self.folder / "extensions.cnf").write_text(EXTENSIONS)
        signing = ["-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial", "-extfile", "extensions.cnf"]
        asked = ("-in", f"{name}.csr", "-days", days, "-out", f"{name}.pem")
        openssl("x509", "-req", *asked, *signing, folder=self.folder)
        return str(self.folder / f"{name}.pem"), str(self.folder / f"{name}.key")

    def _new(self, name: str, *more: object) -> None:
        openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", f"/CN={name}", "-keyout", f"{name}.key"),
            *more,
            folder=self.folder,
        )
