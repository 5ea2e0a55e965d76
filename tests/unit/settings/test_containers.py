"""[containers]: what is read, what is wrong, and what an operator can't allow by mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onthedot.errors import SettingsError
from onthedot.model.duration import MINUTE, Duration
from onthedot.settings import ContainerSetting, RegistrySetting, load_settings


def loaded(table: Any, tmp_path: Path) -> ContainerSetting:
    (tmp_path / "none.toml").write_text("")
    environ = {"ONTHEDOT_CONTAINERS": json.dumps(table)}
    return load_settings({}, environ=environ, file=tmp_path / "none.toml").containers


def test_without_a_table_there_are_no_containers(tmp_path):
    assert loaded({}, tmp_path) == ContainerSetting()
    assert ContainerSetting().images == ()


def test_what_is_read(tmp_path):
    table = {
        "images": ["alpine", "alpine", "registry.example/*"],
        "socket": "/run/podman/podman.sock",
        "memory": "2G",
        "cpus": 0.5,
        "network": True,
        "concurrency": 3,
        "keep": "1m",
        "place": "here",
    }
    assert loaded(table, tmp_path) == ContainerSetting(
        images=("alpine", "registry.example/*"),
        socket="unix:///run/podman/podman.sock",
        memory=2 << 30,
        cpus=0.5,
        network="bridge",
        concurrency=3,
        keep=Duration(MINUTE),
        place="here",
    )
    assert loaded({"socket": "tcp://127.0.0.1:2375"}, tmp_path).socket == "tcp://127.0.0.1:2375"


def test_tls_and_registries(tmp_path):
    found = loaded(
        {
            "socket": "tcp://engine.example:2376",
            "ca": "ca.pem",
            "cert": "cert.pem",
            "key": "key.pem",
            "registries": {
                "index.docker.io": {"username": "robot", "password_env": "HUB"},
                "registry.example:5000": {"username": "robot", "password_file": "/run/secrets/registry"},
            },
        },
        tmp_path,
    )
    assert (found.ca, found.cert, found.key) == ("ca.pem", "cert.pem", "key.pem")
    assert found.registries == {
        "docker.io": RegistrySetting(username="robot", password_env="HUB"),
        "registry.example:5000": RegistrySetting(username="robot", password_file="/run/secrets/registry"),
    }


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"images": "alpine"}, "images"),
        ({"images": ["http://x/*"]}, "http://x/*"),
        ({"socket": "docker.sock"}, "docker.sock"),
        ({"socket": "tcp://host"}, "tcp://host"),
        ({"socket": "tcp://host:99999"}, "neither"),
        ({"memory": "lots"}, "lots"),
        ({"memory": 7}, "memory"),
        ({"cpus": 0}, "cpus"),
        ({"network": "host"}, "host"),
        ({"network": "none"}, "none"),
        ({"network": "container:x"}, "container:x"),
        ({"concurrency": 0}, "concurrency"),
        ({"keep": "1 fortnight"}, "fortnight"),
        ({"place": "a b"}, "place"),
        ({"privileged": True}, "privileged"),
        ({"ca": "ca.pem"}, "ca, cert or key is not valid"),
        ({"socket": "tcp://h:1", "key": "key.pem"}, "key is not valid"),
        ({"registries": {"registry.example": {"username": "robot"}}}, "either password_file or password_env"),
        ({"registries": {"registry.example": {"username": "r", "password": "secret"}}}, "password"),
        ({"registries": {"a b": {"username": "r", "password_env": "P"}}}, "a b/image"),
        ([], "containers: expected an object, not a list"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, table, words):
    with pytest.raises(SettingsError) as raised:
        loaded(table, tmp_path)
    assert words in str(raised.value)
    assert "images = [" in str(raised.value)
