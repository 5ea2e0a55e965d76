"""Make the environment that `make run` (run) or `make test` (dev) needs, or say within milliseconds that it is there.

Only the standard library: this runs before anything is installed. What was installed is remembered as a digest of
the requirements' content, not of file times, so that a fresh checkout of the same versions installs nothing.
uv installs in seconds what takes pip more than a minute, so it is used if it is on the PATH or can be fetched; where
it is not to be had, pip does the work.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = (ROOT / os.environ.get("VENV", ".venv")).absolute()
PYTHON = VENV / "bin" / "python"
STATE = VENV / ".installed.json"
IDENTITY = f"{VENV} {sys.base_prefix} {sys.version_info.major}.{sys.version_info.minor}"
SETS = {"run": ["run.txt", "build.txt"], "dev": ["dev.txt"]}


def main(kind: str) -> int:
    if kind not in SETS:
        print(f"usage: make_venv.py {'|'.join(SETS)}", file=sys.stderr)
        return 2
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # `make run` and `make test` may start together
        state = read_state()
        if state.get(kind) == digest(kind):
            return 0
        # Somebody who has the tools keeps them when only `make run` notices the change.
        kind = "dev" if "dev" in state else kind
        print(f"Creating {VENV.name} ({kind}); this takes a few seconds, once.", file=sys.stderr)
        try:
            install(kind, fresh=not state)
        except subprocess.CalledProcessError as failed:
            print(f"This did not work: {' '.join(map(str, failed.cmd))}", file=sys.stderr)
            return 1
        installed = ["run", "dev"] if kind == "dev" else ["run"]
        STATE.write_text(json.dumps({"is": IDENTITY, **{each: digest(each) for each in installed}}))
    return 0


def read_state() -> dict[str, str]:
    """What was installed; nothing if the environment is missing, broken, moved or of another Python."""
    try:
        state: dict[str, str] = json.loads(STATE.read_text())
    except (OSError, ValueError):
        return {}
    return state if state.get("is") == IDENTITY and PYTHON.exists() else {}


def digest(kind: str) -> str:
    """Of everything that decides what is in the environment: requirements, our own entry points, this script."""
    seen = hashlib.sha256()
    for path in [*(ROOT / "requirements" / name for name in SETS[kind]), ROOT / "pyproject.toml", Path(__file__)]:
        seen.update(path.read_bytes())
    return seen.hexdigest()


def install(kind: str, *, fresh: bool) -> None:
    environ = environment()
    uv = working_uv(environ)
    if fresh:
        create(with_pip=uv is None, environ=environ)
        uv = uv or fetch_uv(environ)
    files = [ROOT / "requirements" / name for name in SETS[kind]]
    if uv and VENV in Path(uv).parents:
        files.append(ROOT / "requirements" / "uv.txt")  # a sync removes what is not listed, itself included
    wanted = [argument for path in files for argument in ("-r", str(path))]
    ourselves = ["--no-deps", "--no-build-isolation", "-e", str(ROOT)]
    if uv and run([uv, "pip", "sync", "--quiet", "--require-hashes", *map(str, files)], environ, check=False):
        run([uv, "pip", "install", "--quiet", *ourselves], environ)
        return
    print("Without uv it takes a minute or two.", file=sys.stderr)
    if not (VENV / "bin" / "pip").exists():
        create(with_pip=True, environ=environ)
    run([PYTHON, "-m", "pip", "install", "--quiet", "--require-hashes", *wanted], environ)
    run([PYTHON, "-m", "pip", "install", "--quiet", *ourselves], environ)


def environment() -> dict[str, str]:
    environ = {
        **os.environ,
        "VIRTUAL_ENV": str(VENV),
        "UV_PYTHON": str(PYTHON),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_PROGRESS": "" if sys.stderr.isatty() else "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }
    environ.pop("PYTHONPATH", None)
    if ssl.create_default_context().cert_store_stats()["x509_ca"]:
        # Trust what the machine trusts, as pip does: a company's proxy is known to the machine, not to uv.
        environ |= {"UV_SYSTEM_CERTS": "true", "UV_NATIVE_TLS": "true"}  # one setting, the second is its older name
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME") or "/nonexistent") / ".cache")
    if not any(os.access(place, os.W_OK) for place in (home, home.parent)) and "UV_CACHE_DIR" not in environ:
        # An account without a home: a cache that lasts as long as this call is better than a refusal.
        environ["UV_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"onthedot-uv-{os.getuid()}")
        environ["PIP_NO_CACHE_DIR"] = "1"
    return environ


def working_uv(environ: dict[str, str]) -> str | None:
    for uv in (shutil.which("uv"), str(VENV / "bin" / "uv")):
        if uv and Path(uv).exists() and run([uv, "--version"], environ, check=False, quiet=True):
            return uv
    return None


def fetch_uv(environ: dict[str, str]) -> str | None:
    wanted = ["--quiet", "--only-binary", ":all:", "--require-hashes", "-r", str(ROOT / "requirements" / "uv.txt")]
    if run([PYTHON, "-m", "pip", "install", *wanted], environ, check=False):
        return str(VENV / "bin" / "uv")
    return None


def create(*, with_pip: bool, environ: dict[str, str]) -> None:
    """From the interpreter behind an environment, never from the one that is about to be removed."""
    if VENV.exists() and not (VENV / "pyvenv.cfg").exists():
        raise SystemExit(f"{VENV} is there and is no environment: name another place with VENV=…")
    python = getattr(sys, "_base_executable", sys.executable)
    options = [] if with_pip else ["--without-pip"]
    if with_pip and not run([python, "-c", "import ensurepip"], environ, check=False, quiet=True):
        print("This Python lacks its venv module: apt install python3-venv (or put uv on the PATH).", file=sys.stderr)
    run([python, "-m", "venv", "--clear", *options, VENV], environ)


def run(command: list[str | Path], environ: dict[str, str], *, check: bool = True, quiet: bool = False) -> bool:
    """All output to standard error: what `make run` prints on standard output is the node's own."""
    output = subprocess.DEVNULL if quiet else sys.stderr
    return subprocess.run(command, cwd=ROOT, env=environ, check=check, stdout=output, stderr=output).returncode == 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or ["run"]))
