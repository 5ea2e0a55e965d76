"""A real Airflow of its own: installed from the registry into an environment of its own, started as `standalone`.

It needs 600 MB and a minute until it answers, so that only tests which are asked for by name use it (AIRFLOW=1).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.services.ports import free_port
from tests.services.waiting import until_blocking

__all__ = ["PASSWORD", "USER", "RealAirflow", "running_airflow"]

USER, PASSWORD = "admin", "secret"
PATIENCE = 300.0
DAGS = """
import time
from airflow.sdk import DAG, task

with DAG("quick", schedule=None):
    @task
    def works():
        return 1
    works()

with DAG("broken", schedule=None):
    @task
    def load():
        raise RuntimeError("no")
    load()

with DAG("slow", schedule=None):
    @task
    def sleeps():
        time.sleep(600)
    sleeps()
"""


class RealAirflow:
    def __init__(self, url: str) -> None:
        self.url = url
        with httpx.Client(timeout=60) as client:
            answer = client.post(f"{url}/auth/token", json={"username": USER, "password": PASSWORD})
            token = answer.raise_for_status().json()["access_token"]
        self._client = httpx.Client(base_url=f"{url}/api/v2", headers={"authorization": f"Bearer {token}"}, timeout=60)

    @property
    def version(self) -> str:
        return str(self._client.get("/version").json()["version"])

    def dags(self) -> set[str]:
        return {each["dag_id"] for each in self._client.get("/dags").raise_for_status().json()["dags"]}

    def runs(self, dag: str) -> dict[str, dict[str, object]]:
        answer = self._client.get(f"/dags/{dag}/dagRuns").raise_for_status().json()
        return {each["dag_run_id"]: each for each in answer["dag_runs"]}

    def close(self) -> None:
        self._client.close()


def _installed() -> Path:
    """Kept beside the development environment: the next run finds it."""
    place = Path(sys.prefix).parent / ".airflow"
    if not (place / "bin" / "airflow").exists():
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "-q", "-p", sys.executable, str(place)], check=True)
        python = str(place / "bin" / "python")
        subprocess.run([*uv, "pip", "install", "-q", "-p", python, "apache-airflow>=3,<4"], check=True)
    return place / "bin"


@contextmanager
def running_airflow() -> Iterator[RealAirflow]:
    programs, port = _installed(), free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        (home / "dags").mkdir()
        (home / "dags" / "dags.py").write_text(DAGS)
        (home / "passwords.json").write_text(json.dumps({USER: PASSWORD}))
        settings = {
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__DAGS_FOLDER": str(home / "dags"),
            "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
            "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
            "API__HOST": "127.0.0.1",
            "API__PORT": str(port),
            "API__WORKERS": "1",
            "USAGE_DATA_COLLECTION__ENABLED": "False",
        }
        environ = {
            "HOME": name,
            "AIRFLOW_HOME": name,
            "PATH": f"{programs}:{os.environ['PATH']}",
            **{f"AIRFLOW__{setting}": value for setting, value in settings.items()},
        }
        with (home / "output.txt").open("wb") as output:
            airflow = subprocess.Popen(
                [str(programs / "airflow"), "standalone"],
                env=environ,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            until_blocking(lambda: _answers(url), "Airflow answers", PATIENCE)
            real = RealAirflow(url)
            until_blocking(lambda: real.dags() == {"quick", "broken", "slow"}, "it has read the DAGs", PATIENCE)
            yield real
            real.close()
        finally:
            os.killpg(airflow.pid, signal.SIGKILL)
            airflow.wait()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/api/v2/version", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
