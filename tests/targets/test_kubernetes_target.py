"""What a job says about Kubernetes, what an operator allows of it, and how a cluster is reached."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from onthedot.errors import Invalid, NotAvailable
from onthedot.model.decoding import dec_hook
from onthedot.model.secret_text import MASK
from onthedot.model.secrets import masked
from onthedot.model.targets import KubernetesTarget
from onthedot.settings import KubernetesSetting, KubernetesTemplate
from onthedot.targets.kubernetes.access import NoAccess, load_access
from onthedot.targets.kubernetes.kind import KubernetesJobs
from onthedot.targets.kubernetes.manifest import job_name
from tests.services.kubernetes_api import TOKEN, running_kubernetes
from tests.targets.making_certificates import Authority


def target(**fields: Any) -> KubernetesTarget:
    return msgspec.convert({"type": "kubernetes", **fields}, KubernetesTarget, dec_hook=dec_hook)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({}, "target.image"),
        ({"image": "alpine", "template": "x"}, "target.image"),
        ({"template": "x", "args": ["a"]}, "target.args"),
        ({"image": "Alpine"}, "target.image"),
        ({"image": "a", "namespace": "A"}, "target.namespace"),
        ({"image": "a", "service_account": "A"}, "target.service_account"),
        ({"image": "a", "keep_failed": "30d"}, "target.keep_failed"),
        ({"image": "a", "command": ["a\x00b"]}, "target.command[0]"),
        ({"image": "a", "env": {"A-B": "x"}}, "target.env.A-B"),
        ({"image": "a", "env": {"ONTHEDOT_RUN_ID": "x"}}, "target.env.ONTHEDOT_RUN_ID"),
        ({"image": "a", "resources": {"limits": {"memory": "lots"}}}, "target.resources.limits.memory"),
        ({"image": "a", "resources": {"requests": {"disk": "1"}}}, "target.resources.requests.disk"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], path: str) -> None:
    assert [problem.path for problem in target(**fields).problems()] == [path]


def test_what_is_shown() -> None:
    job = target(image="alpine", args=["echo", "hi"], env={"API_TOKEN": "secret", "DAY": "monday"})
    shown = masked(job)
    assert isinstance(shown, KubernetesTarget)
    assert shown.env == {"API_TOKEN": MASK, "DAY": "monday"}
    assert job.summary().line == "kubernetes alpine echo hi"
    assert (job.capability(), KubernetesTarget.timeout_by(None), str(job.keep_failed)) == ("kubernetes", 86_400.0, "1h")
    assert [each.path for each in job.problems_with({"a": "x" * 100_000})] == ["params"]


SETTING = KubernetesSetting(
    images=("alpine",),
    memory=64 << 20,
    cpus=0.5,
    namespace="jobs",
    namespaces=("batch",),
    templates={"report": KubernetesTemplate(pod={})},
)


@pytest.mark.parametrize(
    ("fields", "path", "accepted"),
    [
        ({"image": "evil/alpine"}, "target.image", "alpine"),
        ({"template": "reprt"}, "target.template", "report"),
        ({"image": "alpine", "namespace": "kube-system"}, "target.namespace", "jobs, batch"),
        ({"image": "alpine", "service_account": "admin"}, "target.service_account", "none"),
        ({"image": "alpine", "resources": {"limits": {"memory": "65Mi"}}}, "target.resources.limits.memory", "64 MB"),
        ({"image": "alpine", "resources": {"requests": {"cpu": 0.6}}}, "target.resources.requests.cpu", "at most 0.5"),
    ],
)
def test_what_the_operator_does_not_allow(fields: dict[str, Any], path: str, accepted: str) -> None:
    with pytest.raises(Invalid) as raised:
        KubernetesJobs(SETTING).check(target(**fields))
    (problem,) = raised.value.problems
    assert problem.path == path
    assert accepted in str(problem.accepted)
    KubernetesJobs(SETTING).check(target(image="alpine", namespace="batch"))


def test_without_images_and_templates_the_kind_is_not_available() -> None:
    with pytest.raises(NotAvailable) as raised:
        KubernetesJobs(KubernetesSetting()).check(target(image="alpine"))
    (problem,) = raised.value.problems
    assert (problem.path, KubernetesJobs(KubernetesSetting()).capabilities()) == ("target.type", [])


def test_names_are_labels_however_long_a_run_id_is() -> None:
    assert job_name("1-1767225600000-m1", 2) == "1-1767225600000-m1-2"
    first, second = job_name("9" * 70 + "1", 1), job_name("9" * 70 + "2", 1)
    assert len(first) <= 63
    assert first != second


async def test_a_certificate_of_the_client_opens_a_server_with_an_authority_of_its_own(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.issue("server")
    with running_kubernetes(tmp_path, (cert, key, authority.file)) as server:
        mine, of_mine = (Path(each).read_bytes() for each in authority.issue("node"))
        data = {
            "client-certificate-data": base64.b64encode(mine).decode(),
            "client-key-data": base64.b64encode(of_mine).decode(),
        }
        for given in ({"token": None, **data}, {"token": TOKEN}):
            setting = KubernetesSetting(images=("*",), kubeconfig=str(server.kubeconfig(**given)))
            async with KubernetesJobs(setting) as kind:
                assert kind.capabilities(), given
        folder = tmp_path / "account"
        folder.mkdir()
        for name, text in (("ca.crt", authority.file.read_text()), ("token", TOKEN), ("namespace", "mine\n")):
            (folder / name).write_text(text)
        environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.port)}
        access = load_access(KubernetesSetting(), environ, folder)
        assert (access.server, access.namespace, access.token) == (server.url, "mine", TOKEN)
        assert access.token_file == folder / "token"


@pytest.mark.parametrize(
    ("user", "words"),
    [("{exec: {command: aws}}", "a credential plugin (exec), which is not supported"), ("{username: me}", "password")],
)
def test_what_a_kubeconfig_may_not_have_is_named(tmp_path: Path, user: str, words: str) -> None:
    text = "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
    text += f"clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1'}}}}]\nusers: [{{name: u, user: {user}}}]\n"
    (tmp_path / "config").write_text(text)
    with pytest.raises(NoAccess) as raised:
        load_access(KubernetesSetting(kubeconfig=str(tmp_path / "config")), {})
    assert words in str(raised.value)
    with pytest.raises(NoAccess) as raised:
        load_access(KubernetesSetting(kubeconfig=str(tmp_path / "config"), context="y"), {})
    assert "has no context 'y'; it has x" in str(raised.value)
