"""What a job says about a container, and what an operator allows of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from onthedot.errors import Invalid, NotAvailable
from onthedot.jobsfile import read_jobs_file
from onthedot.model.secret_text import MASK
from onthedot.model.secrets import masked
from onthedot.model.targets import ContainerTarget
from onthedot.settings import ContainerSetting
from onthedot.targets import Call
from onthedot.targets.container.creation import creation
from onthedot.targets.container.kind import Containers
from onthedot.targets.container_engine.engine import EngineAbout


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"image": "Alpine"}, "target.image"),
        ({"memory": "lots"}, "target.memory"),
        ({"memory": "1M"}, "target.memory"),
        ({"command": ["a\x00b"]}, "target.command[0]"),
        ({"command": ["x" * 5000]}, "target.command[0]"),
        ({"env": {"A-B": "x"}}, "target.env.A-B"),
        ({"env": {"ONTHEDOT_RUN_ID": "x"}}, "target.env.ONTHEDOT_RUN_ID"),
        ({"env": {"A": "x" * 5000}}, "target.env.A"),
        ({"env": {f"A{n}": "x" for n in range(101)}}, "target.env"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], path: str) -> None:
    assert [problem.path for problem in ContainerTarget(**({"image": "alpine"} | fields)).problems()] == [path]


def test_params_must_fit_into_a_variable() -> None:
    target = ContainerTarget(image="alpine")
    assert list(target.problems_with({"a": 1})) == []
    assert [problem.path for problem in target.problems_with({"a": "x" * 100_000})] == ["params"]


def test_what_is_shown() -> None:
    target = ContainerTarget(image="alpine", command=["echo", "hi"], env={"API_TOKEN": "secret", "DAY": "monday"})
    shown = masked(target)
    assert isinstance(shown, ContainerTarget)
    assert shown.env == {"API_TOKEN": MASK, "DAY": "monday"}
    assert target.summary().line == "container alpine echo hi"
    assert (target.capability(), ContainerTarget.timeout_by(None)) == ("container", 86_400.0)


SETTING = ContainerSetting(images=("alpine",), memory=64 << 20, cpus=0.5)


@pytest.mark.parametrize(
    ("fields", "path", "accepted"),
    [
        ({"image": "evil/alpine"}, "target.image", "alpine"),
        ({"memory": "65M"}, "target.memory", "at most 64 MB"),
        ({"cpus": 0.6}, "target.cpus", "at most 0.5"),
        ({"network": True}, "target.network", "false, unless"),
    ],
)
def test_what_the_operator_does_not_allow(fields: dict[str, Any], path: str, accepted: str) -> None:
    target = ContainerTarget(**({"image": "alpine"} | fields))
    with pytest.raises(Invalid) as raised:
        Containers(SETTING).check(target)
    (problem,) = raised.value.problems
    assert problem.path == path
    assert accepted in str(problem.accepted)


def test_without_an_allowed_image_the_kind_is_not_available() -> None:
    with pytest.raises(NotAvailable) as raised:
        Containers(ContainerSetting()).check(ContainerTarget(image="alpine"))
    (problem,) = raised.value.problems
    assert (problem.path, problem.accepted) == (
        "target.type",
        '[containers] images = ["registry.example/*"] in onthedot.toml',
    )
    assert Containers(ContainerSetting()).capabilities() == []


def test_what_is_asked_of_the_engine() -> None:
    target = ContainerTarget(image="alpine", network=True, memory="32M")
    setting = ContainerSetting(images=("alpine",), network="jobs", cpus=2)
    call = Call(run_id="7-1", job_id=7, slot=1, attempt=1, target=target, timeout=20)
    body = creation(call, target, setting, "ours", EngineAbout("Docker 28.5", "here", has_init=True))
    host = body["HostConfig"]
    assert (body["Image"], host["NetworkMode"], host["NanoCpus"], host["Init"]) == (
        "docker.io/library/alpine:latest",
        "jobs",
        2_000_000_000,
        True,
    )
    assert "Cmd" not in body
    assert (host["CapDrop"], host["SecurityOpt"], host["Privileged"]) == (["ALL"], ["no-new-privileges"], False)
    assert "Binds" not in host
    assert body["Labels"]["onthedot.seconds"] == "30"
    assert body["Healthcheck"]["Interval"] == 90_000_000_000


@pytest.mark.parametrize(("has_checks", "timeout"), [(False, 20), (True, None)])
def test_without_checks_or_a_timeout_it_has_no_deadline_of_the_engine(has_checks: bool, timeout: float | None) -> None:
    target = ContainerTarget(image="alpine")
    call = Call(run_id="7-1", job_id=7, slot=1, attempt=1, target=target, timeout=timeout)
    about = EngineAbout("Podman 4.3", "here", has_init=True, has_checks=has_checks)
    assert "Healthcheck" not in creation(call, target, ContainerSetting(images=("alpine",)), "ours", about)


def test_the_examples_are_accepted() -> None:
    setting = ContainerSetting(images=("alpine:3.*", "python:3.*"), network="bridge")
    specs = read_jobs_file(Path(__file__).parents[2] / "examples" / "containers.yaml").specs
    assert len(specs) == 3
    for spec in specs:
        assert list(spec.target.problems()) == []
        Containers(setting).check(cast("ContainerTarget", spec.target))
