"""What `helm template` makes of the chart, and its containers as processes of this machine, started as by a kubelet."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.programs import helm
from tests.services.orphan_reaper import orphan_reaper
from tests.services.process import COMMAND
from tests.services.waiting import until_blocking

__all__ = ["CHART", "Object", "Pod", "Secrets", "pod_template", "rendered", "secrets_in"]

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "onthedot"
Object = dict[str, Any]
Secrets = Mapping[str, Mapping[str, str]]
CLUSTER = {
    "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    "KUBERNETES_SERVICE_PORT": "443",
    "KUBERNETES_PORT": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP": "tcp://10.96.0.1:443",
}
"""What every pod has."""
LINKS = {
    "ONTHEDOT_SERVICE_HOST": "10.96.0.7",
    "ONTHEDOT_SERVICE_PORT": "80",
    "ONTHEDOT_SERVICE_PORT_HTTP": "80",
    "ONTHEDOT_PORT": "tcp://10.96.0.7:80",
    "ONTHEDOT_PORT_80_TCP": "tcp://10.96.0.7:80",
    "ONTHEDOT_PORT_80_TCP_PROTO": "tcp",
    "ONTHEDOT_PORT_80_TCP_PORT": "80",
    "ONTHEDOT_PORT_80_TCP_ADDR": "10.96.0.7",
}
"""What a Service named onthedot adds, unless the pod says `enableServiceLinks: false`."""


def rendered(*values: str | Path, release: str = "onthedot") -> list[Object]:
    command = [helm(), "template", release, CHART, "--namespace", "jobs", *values]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.load_all(done.stdout, yaml.CSafeLoader) if each]


def secrets_in(objects: list[Object]) -> dict[str, dict[str, str]]:
    return {each["metadata"]["name"]: each["stringData"] for each in objects if each["kind"] == "Secret"}


def pod_template(objects: list[Object], name: str) -> Object:
    (owner,) = [each for each in objects if each["kind"] in ("Deployment", "Job") and each["metadata"]["name"] == name]
    found: Object = owner["spec"]["template"]["spec"]
    return found


class Pod:
    """Its one container, with the environment, arguments and volumes of the template. What is mounted is in `home`:
    a path below a mount is found there; secrets are written as files."""

    def __init__(self, name: str, template: Object, *, home: Path, secrets: Secrets, links: bool = False) -> None:
        self.name, self.template = name, template
        (self.container,) = template["containers"]
        self._secrets = secrets
        self._mounted = self._mount(home / name)
        env = {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1", "ONTHEDOT_HOST": "0.0.0.0", **CLUSTER}
        if links or template.get("enableServiceLinks", True):
            env |= LINKS
        given = {entry["name"]: self._value(entry) for entry in self.container["env"]}
        self.env = env | {name: value for name, value in given.items() if value is not None}
        self.log = home / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert self.container["command"] == ["onthedot"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [COMMAND, *(self._place(each) for each in self.container["args"])],
                cwd=self._place(self.container["workingDir"]),
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        orphan_reaper.runs(-self._process.pid, signal.SIGKILL)

    def ended(self, within: float) -> int:
        assert self._process is not None
        return self._process.wait(within)

    def terminated(self) -> int:
        """As a kubelet ends it: the hook, SIGTERM, and not more time than the pod is given."""
        assert self._process is not None
        within = self.template["terminationGracePeriodSeconds"]
        if "lifecycle" in self.container:
            hook = self.container["lifecycle"]["preStop"]["exec"]["command"]
            subprocess.run(hook, check=True, timeout=within)
            within -= int(hook[1])
        assert self._process.poll() is None
        self._process.send_signal(signal.SIGTERM)
        return self.ended(within)

    def close(self) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            orphan_reaper.ended(-self._process.pid)

    def port(self, name: str) -> int:
        return int(next(each["containerPort"] for each in self.container["ports"] if each["name"] == name))

    def probed(self, name: str) -> int:
        """The status that one of the probes gets; 0 if nobody answers."""
        probe = self.container[name]["httpGet"]
        assert probe.get("scheme", "HTTP") == "HTTP"
        return self.asked(f"http://127.0.0.1:{self.port(probe['port'])}{probe['path']}")[0]

    def metrics(self) -> str:
        return self.asked(f"http://127.0.0.1:{self.port('metrics')}/metrics")[1]

    def asked(self, url: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()
        except OSError:
            return 0, ""

    def ready(self) -> None:
        probe = self.container["startupProbe"]
        within = probe["periodSeconds"] * probe["failureThreshold"]
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            until_blocking(partial(self._answers_or_ended, name), f"{self.name}: {name}", within)
            assert not self._has_ended(), self.log.read_text()[-3000:]

    def _answers_or_ended(self, probe: str) -> bool:
        return self._has_ended() or self.probed(probe) == 200

    def _has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _value(self, entry: Object) -> str | None:
        """None: the variable is not set."""
        if "value" in entry:
            return self._place(entry["value"])
        source = entry["valueFrom"]
        if "secretKeyRef" in source:
            wanted = source["secretKeyRef"]
            content = self._secrets[wanted["name"]]
            return content.get(wanted["key"]) if wanted.get("optional") else content[wanted["key"]]
        assert source == {"fieldRef": {"fieldPath": "metadata.name"}}
        return self.name

    def _mount(self, home: Path) -> dict[str, Path]:
        volumes = {each["name"]: each for each in self.template["volumes"]}
        mounted = {}
        for mount in self.container["volumeMounts"]:
            folder = home / mount["name"]
            folder.mkdir(parents=True)
            mounted[mount["mountPath"]] = folder
            volume = volumes[mount["name"]]
            if "secret" in volume:
                for name, text in self._secrets[volume["secret"]["secretName"]].items():
                    (folder / name).write_text(text)
            if "configMap" in volume:
                for name, text in self._secrets[volume["configMap"]["name"]].items():
                    (folder / name).write_text(text)
        return mounted

    def _place(self, value: str) -> str:
        for path, folder in self._mounted.items():
            if value == path or value.startswith(f"{path}/"):
                return str(folder) + value[len(path) :]
        return value
